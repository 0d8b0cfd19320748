//! How a forker starts a command: by one that waits for it, or by one that it makes.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{Pid, getpid};

use crate::confine::forker::serve::{Active, FIRST, Forker};
use crate::confine::forker::spare::{self, Ours, Spare};
use crate::confine::runner::command::{Task, Told};
use crate::confine::runner::run::Runner;
use crate::confine::sys;
use crate::confine::wire::protocol::{Counting, Reply, Start, StartFailure, Step, Watch};
use crate::confine::wire::send;

/// The standard streams, and the door of a control group where there must be one.
fn taken(fds: Vec<OwnedFd>, counting: Counting) -> Result<([OwnedFd; 3], Option<OwnedFd>), StartFailure> {
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

/// What came of a task that was given away.
enum Begun {
    /// It is under way.
    Command,
    /// Nobody took it.
    Nothing(Box<Task>),
}

impl Forker<'_> {
    /// Starts a command.
    pub(crate) fn start(&mut self, start: Start, fds: Vec<OwnedFd>) -> Result<(), StartFailure> {
        let (streams, group) = taken(fds, start.limits.counting)?;
        if start.limits.is_counted() {
            self.dismiss_spare();
            self.alone = FIRST;
        }
        let most_tasks = self.counter.most_tasks(start.limits, self.outside, self.active.len())?;
        let watch = start.work.watch();
        match watch {
            Watch::ProtectedNames => self.record()?,
            Watch::Nothing => {}
        }
        self.take_on(start.call);
        let task = Box::new(Task {
            start,
            streams,
            group,
            most_tasks,
        });
        let task = if spare::could_wait(&task.start, self.compiled.as_ref()) {
            self.alone = self.alone.saturating_sub(1);
            match self.start_spare(task)? {
                Begun::Command => return Ok(()),
                Begun::Nothing(task) => task,
            }
        } else {
            task
        };
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)
            .map_err(StartFailure::at(Step::Fork))?;
        let (call, limits) = (task.start.call, task.start.limits);
        let (runner, report) = self.fork_runner(ours, theirs, Told::Now(task))?;
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

    /// Says that another forker may not begin with the call from here on.
    fn take_on(&self, call: u64) {
        if send(self.control, &Reply::Taken(call), &[]).is_err() {
            self.end();
        }
    }

    /// Gives the task to who waits for one.
    fn start_spare(&mut self, task: Box<Task>) -> Result<Begun, StartFailure> {
        let Some(spare) = self.spare.take() else {
            return Ok(Begun::Nothing(task));
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
                Ok(Begun::Command)
            }
            Err(task) => {
                self.unwatch(call, sampling);
                spare.dismiss();
                Ok(Begun::Nothing(task))
            }
        }
    }

    /// Makes one ready for the next command, where others came before. Where it cannot be made, that command makes its own.
    pub(crate) fn make_spare(&mut self) {
        if self.alone > 0 || self.spare.is_some() {
            return;
        }
        match self.fork_spare() {
            Ok(spare) => self.spare = Some(spare),
            Err(_) => self.alone = FIRST,
        }
    }

    /// Makes a runner whose process waits. Nobody's streams may be open in here meanwhile: it would keep them.
    fn fork_spare(&mut self) -> Result<Spare, StartFailure> {
        let (ours, theirs) = Ours::pair().map_err(StartFailure::at(Step::Fork))?;
        let (runner, ours) = self.fork_runner(ours, theirs.report, theirs.told)?;
        Ok(ours.of(runner))
    }

    /// Ends who waits.
    pub(crate) fn dismiss_spare(&mut self) {
        if let Some(spare) = self.spare.take() {
            spare.dismiss();
        }
    }

    /// Forks a runner, which has these ends of its sockets and not `ours`: else it would not read that the forker has
    /// closed them.
    fn fork_runner<O>(&mut self, ours: O, report: OwnedFd, told: Told) -> Result<(Pid, O), StartFailure> {
        let forker = getpid();
        if let Some(runner) = sys::fork().map_err(StartFailure::at(Step::Fork))? {
            return Ok((runner, ours));
        }
        drop(ours);
        let compiled = self.compiled.take();
        self.active.clear();
        self.spare = None;
        for held in [self.control.as_raw_fd(), self.link.as_raw_fd()] {
            sys::close_raw(held);
        }
        let canaries = std::mem::take(&mut self.canaries);
        Runner {
            told,
            compiled,
            report,
            forker,
            canaries,
        }
        .run()
    }
}
