//! The signals that stop Stockade, and what holds at any moment after one.
//!
//! A thread of its own hears them, so that they are heard whatever the rest waits for. A process that is still there
//! [`AT_LAST`] after the first one, because somebody stopped a process that it waits for, ends: the supervisor then ends
//! the tree and puts protected names back alone.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal as Arrivals, SignalKind, signal};
use tokio::sync::mpsc;

use super::complain::Complaint;
use super::readers;
use crate::tools::restore_terminal;

/// How long after a stop this process is there at most.
const AT_LAST: Duration = Duration::from_secs(45);

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
                readers::program_ends(now);
                if first.is_none() {
                    first = Some(signal);
                    at_last.as_mut().reset((now + AT_LAST).into());
                }
            }
            Ends::Call => readers::call_ends(now),
        }
        // Whoever was to hear of it may have ended; what is written, and the end, are still bounded here.
        let _heard = sender.try_send(signal);
    }
}
