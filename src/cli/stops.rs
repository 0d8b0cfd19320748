//! The signals that stop Stockade, and what holds at any moment after one.
//!
//! A thread of its own hears them, so that they are heard whatever the rest waits for. What is told to nobody who reads is
//! given up a moment later ([`waits_for_readers`]), and so it is where a command was ended because its time was over or by the
//! end key ([`has_ended_it`]); and a process that is still there [`AT_LAST`] after the first one, because
//! somebody stopped a process that it waits for, ends: the keeper then ends the tree and puts protected names back alone.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal as Arrivals, SignalKind, signal};
use tokio::sync::mpsc;

use super::complain::Complaint;
use crate::tools::restore_terminal;

/// How long somebody who does not read is waited for after a stop.
const UNREAD: Duration = Duration::from_secs(2);
/// How long after a stop this process is there at most.
const AT_LAST: Duration = Duration::from_secs(45);

/// What stops came so far.
static STOPS: Mutex<Stops> = Mutex::new(Stops {
    first: None,
    latest: None,
    has_given_up: false,
});

#[derive(Debug)]
struct Stops {
    /// The first that ends the program, or what stands for one.
    first: Option<Instant>,
    /// The latest that ends what is under way.
    latest: Option<Instant>,
    /// Whether somebody did not read when it was time.
    has_given_up: bool,
}

fn known() -> MutexGuard<'static, Stops> {
    STOPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a stop is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// The whole program.
    Program,
    /// What is under way; the program may go on.
    Call,
}

/// The signals that stop the command; Stockade ends after its tree.
pub(super) fn stops(ends: Ends) -> Result<mpsc::Receiver<Signal>, Complaint> {
    let failed = |error: std::io::Error| Complaint::failed(format!("failed to watch for signals: {error}"));
    let (sender, receiver) = mpsc::channel(8);
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let watched = {
        let _inside = runtime.enter();
        // A file that may grow no further is an error of whoever writes it, the audit log among them, and no end.
        let _from_here_on = signal(SignalKind::from_raw(nix::libc::SIGXFSZ)).map_err(failed)?;
        let watch = |kind, passed| signal(kind).map(|arrivals| (arrivals, passed));
        [
            watch(SignalKind::interrupt(), Signal::SIGINT).map_err(failed)?,
            watch(SignalKind::terminate(), Signal::SIGTERM).map_err(failed)?,
            watch(SignalKind::hangup(), Signal::SIGHUP).map_err(failed)?,
            watch(SignalKind::quit(), Signal::SIGQUIT).map_err(failed)?,
        ]
    };
    // Never joined: it ends with the process.
    std::thread::Builder::new()
        .name("stops".to_owned())
        .spawn(move || runtime.block_on(pass_on(watched, sender, ends)))
        .map_err(failed)?;
    Ok(receiver)
}

#[expect(
    clippy::exit,
    reason = "what keeps the program from its end may be on every other thread"
)]
async fn pass_on(watched: [(Arrivals, Signal); 4], sender: mpsc::Sender<Signal>, ends: Ends) {
    let [mut interrupt, mut terminate, mut hang_up, mut quit] = watched;
    let mut at_last = std::pin::pin!(tokio::time::sleep(AT_LAST));
    let mut first: Option<Signal> = None;
    loop {
        let signal = tokio::select! {
            _ = interrupt.0.recv() => interrupt.1,
            _ = terminate.0.recv() => terminate.1,
            _ = hang_up.0.recv() => hang_up.1,
            _ = quit.0.recv() => quit.1,
            () = &mut at_last, if first.is_some() => {
                restore_terminal();
                std::process::exit(128 + first.map_or(0, |signal| signal as i32));
            }
        };
        let now = Instant::now();
        match ends {
            Ends::Program => {
                known().first.get_or_insert(now);
                if first.is_none() {
                    first = Some(signal);
                    at_last.as_mut().reset((now + AT_LAST).into());
                }
            }
            Ends::Call => known().latest = Some(now),
        }
        // Whoever was to hear of it may have ended; what is written, and the end, are still bounded here.
        let _heard = sender.try_send(signal);
    }
}

/// That the command was ended, and not by a signal: who has not read its output so far may never read, and is waited for as
/// after a stop.
pub(super) fn has_ended_it() {
    known().first.get_or_insert_with(Instant::now);
}

/// Whether somebody who does not read is still waited for, by a write that was begun then. One who has not read when it was
/// time is not waited for again.
pub(super) fn waits_for_readers(begun: Instant) -> bool {
    let mut stops = known();
    let is_over = |stop: Instant| stop.elapsed() > UNREAD && begun.elapsed() > UNREAD;
    stops.has_given_up |= stops.first.is_some_and(is_over);
    // One that came before was for another call.
    let is_over_for_now = stops.latest.is_some_and(|stop| stop >= begun && is_over(stop));
    !stops.has_given_up && !is_over_for_now
}
