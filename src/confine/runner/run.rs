//! The runner: one small process around each command.
//!
//! It stands in a Landlock layer of its own, one inside the forker's and one outside the command's.
//! So its signals reach the command's whole tree and nothing else, and nothing of the tree reaches
//! it: when the command ends, times out or is stopped, one `kill(-1)` ends every descendant,
//! whatever session or parent it chose. It judges the attribute calls of the tree meanwhile.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{AddressFamily, Shutdown, SockFlag, SockType, shutdown, socketpair};
use nix::unistd::{Pid, getpid, getppid};

use crate::confine::broker::Attempts;
use crate::confine::forker::compiled::Compiled;
use crate::confine::io::InputKind;
use crate::confine::layers::ruleset;
use crate::confine::layers::selftest::{Canaries, signals_are_scoped};
use crate::confine::runner::command::{Command, Told};
use crate::confine::runner::listening::{Around, Killed, Listening};
use crate::confine::runner::underway::{Underway, deadline};
use crate::confine::wire::protocol::{End, RunnerReport, StartFailure, Step};
use crate::confine::wire::send;
use crate::confine::{group, sys};

/// Everything a runner takes with it.
#[derive(Debug)]
pub(crate) struct Runner {
    /// What the command is told.
    pub(crate) told: Told,
    /// The plan of the profile; `None` where nothing confines commands.
    pub(crate) compiled: Option<Compiled>,
    /// Where the report goes and stops come from.
    pub(crate) report: OwnedFd,
    /// The forker.
    pub(crate) forker: Pid,
    /// What the command's self-test tries.
    pub(crate) canaries: Canaries,
}

/// A runner that a command can be forked from.
struct Standing {
    signals: SignalFd,
    around: Around,
    report: OwnedFd,
    compiled: Option<Compiled>,
    canaries: Canaries,
}

impl Runner {
    /// Runs the command to its end, reports, and ends the process.
    pub(crate) fn run(self) -> ! {
        let Self {
            mut told,
            compiled,
            report,
            forker,
            canaries,
        } = self;
        let around = Around::of(compiled.as_ref());
        let signals = match stand(&mut told, compiled.as_ref(), around, forker) {
            Ok(signals) => signals,
            Err(failure) => {
                let _reported = send(&report, &RunnerReport::not_started(failure), &[]);
                sys::exit_now(0)
            }
        };
        let mut standing = Standing {
            signals,
            around,
            report,
            compiled,
            canaries,
        };
        let ran = standing.run(told);
        // The forker reads end-of-file if this fails, and treats the command as lost.
        let _reported = send(&standing.report, &ran, &[]);
        sys::exit_now(0)
    }
}

/// Makes this process a runner; gives back where it hears of its command's end.
fn stand(told: &mut Told, compiled: Option<&Compiled>, around: Around, forker: Pid) -> Result<SignalFd, StartFailure> {
    let at = |step| StartFailure::at(step);
    if let Told::Now(task) = told
        && let Some(door) = task.group.take()
    {
        // First of all: what is made from here on is in it.
        group::enter(&door).map_err(|errno| StartFailure::new(Step::Limits, errno, "entering its control group"))?;
    }
    // The name only helps a person reading a process list.
    let _named = prctl::set_name(c"stockade-run");
    let mut mask = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2] {
        mask.add(signal);
    }
    mask.thread_block().map_err(at(Step::Fork))?;
    let signals =
        SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(at(Step::Fork))?;
    // The command must not come before others as its runner does.
    sys::keep_scheduling_to_myself().map_err(at(Step::Session))?;
    prctl::set_pdeathsig(Signal::SIGTERM).map_err(at(Step::ParentDeath))?;
    if getppid() != forker {
        return Err(StartFailure::new(Step::ParentDeath, Errno::ESRCH, "the forker is gone"));
    }
    prctl::set_child_subreaper(true).map_err(at(Step::ParentDeath))?;
    match around {
        Around::Scope => {
            let plan = compiled.map(|compiled| &compiled.plan.landlock);
            ruleset::apply(ruleset::scope_only()?, plan)?;
            if !signals_are_scoped(forker) {
                return Err(StartFailure::new(
                    Step::SelfTest,
                    Errno::EPERM,
                    "the runner can signal the forker",
                ));
            }
        }
        // The forker is process 1 of the namespace: no signal from in there stops it.
        Around::Namespace => {}
        Around::Nothing => return Ok(signals),
    }
    if sys::ptrace_attach_fails(forker) {
        Ok(signals)
    } else {
        Err(StartFailure::new(
            Step::SelfTest,
            Errno::EPERM,
            "the runner can trace the forker",
        ))
    }
}

impl Standing {
    /// Runs the command to its end, and kills what is left of its tree.
    fn run(&mut self, told: Told) -> RunnerReport {
        let mut underway = match self.begin(told) {
            Ok(underway) => underway,
            Err(failure) => return RunnerReport::not_started(failure),
        };
        let end = underway.watch().unwrap_or_else(End::NotStarted);
        match underway.listening.kill_tree() {
            Killed::All => {}
            Killed::NotYet => {
                // The forker takes the command for lost and kills all that is in the namespace, at one blow.
                // Until then the listener stays open.
                let _told = shutdown(underway.report.as_raw_fd(), Shutdown::Both);
                drop(underway);
                sys::exit_now(1)
            }
        }
        RunnerReport {
            attempted: underway.attempts.told(),
            end,
        }
    }

    /// Forks a command.
    fn begin(&mut self, told: Told) -> Result<Underway<'_>, StartFailure> {
        let at = |step| StartFailure::at(step);
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC).map_err(at(Step::Fork))?;
        let (terminal, deadline) = match &told {
            Told::Now(task) => (
                task.start.input == InputKind::Terminal,
                deadline(task.start.limits.timeout_ms),
            ),
            Told::Later(..) => (false, None),
        };
        let runner = getpid();
        let Some(child) = sys::fork().map_err(at(Step::Fork))? else {
            drop(ours);
            sys::close_raw(self.report.as_raw_fd());
            Command {
                told,
                compiled: self.compiled.take(),
                handover: theirs,
                runner,
                canaries: std::mem::take(&mut self.canaries),
            }
            .execute()
        };
        drop((theirs, told));
        let plan = self.compiled.as_ref().map(|compiled| &compiled.plan);
        let watched = plan.and_then(|plan| plan.watched.is_some().then(|| plan.filters.clone()));
        Ok(Underway {
            child,
            signals: &self.signals,
            report: &self.report,
            attributes: plan.map(|plan| plan.attributes.clone()).unwrap_or_default(),
            copies: plan
                .and_then(|plan| plan.world.as_ref())
                .map(|world| world.mounts.copied_files().collect())
                .unwrap_or_default(),
            attempts: Attempts::of(watched),
            listening: Listening::new(self.around, ours),
            broker: None,
            own_files: Vec::new(),
            terminal,
            failure: None,
            deadline,
            kill_at: None,
            why: None,
            is_behind: false,
        })
    }
}
