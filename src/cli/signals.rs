//! The signals that stop Stockade.
//!
//! A separate thread receives them, so nothing else can delay them. [`EXIT_DEADLINE`] after the first signal the process exits in any
//! case, even if a process that it waits for was stopped. The supervisor then kills the tree and restores protected names alone.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal as Arrivals, SignalKind, signal};
use tokio::sync::mpsc;

use super::error::CliError;
use super::readers;
use crate::tools::restore_terminal;

/// How long this process may run after the first signal.
const EXIT_DEADLINE: Duration = Duration::from_secs(45);

/// What a signal stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopScope {
    /// The whole program.
    Program,
    /// The calls under way; the program continues.
    Call,
}

/// Starts to receive the signals that stop the command.
pub(super) fn stop_signals(scope: StopScope) -> Result<mpsc::Receiver<Signal>, CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("failed to watch for signals: {error}"));
    let (sender, receiver) = mpsc::channel(8);
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let watched = {
        let _inside = runtime.enter();
        // With SIGXFSZ caught, a file at its size limit is a write error and does not kill the process.
        let _from_here_on = signal(SignalKind::from_raw(nix::libc::SIGXFSZ)).map_err(failed)?;
        let watch = |kind, passed| signal(kind).map(|arrivals| (arrivals, passed));
        [
            watch(SignalKind::interrupt(), Signal::SIGINT).map_err(failed)?,
            watch(SignalKind::terminate(), Signal::SIGTERM).map_err(failed)?,
            watch(SignalKind::hangup(), Signal::SIGHUP).map_err(failed)?,
            watch(SignalKind::quit(), Signal::SIGQUIT).map_err(failed)?,
        ]
    };
    // Never joined: the thread ends with the process.
    std::thread::Builder::new()
        .name("stops".to_owned())
        .spawn(move || runtime.block_on(forward(watched, sender, scope)))
        .map_err(failed)?;
    Ok(receiver)
}

#[expect(
    clippy::exit,
    reason = "what keeps the program from its end may be on every other thread"
)]
async fn forward(watched: [(Arrivals, Signal); 4], sender: mpsc::Sender<Signal>, scope: StopScope) {
    let [mut interrupt, mut terminate, mut hang_up, mut quit] = watched;
    let mut deadline = std::pin::pin!(tokio::time::sleep(EXIT_DEADLINE));
    let mut first: Option<Signal> = None;
    loop {
        let signal = tokio::select! {
            _ = interrupt.0.recv() => interrupt.1,
            _ = terminate.0.recv() => terminate.1,
            _ = hang_up.0.recv() => hang_up.1,
            _ = quit.0.recv() => quit.1,
            () = &mut deadline, if first.is_some() => {
                restore_terminal();
                std::process::exit(128 + first.map_or(0, |signal| signal as i32));
            }
        };
        let now = Instant::now();
        match scope {
            StopScope::Program => {
                readers::program_ends(now);
                if first.is_none() {
                    first = Some(signal);
                    deadline.as_mut().reset((now + EXIT_DEADLINE).into());
                }
            }
            StopScope::Call => readers::call_ends(now),
        }
        // The receiver may be closed; the deadline still applies.
        let _heard = sender.try_send(signal);
    }
}
