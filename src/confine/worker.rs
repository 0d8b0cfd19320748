//! The worker: confined once, then serving commands until its parent is gone.
//!
//! A worker serves one profile. It compiles the profile's layer once, stands in it itself, and gives the same
//! to each command as a layer of its own, with scopes of its own. Each command gets a runner; the worker asks
//! the keeper to record and settle protected names around it, and passes the runner's report on.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use landlock::RulesetCreated;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getpid, getppid};

use super::filter::{self, FilterError};
use super::protocol::{
    End, Ended, KeeperReply, KeeperRequest, OwnProcess, Reply, Request, RunnerReport, SetupMessage, Start,
    StartFailure, Step, Stop, Violation,
};
use super::runner::Runner;
use super::wire::{receive, send};
use super::{ruleset, selftest, stage, sweep, sys};
use crate::backend::Plan;
use crate::backend::seccomp::SeccompPlan;

/// A plan in the form the kernel takes.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The Landlock layer.
    pub(crate) layer: RulesetCreated,
    /// The plan it was compiled from.
    pub(crate) plan: Plan,
}

struct Worker<'a> {
    control: &'a OwnedFd,
    link: OwnedFd,
    keeper: Pid,
    /// `None` where nothing confines commands.
    compiled: Option<Compiled>,
    canaries: selftest::Canaries,
    active: BTreeMap<u64, Active>,
}

struct Active {
    runner: Pid,
    report: OwnedFd,
}

/// Confines this process as the setup says, proves it, and serves; never returns.
pub(crate) fn main(control: &OwnedFd, link: OwnedFd, keeper: Pid, session: &Path) -> ! {
    let canaries = selftest::Canaries::of(session);
    let setup = match receive::<SetupMessage>(control) {
        Ok(Some((setup, _))) => setup,
        // The parent gave up, or is dead.
        Ok(None) => sys::exit_now(0),
        Err(error) => stage::refuse(
            control,
            StartFailure::new(Step::Setup, Errno::EPROTO, error.to_string()),
        ),
    };
    let compiled = match confine(keeper, setup) {
        Ok(compiled) => compiled,
        Err(failure) => stage::refuse(control, failure),
    };
    if let Some(Compiled { plan, .. }) = &compiled
        && let Err(hole) = selftest::worker(&canaries, keeper, plan)
    {
        let _told = send(control, &Reply::Leaky(hole), &[]);
        sys::exit_now(1);
    }
    if send(control, &Reply::Ready, &[]).is_err() {
        sys::exit_now(1);
    }
    Worker {
        control,
        link,
        keeper,
        compiled,
        canaries,
        active: BTreeMap::new(),
    }
    .serve()
}

/// Enters the layer and the filters of the worker; what commands get of them.
fn confine(keeper: Pid, setup: SetupMessage) -> Result<Option<Compiled>, StartFailure> {
    let at = |step| StartFailure::at(step);
    // The name only helps a person reading a process list.
    let _named = prctl::set_name(c"stockade-work");
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(at(Step::ParentDeath))?;
    if getppid() != keeper {
        return Err(StartFailure::new(Step::ParentDeath, Errno::ESRCH, "the keeper is gone"));
    }
    prctl::set_child_subreaper(true).map_err(at(Step::ParentDeath))?;
    let SetupMessage { plan, own_process } = setup;
    let Some(plan) = plan else { return Ok(None) };
    let layer = ruleset::compile(&plan.landlock)?;
    let own = match own_process {
        OwnProcess::Closed => ruleset::share(&layer)?,
        // Compiled anew: a rule added to the shared ruleset would hold for every command.
        OwnProcess::Readable => ruleset::with_processes(ruleset::compile(&plan.landlock)?)?,
    };
    ruleset::apply(own)?;
    match install(&plan.worker_filters)? {
        None => Ok(Some(Compiled { layer, plan })),
        Some(_) => Err(StartFailure::new(
            Step::Seccomp,
            Errno::EINVAL,
            "the worker's plan has a listener",
        )),
    }
}

/// Installs the filters of a plan; gives the listener of attribute calls where it has one.
pub(crate) fn install(plan: &SeccompPlan) -> Result<Option<OwnedFd>, StartFailure> {
    filter::install(plan).map_err(|error| {
        let (FilterError::NoNewPrivs(errno) | FilterError::Install { source: errno, .. } | FilterError::Listen(errno)) =
            error;
        StartFailure::new(Step::Seccomp, errno, error.to_string())
    })
}

impl Worker<'_> {
    fn serve(mut self) -> ! {
        loop {
            let calls: Vec<u64> = self.active.keys().copied().collect();
            let mut fds = vec![PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
            fds.extend(
                self.active
                    .values()
                    .map(|active| PollFd::new(active.report.as_fd(), PollFlags::POLLIN)),
            );
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(_) => self.end(),
            }
            let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(true)).collect();
            for (call, _) in calls.iter().zip(ready.iter().skip(1)).filter(|(_, ready)| **ready) {
                self.conclude(*call);
            }
            if ready.first().copied().unwrap_or(true) {
                match receive::<Request>(self.control) {
                    Ok(Some((request, fds))) => self.take(request, fds),
                    Ok(None) | Err(_) => self.end(),
                }
            }
        }
    }

    fn take(&mut self, request: Request, fds: Vec<OwnedFd>) {
        match request {
            Request::Start(start) => {
                let call = start.call;
                if let Err(failure) = self.start(start, fds) {
                    self.reply(Ended {
                        call,
                        end: End::NotStarted(failure),
                        violations: Vec::new(),
                        unsettled: None,
                    });
                }
            }
            Request::Cancel { call, signal } => {
                if let Some(active) = self.active.get(&call) {
                    // A runner that has just ended needs no stop.
                    let _sent = send(&active.report, &Stop { signal }, &[]);
                }
            }
        }
    }

    fn start(&mut self, start: Start, fds: Vec<OwnedFd>) -> Result<(), StartFailure> {
        let Ok(streams) = <[OwnedFd; 3]>::try_from(fds) else {
            return Err(StartFailure::new(
                Step::Streams,
                Errno::EBADF,
                "three descriptors are needed",
            ));
        };
        if start.argv.is_empty() {
            return Err(StartFailure::new(Step::Argument, Errno::EINVAL, "an empty command"));
        }
        match self.ask(KeeperRequest::Snapshot) {
            KeeperReply::Recorded => {}
            KeeperReply::Settled(..) => return Err(StartFailure::new(Step::Protect, Errno::EPROTO, "")),
            KeeperReply::Failed(why) => return Err(StartFailure::new(Step::Protect, Errno::EIO, why)),
        }
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)
            .map_err(StartFailure::at(Step::Fork))?;
        let worker = getpid();
        let (call, limits) = (start.call, start.limits);
        match sys::fork().map_err(StartFailure::at(Step::Fork))? {
            None => {
                drop(ours);
                let compiled = self.compiled.take();
                self.active.clear();
                for held in [self.control.as_raw_fd(), self.link.as_raw_fd()] {
                    sys::close_raw(held);
                }
                let canaries = std::mem::take(&mut self.canaries);
                Runner {
                    start,
                    streams,
                    compiled,
                    report: theirs,
                    worker,
                    canaries,
                }
                .run()
            }
            Some(runner) => {
                if limits.memory.is_some() || limits.processes.is_some() {
                    self.tell(KeeperRequest::Watch {
                        runner: runner.as_raw(),
                        limits,
                    });
                }
                self.active.insert(call, Active { runner, report: ours });
                Ok(())
            }
        }
    }

    /// Takes a runner's report; the command's tree is dead by then, or is killed here.
    fn conclude(&mut self, call: u64) {
        let Some(active) = self.active.remove(&call) else {
            return;
        };
        let end = if let Ok(Some((report, _))) = receive::<RunnerReport>(&active.report) {
            report.end
        } else {
            // A runner never ends without a report unless it was killed. Its command's processes are
            // now children of the worker, mixed with those of other calls, so everything goes.
            self.kill_everything();
            End::Lost
        };
        // It has reported, or is dead: this does not block.
        let _reaped = waitpid(active.runner, None);
        self.tell(KeeperRequest::Unwatch {
            runner: active.runner.as_raw(),
        });
        let (violations, unsettled) = match self.ask(KeeperRequest::Settle) {
            KeeperReply::Settled(violations, unsettled) => (violations, unsettled),
            KeeperReply::Recorded => (Vec::new(), Some("the keeper answered out of turn".to_owned())),
            KeeperReply::Failed(why) => (Vec::<Violation>::new(), Some(why)),
        };
        self.reply(Ended {
            call,
            end,
            violations,
            unsettled,
        });
    }

    fn reply(&self, ended: Ended) {
        if send(self.control, &Reply::Ended(ended), &[]).is_err() {
            self.end();
        }
    }

    fn tell(&self, request: KeeperRequest) {
        if send(&self.link, &request, &[]).is_err() {
            self.end();
        }
    }

    fn ask(&self, request: KeeperRequest) -> KeeperReply {
        self.tell(request);
        match receive::<KeeperReply>(&self.link) {
            Ok(Some((reply, _))) => reply,
            Ok(None) | Err(_) => self.end(),
        }
    }

    fn kill_everything(&self) {
        if self.compiled.is_some() && selftest::signals_are_scoped(self.keeper) {
            kill_scoped();
        } else {
            sweep::kill_descendants();
        }
    }

    fn end(&self) -> ! {
        self.kill_everything();
        sys::exit_now(0)
    }
}

/// Kills everything this process may signal, and reaps it. The caller has made sure that the Landlock
/// signal scope confines it to its own tree; then no fork bomb and no daemon escapes it, because the
/// kernel walks all processes under the lock that `fork` needs.
pub(crate) fn kill_scoped() {
    let mut pause = std::time::Duration::from_micros(50);
    loop {
        // ESRCH: nothing left to signal.
        let _killed = kill(Pid::from_raw(-1), Signal::SIGKILL);
        if sweep::reap() == sweep::Reaped::NoneLeft {
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(std::time::Duration::from_millis(5));
    }
}
