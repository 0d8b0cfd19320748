//! A runner and its command that are made ready before there is one to run.
//!
//! In a session of many commands a quarter or more of what one costs is making ready what holds it: two processes, a layer each,
//! the filters, the self-test. So while one runs, the next one's are made. The command's process is made just as it would be
//! otherwise, for that command alone, and hears last what it is to run: nothing of an agent has run in it before.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::confine::forker::compiled::Compiled;
use crate::confine::runner::command::{Task, Told, is_for_who_waits};
use crate::confine::runner::listening::Around;
use crate::confine::wire::protocol::{RunnerRequest, Start};
use crate::confine::wire::send;

/// A runner whose command waits.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) runner: Pid,
    /// Where the runner reports to, and is told to stop.
    pub(crate) report: OwnedFd,
    /// Where the command hears what it is.
    orders: OwnedFd,
}

/// The ends that a runner and its command have.
#[derive(Debug)]
pub(crate) struct Theirs {
    pub(crate) report: OwnedFd,
    pub(crate) told: Told,
}

/// The ends that the forker keeps.
#[derive(Debug)]
pub(crate) struct Ours {
    report: OwnedFd,
    orders: OwnedFd,
}

/// The end at which the forker says what is to be done, and the one at which a command hears it. Who does not hear at once holds nobody
/// up: somebody stopped it, or there is more to say than such a socket holds, and the command is made anew.
fn orders() -> nix::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = link()?;
    fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((ours, theirs))
}

/// The two ends of a link.
fn link() -> nix::Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)
}

impl Ours {
    /// Sockets for one that is about to be forked.
    pub(crate) fn pair() -> nix::Result<(Self, Theirs)> {
        let ((report, their_report), (orders, their_orders)) = (link()?, orders()?);
        let theirs = Theirs {
            report: their_report,
            told: Told::Later(their_orders),
        };
        Ok((Self { report, orders }, theirs))
    }

    /// The spare whose runner this is.
    pub(crate) fn of(self, runner: Pid) -> Spare {
        let Self { report, orders } = self;
        Spare { runner, report, orders }
    }
}

impl Spare {
    /// Lets it begin with a task. One that is gone, or does not take all of it at once, gives the task back.
    pub(crate) fn begin(&self, task: Box<Task>) -> Result<(), Box<Task>> {
        let raw: Vec<RawFd> = task.streams.iter().map(AsRawFd::as_raw_fd).collect();
        if send(&self.orders, &(&task.start, task.most_tasks), &raw).is_err() {
            return Err(task);
        }
        if let Some(timeout_ms) = task.start.limits.timeout_ms {
            // A runner that is gone takes its command along, and is missed.
            let _told = send(&self.report, &RunnerRequest::Bound { timeout_ms }, &[]);
        }
        Ok(())
    }

    /// Ends it and waits for that.
    pub(crate) fn dismiss(self) {
        let Self { runner, report, orders } = self;
        drop((orders, report));
        // Somebody may have stopped it, or its child.
        let _went_on = kill(runner, Signal::SIGCONT);
        let _reaped = waitpid(runner, None);
    }
}

/// Whether one that waits could do this. What is made for a command alone cannot wait: a terminal's layer, the filters of one
/// that is given a file open, and what counts its processes.
pub(crate) fn could_wait(start: &Start, compiled: Option<&Compiled>) -> bool {
    may_wait(compiled) && is_for_who_waits(start) && !start.limits.is_counted()
}

/// Whether anything can wait for what it is to do: not where somebody looks on, which is made for one command, nor where nothing
/// keeps commands from those that do.
fn may_wait(compiled: Option<&Compiled>) -> bool {
    compiled.is_some_and(|compiled| compiled.plan.watched.is_none()) && Around::of(compiled) == Around::Scope
}

#[cfg(test)]
mod tests {
    use nix::unistd::getpid;

    use super::*;
    use crate::confine::io::InputKind;
    use crate::confine::wire::protocol::{CommandLimits, Work};

    fn task(argument: usize) -> Box<Task> {
        let streams = [link().unwrap().0, link().unwrap().0, link().unwrap().0];
        Box::new(Task {
            start: Start {
                call: 1,
                work: Work::Command(vec!["true".into(), "x".repeat(argument).into()]),
                environment: Vec::new(),
                directory: "/".into(),
                limits: CommandLimits::default(),
                input: InputKind::Pipe,
            },
            streams,
            group: None,
            most_tasks: None,
        })
    }

    #[test]
    fn one_that_does_not_hear_holds_nobody_up() {
        let (ours, theirs) = Ours::pair().unwrap();
        let spare = ours.of(getpid());
        assert!(spare.begin(task(1 << 10)).is_ok());
        let given_back = spare.begin(task(4 << 20)).unwrap_err();
        assert_eq!(given_back.start.work, task(4 << 20).start.work);
        drop(theirs);
        assert!(spare.begin(task(1)).is_err());
    }
}
