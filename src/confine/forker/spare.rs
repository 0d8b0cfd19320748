//! A runner and its command's process, confined before the command is known.
//!
//! A quarter or more of the cost of a command is its confinement: two processes, a layer each, the filters, the self-test. So in a
//! session of many commands the next one is prepared while one runs. Its process is confined as any other, for that command alone,
//! and receives its task last: nothing of an agent has run in it before.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::confine::forker::compiled::Compiled;
use crate::confine::runner::command::{Task, fits_spare};
use crate::confine::runner::command_tree::KillScope;
use crate::confine::wire::protocol::{RunnerRequest, Start};
use crate::confine::wire::send;

/// A runner whose command waits.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) runner: Pid,
    /// Carries reports from the runner, and stops to it.
    pub(crate) report: OwnedFd,
    /// Carries the task to the command.
    pub(crate) task_socket: OwnedFd,
}

/// The forker's and the command's end of the socket that carries a task. The forker never waits to write: where the spare was
/// stopped, or the task does not fit into the socket, the command gets a new runner.
pub(crate) fn task_sockets() -> nix::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = report_sockets()?;
    fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((ours, theirs))
}

/// The forker's and the runner's end of the socket for reports and stops.
pub(crate) fn report_sockets() -> nix::Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)
}

impl Spare {
    /// Sends it a task; gives the task back where the spare is dead or does not take all of it at once.
    pub(crate) fn begin(&self, task: Box<Task>) -> Result<(), Box<Task>> {
        let raw: Vec<RawFd> = task.streams.iter().map(AsRawFd::as_raw_fd).collect();
        if send(&self.task_socket, &(&task.start, task.most_tasks), &raw).is_err() {
            return Err(task);
        }
        if let Some(timeout_ms) = task.start.limits.timeout_ms {
            // If the runner is dead its command is too, and the forker notices.
            let _sent = send(&self.report, &RunnerRequest::SetTimeout { timeout_ms }, &[]);
        }
        Ok(())
    }

    /// Ends it, and reaps it.
    pub(crate) fn dismiss(self) {
        let Self {
            runner,
            report,
            task_socket,
        } = self;
        drop((task_socket, report));
        // Somebody may have stopped it, or its child.
        let _continued = kill(runner, Signal::SIGCONT);
        let _reaped = waitpid(runner, None);
    }
}

/// Whether a spare runner can run this. It cannot where attempts are watched, where no scope separates it from running commands,
/// and where something is made for one command alone: the layer of a terminal, the filters for a file as input, a count of processes.
pub(crate) fn can_use_spare(start: &Start, compiled: Option<&Compiled>) -> bool {
    let is_watched = compiled.is_none_or(|compiled| compiled.plan.watched.is_some());
    let is_scoped = KillScope::of(compiled) == KillScope::Scope;
    !is_watched && is_scoped && fits_spare(start) && !start.limits.is_counted()
}

#[cfg(test)]
mod tests {
    use nix::unistd::getpid;

    use super::*;
    use crate::confine::io::InputKind;
    use crate::confine::wire::protocol::{CommandLimits, Work};

    fn task(argument: usize) -> Box<Task> {
        let streams = [(); 3].map(|()| report_sockets().unwrap().0);
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
    fn a_spare_that_does_not_read_blocks_nobody() {
        let (report, _their_report) = report_sockets().unwrap();
        let (task_socket, theirs) = task_sockets().unwrap();
        let spare = Spare {
            runner: getpid(),
            report,
            task_socket,
        };
        assert!(spare.begin(task(1 << 10)).is_ok());
        let returned = spare.begin(task(4 << 20)).unwrap_err();
        assert_eq!(returned.start.work, task(4 << 20).start.work);
        drop(theirs);
        assert!(spare.begin(task(1)).is_err());
    }
}
