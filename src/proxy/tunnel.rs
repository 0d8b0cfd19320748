//! Copies bytes between a client and a server.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::attempt::{AttemptResult, End, Refusal, TunnelContent};
use super::bounds::Bounds;
use super::client::send_final;
use super::client_to_server::{ClientToServer, Cut, Progress};
use super::first_reply::{FirstReply, FirstReplyReader};
use super::http::response;
use super::meter::{Meter, Way};
use super::pump::{Broken, pump};
use super::tls::HelloError;
use crate::policy::Host;

/// The end of a tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tunnelled {
    /// Whether it passed, or was refused because of its content.
    pub(super) outcome: AttemptResult,
    /// Its detected content.
    pub(super) content: TunnelContent,
}

/// An open tunnel.
#[derive(Debug)]
pub(super) struct Tunnel<'a> {
    /// Its client, who knows that it is open.
    pub(super) client: TcpStream,
    /// Bytes that the client sent after its request.
    pub(super) early: Vec<u8>,
    /// The server.
    pub(super) server: TcpStream,
    /// The requested host.
    pub(super) host: &'a Host,
    /// The requested port.
    pub(super) port: u16,
}

/// Copies bytes in both directions. Bytes of the client are inspected first; those of the server are sent on at once.
///
/// It returns when both directions have ended, when one fails, when content is refused, when nothing was transferred for too
/// long, or when the proxy is stopped. Then both connections are closed.
pub(super) async fn tunnel(ends: Tunnel<'_>, bounds: &Bounds, meter: &Meter, stop: &CancellationToken) -> Tunnelled {
    let Tunnel {
        mut client,
        early,
        mut server,
        host,
        port,
    } = ends;
    let (content, client_received) = (Mutex::new(TunnelContent::Nothing), AtomicBool::new(false));
    for stream in [&client, &server] {
        // Message boundaries are unknown here, so nothing is delayed.
        drop(stream.set_nodelay(true));
    }
    let outcome = {
        let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
        let (answered, answer) = oneshot::channel();
        let up = ClientToServer {
            from: from_client,
            to: to_server,
            pending: early,
            host,
            port,
            head_time: bounds.head_time,
            meter,
            content: &content,
            answer,
            progress: Progress::default(),
        };
        let down = server_to_client(from_server, to_client, meter, answered, &client_received);
        tokio::select! {
            biased;
            () = stop.cancelled() => AttemptResult::Passed(End::Stopped),
            outcome = both(up.run(), down) => outcome,
            () = meter.idle(bounds.idle) => AttemptResult::Passed(End::Idle),
        }
    };
    match &outcome {
        AttemptResult::Refused(why) => {
            reset(&server);
            drop(server);
            if !client_received.into_inner() {
                let message = rejection_message(why, host, port).unwrap_or_default();
                stop.run_until_cancelled(send_final(&mut client, &message, bounds.linger))
                    .await;
            }
        }
        AttemptResult::Passed(End::ClientClosed) => reset(&server),
        AttemptResult::Passed(End::Closed | End::ServerClosed | End::Idle | End::Stopped)
        | AttemptResult::Failed(_)
        | AttemptResult::Abandoned(_) => {}
    }
    Tunnelled {
        outcome,
        content: *content.lock().unwrap_or_else(PoisonError::into_inner),
    }
}

/// Resets the connection, so that the server does not accept a partial message as complete.
fn reset(server: &TcpStream) {
    // On an error the connection is closed without a reset.
    let _usual = server.set_zero_linger();
}

/// The rejection in the protocol of the client; `None` where that has none.
fn rejection_message(why: &Refusal, host: &Host, port: u16) -> Option<Vec<u8>> {
    /// A fatal alert of TLS (RFC 8446, section 6) without its last byte, the description.
    const ALERT: [u8; 6] = [0x15, 3, 3, 0, 2, 2];
    const DECODE_ERROR: u8 = 50;
    const UNRECOGNIZED_NAME: u8 = 112;
    let alert = |what| Some([ALERT.as_slice(), &[what]].concat());
    match why {
        Refusal::Hello(HelloError::Differs(_) | HelloError::Named(_)) => alert(UNRECOGNIZED_NAME),
        Refusal::Hello(HelloError::Unreadable | HelloError::TooLong | HelloError::Slow) => alert(DECODE_ERROR),
        Refusal::Tunnelled(_) => {
            let outcome = AttemptResult::Refused(why.clone());
            response::rejection(&format!("{host}:{port}"), &outcome, response::KeepAlive::No)
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

/// The direction from server to client; reports the first reply.
async fn server_to_client(
    from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    meter: &Meter,
    answered: oneshot::Sender<FirstReply>,
    client_received: &AtomicBool,
) -> Result<(), Broken> {
    let mut first = Some((FirstReplyReader::default(), answered));
    let inspect = |bytes: &[u8]| {
        client_received.store(true, Ordering::Relaxed);
        let answer = first.as_mut().and_then(|(answering, _)| answering.feed(bytes));
        if let Some(answer) = answer
            && let Some((_, answered)) = first.take()
        {
            // The receiver may be gone.
            let _unused = answered.send(answer);
        }
    };
    pump(&from, &mut to, meter, Way::Down, inspect).await
}

/// Runs both directions until both have ended or one fails.
async fn both(
    up: impl Future<Output = Result<(), Cut>>,
    down: impl Future<Output = Result<(), Broken>>,
) -> AttemptResult {
    let (mut up, mut down) = (pin!(up), pin!(down));
    let came_down = |result| match result {
        Ok(()) => End::Closed,
        Err(Broken::Source) => End::ServerClosed,
        Err(Broken::Sink) => End::ClientClosed,
    };
    tokio::select! {
        went = &mut up => match went {
            Ok(()) => AttemptResult::Passed(came_down(down.await)),
            Err(Cut::Refused(why)) => AttemptResult::Refused(why),
            Err(Cut::Left(End::ServerClosed)) => {
                // The client still gets what the server sent.
                let _broken = down.await;
                AttemptResult::Passed(End::ServerClosed)
            }
            Err(Cut::Left(end)) => AttemptResult::Passed(end),
        },
        came = &mut down => match came {
            Ok(()) => match up.await {
                // The server had sent everything.
                Ok(()) | Err(Cut::Left(End::ServerClosed)) => AttemptResult::Passed(End::Closed),
                Err(Cut::Refused(why)) => AttemptResult::Refused(why),
                Err(Cut::Left(end)) => AttemptResult::Passed(end),
            },
            Err(_) => AttemptResult::Passed(came_down(came)),
        },
    }
}
