//! A supervisor that somebody outside stops.
//!
//! Whoever may signal the parent may signal its supervisor, and a stopped one ends nothing, puts nothing back, and is waited for.
//! So it is told to go on; one that is stopped again and again is killed, and before it all that descends from it: as
//! long as it is there, stopped or not, nothing that a command started leaves its tree.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::task::JoinHandle;

use crate::confine::{sweep, sys};

/// How often a supervisor is looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often one may be found stopped, and go on all the same.
const MOST: u32 = 4;
/// How long killing what descends from it may take.
const KILLING: Duration = Duration::from_secs(10);

/// Somebody who looks at a supervisor now and then, for as long as this is not dropped.
#[derive(Debug)]
pub(crate) struct Vigil {
    task: Option<JoinHandle<()>>,
}

/// How often a supervisor was found stopped lately.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    found: u32,
}

/// What is to be done with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    GoOn,
    Kill,
}

/// How one was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    Running,
    Stopped,
    /// It has ended, or is nobody's to look at.
    Gone,
}

impl Patience {
    /// It was found stopped.
    pub(crate) fn is_tried(&mut self) -> Then {
        self.found += 1;
        if self.found > MOST { Then::Kill } else { Then::GoOn }
    }

    /// It was found running.
    fn is_rested(&mut self) {
        self.found = self.found.saturating_sub(1);
    }
}

impl Vigil {
    /// Looks at a supervisor that was not reaped yet; needs a runtime. Where descriptors are short, nobody looks.
    pub(crate) fn over(supervisor: Pid) -> Self {
        let task = sys::open_pidfd(supervisor).ok().map(|pidfd| {
            tokio::spawn(async move {
                let mut patience = Patience::default();
                loop {
                    tokio::time::sleep(LOOK_EVERY).await;
                    match stands(&pidfd) {
                        Stands::Gone => return,
                        Stands::Running => patience.is_rested(),
                        Stands::Stopped => match patience.is_tried() {
                            // It may have ended meanwhile; the next look tells.
                            Then::GoOn => drop(sys::signal_by(&pidfd, Signal::SIGCONT)),
                            Then::Kill => {
                                let killed = tokio::task::spawn_blocking(move || kill_tree(supervisor, &pidfd));
                                // What waits for the supervisor hears of its end.
                                let _done = killed.await;
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

impl Drop for Vigil {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

fn stands(pidfd: &std::os::fd::OwnedFd) -> Stands {
    // The state is only looked at: it is still there for whoever looks next.
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::PIDFd(pidfd.as_fd()), flags) {
        Ok(WaitStatus::Stopped(..)) => Stands::Stopped,
        Ok(_) | Err(Errno::EINTR) => Stands::Running,
        Err(_) => Stands::Gone,
    }
}

/// Kills what descends from a supervisor, then the supervisor.
fn kill_tree(supervisor: Pid, pidfd: &std::os::fd::OwnedFd) {
    sweep::kill_below(supervisor, Instant::now() + KILLING);
    // It may have ended meanwhile. What is left, if anything is, dies with whoever was to watch it.
    let _killed = sys::signal_by(pidfd, Signal::SIGKILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_stopped_now_and_then_is_not_killed_and_one_that_always_is_is() {
        let mut patience = Patience::default();
        for _ in 0..100 {
            assert_eq!(patience.is_tried(), Then::GoOn);
            patience.is_rested();
        }
        let tried: Vec<Then> = (0..=MOST).map(|_| patience.is_tried()).collect();
        assert_eq!(tried.last(), Some(&Then::Kill));
        assert_eq!(tried.iter().filter(|then| **then == Then::Kill).count(), 1);
    }
}
