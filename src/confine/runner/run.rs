//! The runner: one small process around each command.
//!
//! It has a Landlock layer between the forker's and the command's. So its signals reach the command's whole tree and nothing else,
//! and nothing of the tree can signal it: when the command ends, times out or is stopped, one `kill(-1)` ends every descendant,
//! whatever session or parent it chose. Meanwhile it judges the attribute calls of the tree.

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
use crate::confine::runner::command::{Command, TaskSource};
use crate::confine::runner::command_tree::{CommandTree, KillScope, Killed};
use crate::confine::runner::running_command::{RunningCommand, deadline};
use crate::confine::wire::protocol::{End, RunnerReport, StartFailure, Step};
use crate::confine::wire::send;
use crate::confine::{group, sys};

/// A runner right after its fork.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) source: TaskSource,
    /// The plan of the profile; `None` where nothing confines commands.
    pub(crate) compiled: Option<Compiled>,
    /// Where the report goes and stops come from.
    pub(crate) report: OwnedFd,
    pub(crate) forker: Pid,
    /// What the command's self-test tries.
    pub(crate) canaries: Canaries,
}

/// A runner that a command can be forked from.
struct ReadyRunner {
    signals: SignalFd,
    kill_scope: KillScope,
    report: OwnedFd,
    compiled: Option<Compiled>,
    canaries: Canaries,
}

impl Runner {
    /// Runs the command to its end, reports, and ends the process.
    pub(crate) fn run(self) -> ! {
        let Self {
            mut source,
            compiled,
            report,
            forker,
            canaries,
        } = self;
        let kill_scope = KillScope::of(compiled.as_ref());
        let signals = match prepare(&mut source, compiled.as_ref(), kill_scope, forker) {
            Ok(signals) => signals,
            Err(failure) => {
                let _reported = send(&report, &RunnerReport::not_started(failure), &[]);
                sys::exit_now(0)
            }
        };
        let mut runner = ReadyRunner {
            signals,
            kill_scope,
            report,
            compiled,
            canaries,
        };
        let ran = runner.run(source);
        // The forker reads end-of-file if this fails, and treats the command as lost.
        let _reported = send(&runner.report, &ran, &[]);
        sys::exit_now(0)
    }
}

/// Makes this process a runner; returns the signals that report ended children, limits and the forker's end.
fn prepare(
    told: &mut TaskSource,
    compiled: Option<&Compiled>,
    kill_scope: KillScope,
    forker: Pid,
) -> Result<SignalFd, StartFailure> {
    let at = |step| StartFailure::at(step);
    if let TaskSource::Ready(task) = told
        && let Some(door) = task.group.take()
    {
        // First: everything that is forked later is in the group.
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
    // The command must not have its runner's priority.
    sys::reset_priority_for_children().map_err(at(Step::Session))?;
    prctl::set_pdeathsig(Signal::SIGTERM).map_err(at(Step::ParentDeath))?;
    if getppid() != forker {
        return Err(StartFailure::new(Step::ParentDeath, Errno::ESRCH, "the forker is gone"));
    }
    prctl::set_child_subreaper(true).map_err(at(Step::ParentDeath))?;
    match kill_scope {
        KillScope::Scope => {
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
        KillScope::Namespace => {}
        KillScope::Nothing => return Ok(signals),
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

impl ReadyRunner {
    /// Runs the command to its end, and kills what is left of its tree.
    fn run(&mut self, source: TaskSource) -> RunnerReport {
        let mut running_command = match self.begin(source) {
            Ok(running_command) => running_command,
            Err(failure) => return RunnerReport::not_started(failure),
        };
        let end = running_command.watch().unwrap_or_else(End::NotStarted);
        match running_command.command_tree.kill_tree() {
            Killed::Complete => {}
            Killed::Incomplete => {
                // The forker treats the command as lost and kills the whole namespace. Until then the listener stays open.
                let _sent = shutdown(running_command.report.as_raw_fd(), Shutdown::Both);
                drop(running_command);
                sys::exit_now(1)
            }
        }
        RunnerReport {
            attempted: running_command.attempts.report(),
            end,
        }
    }

    /// Forks a command.
    fn begin(&mut self, source: TaskSource) -> Result<RunningCommand<'_>, StartFailure> {
        let at = |step| StartFailure::at(step);
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC).map_err(at(Step::Fork))?;
        let (terminal, deadline) = match &source {
            TaskSource::Ready(task) => (
                task.start.input == InputKind::Terminal,
                deadline(task.start.limits.timeout_ms),
            ),
            TaskSource::Socket(..) => (false, None),
        };
        let runner = getpid();
        let Some(child) = sys::fork().map_err(at(Step::Fork))? else {
            drop(ours);
            sys::close_raw(self.report.as_raw_fd());
            Command {
                source,
                compiled: self.compiled.take(),
                handover: theirs,
                runner,
                canaries: std::mem::take(&mut self.canaries),
            }
            .execute()
        };
        drop((theirs, source));
        let plan = self.compiled.as_ref().map(|compiled| &compiled.plan);
        let watched = plan.and_then(|plan| plan.watched.is_some().then(|| plan.filters.clone()));
        Ok(RunningCommand {
            child,
            signals: &self.signals,
            report: &self.report,
            attributes: plan.map(|plan| plan.attributes.clone()).unwrap_or_default(),
            copies: plan
                .and_then(|plan| plan.namespaces.as_ref())
                .map(|namespace_plan| namespace_plan.mounts.copied_files().collect())
                .unwrap_or_default(),
            attempts: Attempts::of(watched),
            command_tree: CommandTree::new(self.kill_scope, ours),
            broker: None,
            own_files: Vec::new(),
            terminal,
            failure: None,
            deadline,
            kill_at: None,
            stop_reason: None,
            has_unreaped: false,
        })
    }
}
