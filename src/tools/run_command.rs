//! A command under way: launched, its streams served, ended when its time is over or somebody stops it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::call::ToolError;
use super::network::HostGate;
use crate::confine::io::{Cut, IoError, ParentEnds, Relayed};
use crate::confine::wire::protocol::{End, Ended};
use crate::confine::{ConfineError, Confinement, Running};

/// How long a command may still be under way when its time is over, or it was told to stop. Whoever watches it ends it
/// then, and putting protected names back takes a while; but where the kernel knows no scopes for signals, a command in
/// namespaces can stop who watches it.
pub(super) const END_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a stop waits for what is made ready, and for whoever is to read what is left of the output.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// How a command ended, what it said, and the signal that stopped it, if one did.
pub(super) type RunResult = (Ended, Relayed, Option<i32>);

pub(super) struct LaunchedCommand {
    pub(super) running: Running,
    pub(super) timeout: Option<Duration>,
    pub(super) gate: Option<Arc<HostGate>>,
    /// A stop that came while it was launched.
    pub(super) stop: Option<Signal>,
}

/// Serves the streams of a command until its tree is dead.
pub(super) async fn run(
    forker: &Confinement,
    launched: LaunchedCommand,
    parent: ParentEnds,
    output: Option<u64>,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<RunResult, ToolError> {
    let LaunchedCommand {
        mut running,
        timeout,
        gate,
        stop: early,
    } = launched;
    let mut must_end = std::pin::pin!(running.must_end());
    let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut deadline_at = end.and_then(|end| end.checked_add(END_TIMEOUT));
    let (dead, tree_is_dead) = tokio::sync::oneshot::channel::<()>();
    let (cut, mut cut_short) = mpsc::channel::<Signal>(1);
    let delivery = parent.delivery();
    let relay = async {
        let relayed = parent
            .relay(output, async {
                // The other side is dropped only after it has fired.
                let _fired = tree_is_dead.await;
            })
            .await;
        let signal = match relayed.as_ref().map(|relayed| relayed.cut) {
            Ok(None) => return relayed,
            Ok(Some(Cut::EndKey)) => Signal::SIGQUIT,
            Ok(Some(Cut::BrokenPipe)) | Err(_) => Signal::SIGPIPE,
        };
        // Nobody listens when the command has ended already.
        let _sent = cut.send(signal).await;
        relayed
    };
    let mut stopped = None;
    let mut is_ending = false;
    let ended = async {
        if let Some(signal) = early {
            stopped = Some(signal as i32);
            deadline_at = Some(Instant::now() + END_TIMEOUT);
            forker.cancel(&running, signal).await?;
        }
        let ended = loop {
            tokio::select! {
                // Its end counts first: a stop that comes with it comes too late, also where nobody looked for a while.
                biased;
                ended = running.ended() => break ended,
                () = sleep_until(deadline_at) => break Err(ConfineError::Unresponsive),
                Some(signal) = stops.recv() => {
                    stopped.get_or_insert(signal as i32);
                    deadline_at = Some(earlier(deadline_at, Instant::now() + END_TIMEOUT));
                    forker.cancel(&running, signal).await?;
                }
                () = &mut must_end, if !is_ending => {
                    is_ending = true;
                    deadline_at = Some(earlier(deadline_at, Instant::now() + END_TIMEOUT));
                    forker.cancel(&running, Signal::SIGKILL).await?;
                }
                Some(signal) = cut_short.recv() => {
                    stopped.get_or_insert(signal as i32);
                    deadline_at = Some(earlier(deadline_at, Instant::now() + END_TIMEOUT));
                    forker.cancel(&running, Signal::SIGKILL).await?;
                }
            }
        };
        // A question that is open holds up what is left of the output.
        if let Some(gate) = gate {
            gate.end();
        }
        let _drained = dead.send(());
        ended
    };
    // In a box, so that it can be dropped: what it holds by then is counted as not delivered.
    let mut relay = Box::pin(relay);
    let mut relayed = None;
    let ended = {
        let mut ended = std::pin::pin!(ended);
        loop {
            tokio::select! {
                biased;
                ended = &mut ended => break ended,
                all = &mut relay, if relayed.is_none() => relayed = Some(all),
            }
        }
    };
    // The relay ends before the tree only then, or where nobody listens.
    let by_key = matches!(&relayed, Some(Ok(relayed)) if relayed.cut == Some(Cut::EndKey));
    let relayed = match relayed {
        Some(relayed) => relayed,
        None => drain_output(relay, Ending::of(&ended, stopped), stops).await,
    };
    let (mut ended, mut relayed) = (ended?, relayed?);
    if relayed.cut != Some(Cut::BrokenPipe) {
        relayed.undelivered = delivery.undelivered();
    }
    let time_is_over = end.is_some_and(|end| end <= Instant::now());
    ended.end = corrected_end(ended.end, by_key, time_is_over);
    Ok((ended, relayed, stopped.or(by_key.then_some(Signal::SIGQUIT as i32))))
}

/// Corrects the reported end by the terminal key and the deadline.
fn corrected_end(end: End, by_key: bool, time_is_over: bool) -> End {
    match end {
        // Its terminal is gone a moment before it is killed, and it may end over that.
        End::Exited(_) | End::Signaled(_) if by_key => End::Cancelled,
        // Whoever was to say that its time was over went with it.
        End::Lost if time_is_over => End::TimedOut,
        other => other,
    }
}

fn earlier(one: Option<Instant>, other: Instant) -> Instant {
    one.map_or(other, |one| one.min(other))
}

/// What is left of the output once the tree is dead. That of a command that was ended is waited for briefly; that of one that
/// ended by itself as long as nobody stops it: its reader may be a pager.
async fn drain_output(
    relay: impl Future<Output = Result<Relayed, IoError>>,
    ending: Ending,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<Relayed, IoError> {
    let deadline = async {
        match ending {
            Ending::Forced => {}
            Ending::OfItself => {
                if stops.recv().await.is_none() {
                    std::future::pending::<()>().await;
                }
            }
        }
        tokio::time::sleep(STOP_TIMEOUT).await;
    };
    tokio::select! {
        biased;
        relayed = relay => relayed,
        () = deadline => Ok(Relayed::default()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    OfItself,
    Forced,
}

impl Ending {
    const fn of(ended: &Result<Ended, ConfineError>, stopped: Option<i32>) -> Self {
        match (ended, stopped) {
            (
                Ok(Ended {
                    end: End::Exited(_) | End::Signaled(_) | End::NotStarted(_),
                    ..
                }),
                None,
            ) => Self::OfItself,
            _ => Self::Forced,
        }
    }
}

/// Waits for something that is made ready; one that does not come about within a moment of a stop is given up. Tells of the
/// stop, if there was one.
pub(super) async fn with_stop_timeout<T>(
    work: impl Future<Output = T>,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<(T, Option<Signal>), ToolError> {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => Ok((done, None)),
        Some(signal) = stops.recv() => match tokio::time::timeout(STOP_TIMEOUT, work).await {
            Ok(done) => Ok((done, Some(signal))),
            Err(_elapsed) => Err(ToolError::Stopped(signal)),
        },
    }
}

/// Waits for the work and discards it if the call was stopped.
pub(super) async fn unless_stopped<T>(
    work: impl Future<Output = Result<T, ToolError>>,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<T, ToolError> {
    match with_stop_timeout(work, stops).await? {
        (done, None) => done,
        (_, Some(signal)) => Err(ToolError::Stopped(signal)),
    }
}

/// Waits until this moment, or forever without one.
pub(super) async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}
