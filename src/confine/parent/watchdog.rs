//! A watchdog for supervisors that somebody stops.
//!
//! Whoever may signal the parent may stop its supervisor, which then kills and restores nothing. So it is continued. One that is
//! stopped again and again is killed, after all processes below it: while it exists, stopped or not, nothing leaves its tree.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::task::JoinHandle;

use crate::confine::{sweep, sys};

pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often one may be found stopped before it is killed.
const MOST_STOPS: u32 = 4;
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// A task that checks a supervisor until this is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    task: Option<JoinHandle<()>>,
}

/// How often a supervisor was found stopped lately.
#[derive(Debug, Default)]
pub(crate) struct StopCount {
    count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Continue,
    Kill,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessState {
    Running,
    Stopped,
    /// It has ended, or cannot be waited for.
    Exited,
}

impl StopCount {
    pub(crate) fn record_stopped(&mut self) -> Action {
        self.count += 1;
        if self.count > MOST_STOPS {
            Action::Kill
        } else {
            Action::Continue
        }
    }

    fn record_running(&mut self) {
        self.count = self.count.saturating_sub(1);
    }
}

impl Watchdog {
    /// Watches a supervisor that was not reaped yet; needs a runtime. Without a free descriptor there is no watch.
    pub(crate) fn over(supervisor: Pid) -> Self {
        let task = sys::open_pidfd(supervisor).ok().map(|pidfd| {
            tokio::spawn(async move {
                let mut stops = StopCount::default();
                loop {
                    tokio::time::sleep(CHECK_INTERVAL).await;
                    match process_state(&pidfd) {
                        ProcessState::Exited => return,
                        ProcessState::Running => stops.record_running(),
                        ProcessState::Stopped => match stops.record_stopped() {
                            // It may have ended; the next check finds out.
                            Action::Continue => drop(sys::signal_by(&pidfd, Signal::SIGCONT)),
                            Action::Kill => {
                                let killed = tokio::task::spawn_blocking(move || kill_tree(supervisor, &pidfd));
                                let _finished = killed.await;
                                return;
                            }
                        },
                    }
                }
            })
        });
        Self { task }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

fn process_state(pidfd: &std::os::fd::OwnedFd) -> ProcessState {
    // The state is only read, not consumed.
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::PIDFd(pidfd.as_fd()), flags) {
        Ok(WaitStatus::Stopped(..)) => ProcessState::Stopped,
        Ok(_) | Err(Errno::EINTR) => ProcessState::Running,
        Err(_) => ProcessState::Exited,
    }
}

/// Kills what descends from a supervisor, then the supervisor.
fn kill_tree(supervisor: Pid, pidfd: &std::os::fd::OwnedFd) {
    sweep::kill_below(supervisor, Instant::now() + KILL_TIMEOUT);
    // It may have ended. What is left below it dies with its runner or forker.
    let _killed = sys::signal_by(pidfd, Signal::SIGKILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_supervisor_that_is_stopped_again_and_again_is_killed() {
        let mut stops = StopCount::default();
        for _ in 0..100 {
            assert_eq!(stops.record_stopped(), Action::Continue);
            stops.record_running();
        }
        let actions: Vec<Action> = (0..=MOST_STOPS).map(|_| stops.record_stopped()).collect();
        assert_eq!(actions.last(), Some(&Action::Kill));
        assert_eq!(actions.iter().filter(|action| **action == Action::Kill).count(), 1);
    }
}
