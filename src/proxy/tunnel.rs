//! Bytes between a client and what it was let through to.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Answering};
use super::attempt::{End, Outcome, Refusal, Seen};
use super::bounds::Bounds;
use super::client::last_word;
use super::http::answer;
use super::meter::{Meter, Way};
use super::pump::{Broken, pump};
use super::tls::HelloError;
use super::upward::{Cut, SoFar, Upward};
use crate::policy::Host;

/// What became of a tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tunnelled {
    /// How it ended: passed, or refused for what was in it.
    pub(super) outcome: Outcome,
    /// What its first bytes were.
    pub(super) seen: Seen,
}

/// A tunnel before anything moves in it.
#[derive(Debug)]
pub(super) struct Tunnel<'a> {
    /// Its client, who knows that it is open.
    pub(super) client: TcpStream,
    /// What the client sent behind its request.
    pub(super) early: Vec<u8>,
    /// Where it leads.
    pub(super) server: TcpStream,
    /// The host that was asked for.
    pub(super) host: &'a Host,
    /// The port of that.
    pub(super) port: u16,
}

/// Moves bytes both ways. What the client sends is looked at first; what the server sends goes to the client at once.
///
/// Returns when both have ended, when one has broken off, when something is refused, when nothing has moved for too long,
/// or when the proxy is stopped; then both ends are closed.
pub(super) async fn tunnel(ends: Tunnel<'_>, bounds: &Bounds, meter: &Meter, stop: &CancellationToken) -> Tunnelled {
    let Tunnel {
        mut client,
        early,
        mut server,
        host,
        port,
    } = ends;
    let (seen, heard) = (Mutex::new(Seen::Nothing), AtomicBool::new(false));
    for stream in [&client, &server] {
        // What is a whole message is not known here, so nothing waits for more.
        drop(stream.set_nodelay(true));
    }
    let outcome = {
        let ((client_says, to_client), (server_says, to_server)) = (client.split(), server.split());
        let (answered, answer) = oneshot::channel();
        let up = Upward {
            from: client_says,
            to: to_server,
            held: early,
            host,
            port,
            head_time: bounds.head_time,
            meter,
            seen: &seen,
            answer,
            so_far: SoFar::default(),
        };
        let down = downward(server_says, to_client, meter, answered, &heard);
        tokio::select! {
            biased;
            () = stop.cancelled() => Outcome::Passed(End::Stopped),
            outcome = both(up.run(), down) => outcome,
            () = meter.idle(bounds.idle) => Outcome::Passed(End::Idle),
        }
    };
    match &outcome {
        Outcome::Refused(why) => {
            reset(&server);
            drop(server);
            if !heard.into_inner() {
                let word = farewell(why, host, port).unwrap_or_default();
                stop.run_until_cancelled(last_word(&mut client, &word, bounds.linger))
                    .await;
            }
        }
        Outcome::Passed(End::ClientLeft) => reset(&server),
        Outcome::Passed(End::Closed | End::ServerLeft | End::Idle | End::Stopped)
        | Outcome::Failed(_)
        | Outcome::Abandoned(_) => {}
    }
    Tunnelled {
        outcome,
        seen: *seen.lock().unwrap_or_else(PoisonError::into_inner),
    }
}

/// Breaks off, so that the server does not take what it got for all there is.
fn reset(server: &TcpStream) {
    // Without that it is closed as usual.
    let _usual = server.set_zero_linger();
}

/// What a client is told in its own language, when it has heard nothing in its tunnel yet.
fn farewell(why: &Refusal, host: &Host, port: u16) -> Option<Vec<u8>> {
    /// A fatal alert of TLS, but for what it says.
    const ALERT: [u8; 6] = [0x15, 3, 3, 0, 2, 2];
    const DECODE_ERROR: u8 = 50;
    const UNRECOGNIZED_NAME: u8 = 112;
    let alert = |what| Some([ALERT.as_slice(), &[what]].concat());
    match why {
        Refusal::Hello(HelloError::Differs(_) | HelloError::Named(_)) => alert(UNRECOGNIZED_NAME),
        Refusal::Hello(HelloError::Unreadable | HelloError::TooLong | HelloError::Slow) => alert(DECODE_ERROR),
        Refusal::Tunnelled(_) => {
            let outcome = Outcome::Refused(why.clone());
            answer::no(&format!("{host}:{port}"), &outcome, answer::Then::Closes)
        }
        Refusal::Hello(HelloError::Ssl2)
        | Refusal::NotListed(_)
        | Refusal::Denied
        | Refusal::Unanswered
        | Refusal::Other(_)
        | Refusal::Unreadable(_)
        | Refusal::Address { .. }
        | Refusal::OwnAddress(_) => None,
    }
}

/// The way from a server to a client, whose first bytes are told of.
async fn downward(
    from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    meter: &Meter,
    answered: oneshot::Sender<Answer>,
    heard: &AtomicBool,
) -> Result<(), Broken> {
    let mut first = Some((Answering::default(), answered));
    let spy = |bytes: &[u8]| {
        heard.store(true, Ordering::Relaxed);
        let answer = first.as_mut().and_then(|(answering, _)| answering.feed(bytes));
        if let Some(answer) = answer
            && let Some((_, answered)) = first.take()
        {
            // Nobody may want to know.
            let _unheard = answered.send(answer);
        }
    };
    pump(&from, &mut to, meter, Way::Down, spy).await
}

/// Both ways, until both have ended or there is no use in the other one.
async fn both(up: impl Future<Output = Result<(), Cut>>, down: impl Future<Output = Result<(), Broken>>) -> Outcome {
    let (mut up, mut down) = (pin!(up), pin!(down));
    let came_down = |result| match result {
        Ok(()) => End::Closed,
        Err(Broken::Source) => End::ServerLeft,
        Err(Broken::Sink) => End::ClientLeft,
    };
    tokio::select! {
        went = &mut up => match went {
            Ok(()) => Outcome::Passed(came_down(down.await)),
            Err(Cut::Refused(why)) => Outcome::Refused(why),
            Err(Cut::Left(End::ServerLeft)) => {
                // What it said before is still the client's.
                let _broken = down.await;
                Outcome::Passed(End::ServerLeft)
            }
            Err(Cut::Left(end)) => Outcome::Passed(end),
        },
        came = &mut down => match came {
            Ok(()) => match up.await {
                // Whoever has said all it has to say may go.
                Ok(()) | Err(Cut::Left(End::ServerLeft)) => Outcome::Passed(End::Closed),
                Err(Cut::Refused(why)) => Outcome::Refused(why),
                Err(Cut::Left(end)) => Outcome::Passed(end),
            },
            Err(_) => Outcome::Passed(came_down(came)),
        },
    }
}
