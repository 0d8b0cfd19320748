//! How a forker starts a command: with the spare runner, or with a new one.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::unistd::{Pid, getpid};

use crate::confine::forker::serve::{Active, CALLS_BEFORE_SPARE, Forker};
use crate::confine::forker::spare::{self, Spare};
use crate::confine::runner::command::{Task, TaskSource};
use crate::confine::runner::run::Runner;
use crate::confine::sys;
use crate::confine::wire::protocol::{Counting, Reply, Start, StartFailure, Step, Watch};
use crate::confine::wire::send;

/// The standard streams, and `cgroup.procs` of its control group where it has one.
fn split_fds(fds: Vec<OwnedFd>, counting: Counting) -> Result<([OwnedFd; 3], Option<OwnedFd>), StartFailure> {
    let mut fds = fds;
    let group = match counting {
        Counting::Group => fds.pop(),
        Counting::Namespace | Counting::Sampled => None,
    };
    match <[OwnedFd; 3]>::try_from(fds) {
        Ok(streams) => Ok((streams, group)),
        Err(_) => Err(StartFailure::new(
            Step::Streams,
            Errno::EBADF,
            "three descriptors are needed, and a fourth for a control group",
        )),
    }
}

impl Forker<'_> {
    /// Starts a command.
    pub(crate) fn start(&mut self, start: Start, fds: Vec<OwnedFd>) -> Result<(), StartFailure> {
        let (streams, group) = split_fds(fds, start.limits.counting)?;
        if start.limits.is_counted() {
            self.dismiss_spare();
            self.calls_before_spare = CALLS_BEFORE_SPARE;
        }
        let most_tasks = self.counter.most_tasks(start.limits, self.parent, self.active.len())?;
        let watch = start.work.watch();
        match watch {
            Watch::ProtectedNames => self.record()?,
            Watch::Nothing => {}
        }
        self.accept(start.call);
        let task = Box::new(Task {
            start,
            streams,
            group,
            most_tasks,
        });
        let task = if spare::can_use_spare(&task.start, self.compiled.as_ref()) {
            self.calls_before_spare = self.calls_before_spare.saturating_sub(1);
            match self.start_spare(task)? {
                None => return Ok(()),
                Some(task) => task,
            }
        } else {
            task
        };
        let (ours, theirs) = spare::report_sockets().map_err(StartFailure::at(Step::Fork))?;
        let (call, limits) = (task.start.call, task.start.limits);
        let (runner, report) = self.fork_runner(ours, theirs, TaskSource::Ready(task))?;
        let sampling = self.watch(call, runner, limits)?;
        let active = Active {
            runner,
            report,
            watch,
            sampling,
        };
        self.active.insert(call, active);
        Ok(())
    }

    /// Tells the parent that this forker begins with the call, so that no other may.
    fn accept(&self, call: u64) {
        if send(self.control, &Reply::Accepted(call), &[]).is_err() {
            self.end();
        }
    }

    /// Hands the task to the spare runner; gives it back where none took it.
    fn start_spare(&mut self, task: Box<Task>) -> Result<Option<Box<Task>>, StartFailure> {
        let Some(spare) = self.spare.take() else {
            return Ok(Some(task));
        };
        let (call, watch) = (task.start.call, task.start.work.watch());
        let sampling = self.watch(call, spare.runner, task.start.limits)?;
        match spare.begin(task) {
            Ok(()) => {
                let Spare { runner, report, .. } = spare;
                let active = Active {
                    runner,
                    report,
                    watch,
                    sampling,
                };
                self.active.insert(call, active);
                Ok(None)
            }
            Err(task) => {
                self.unwatch(call, sampling);
                spare.dismiss();
                Ok(Some(task))
            }
        }
    }

    /// Prepares a runner for the next command, once several have come. If that fails, the next command gets a new runner.
    pub(crate) fn make_spare(&mut self) {
        if self.calls_before_spare > 0 || self.spare.is_some() {
            return;
        }
        match self.fork_spare() {
            Ok(spare) => self.spare = Some(spare),
            Err(_) => self.calls_before_spare = CALLS_BEFORE_SPARE,
        }
    }

    /// Forks a runner that waits. No streams of a command may be open here: the runner would inherit them.
    fn fork_spare(&mut self) -> Result<Spare, StartFailure> {
        let at = StartFailure::at(Step::Fork);
        let (report, their_report) = spare::report_sockets().map_err(&at)?;
        let (task_socket, their_task_socket) = spare::task_sockets().map_err(&at)?;
        let source = TaskSource::Socket(their_task_socket);
        let (runner, (report, task_socket)) = self.fork_runner((report, task_socket), their_report, source)?;
        Ok(Spare {
            runner,
            report,
            task_socket,
        })
    }

    /// Ends the spare runner.
    pub(crate) fn dismiss_spare(&mut self) {
        if let Some(spare) = self.spare.take() {
            spare.dismiss();
        }
    }

    /// Forks a runner, which closes `ours`: else it would not notice when the forker closes its end.
    fn fork_runner<O>(&mut self, ours: O, report: OwnedFd, source: TaskSource) -> Result<(Pid, O), StartFailure> {
        let forker = getpid();
        if let Some(runner) = sys::fork().map_err(StartFailure::at(Step::Fork))? {
            return Ok((runner, ours));
        }
        drop(ours);
        let compiled = self.compiled.take();
        self.active.clear();
        self.spare = None;
        for fd in [self.control.as_raw_fd(), self.link.as_raw_fd()] {
            sys::close_raw(fd);
        }
        let canaries = std::mem::take(&mut self.canaries);
        Runner {
            source,
            compiled,
            report,
            forker,
            canaries,
        }
        .run()
    }
}
