//! The runner: one small process per command.
//!
//! It stands in a Landlock layer of its own, one inside the worker's and one outside the command's.
//! So its signals reach the command's whole tree and nothing else, and nothing of the tree reaches
//! it: when the command ends, times out or is stopped, one `kill(-1)` ends every descendant,
//! whatever session or parent it chose. It judges the attribute calls of the tree meanwhile.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, getppid};

use super::broker::{Broker, Served};
use super::command::{Command, Handover};
use super::compiled::Compiled;
use super::protocol::{End, LimitKind, RunnerReport, Start, StartFailure, Step, Stop};
use super::selftest::{Canaries, signals_are_scoped};
use super::wire::{receive, send};
use super::{ruleset, sweep, sys};

/// How long a command that was told to stop may take before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// How long a runner looks for what is left of a tree.
const SWEEP: Duration = Duration::from_secs(2);

/// The number of no signal: the word of [`let_begin`].
const BEGIN: i32 = 0;

/// Everything a runner takes with it.
#[derive(Debug)]
pub(crate) struct Runner {
    /// The command.
    pub(crate) start: Start,
    /// Its standard streams.
    pub(crate) streams: [OwnedFd; 3],
    /// The plan of the profile; `None` where nothing confines commands.
    pub(crate) compiled: Option<Compiled>,
    /// Where the report goes and stops come from.
    pub(crate) report: OwnedFd,
    /// The worker.
    pub(crate) worker: Pid,
    /// What the command's self-test tries.
    pub(crate) canaries: Canaries,
    /// How many tasks its user namespace may hold, where the kernel counts them.
    pub(crate) most_tasks: Option<u64>,
}

/// A command under way.
struct Underway {
    child: Pid,
    handover: Option<OwnedFd>,
    broker: Option<Broker>,
    /// The command's own files in /proc, held so that they stay what its layer names.
    own_files: Vec<OwnedFd>,
    terminal: bool,
    failure: Option<StartFailure>,
    deadline: Option<Instant>,
    kill_at: Option<Instant>,
    why: Option<End>,
}

impl Runner {
    /// Runs the command to its end, reports, and ends the process.
    pub(crate) fn run(self) -> ! {
        let around = Around::of(self.compiled.as_ref());
        let Ok(report) = self.report.try_clone() else {
            sys::exit_now(1)
        };
        let end = self.supervise().unwrap_or_else(End::NotStarted);
        if !finish_tree(around) {
            // The worker takes the command for lost and kills all that is in the namespace, at one blow.
            sys::exit_now(1)
        }
        // The worker reads end-of-file if this fails, and treats the command as lost.
        let _reported = send(&report, &RunnerReport { end }, &[]);
        sys::exit_now(0)
    }

    fn supervise(self) -> Result<End, StartFailure> {
        let at = |step| StartFailure::at(step);
        // The name only helps a person reading a process list.
        let _named = prctl::set_name(c"stockade-run");
        let mut mask = SigSet::empty();
        for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2] {
            mask.add(signal);
        }
        mask.thread_block().map_err(at(Step::Fork))?;
        let signals =
            SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(at(Step::Fork))?;
        prctl::set_pdeathsig(Signal::SIGTERM).map_err(at(Step::ParentDeath))?;
        if getppid() != self.worker {
            return Err(StartFailure::new(Step::ParentDeath, Errno::ESRCH, "the worker is gone"));
        }
        prctl::set_child_subreaper(true).map_err(at(Step::ParentDeath))?;
        match Around::of(self.compiled.as_ref()) {
            Around::Scope => {
                ruleset::apply(ruleset::scope_only()?)?;
                if !signals_are_scoped(self.worker) {
                    return Err(StartFailure::new(
                        Step::SelfTest,
                        Errno::EPERM,
                        "the runner can signal the worker",
                    ));
                }
            }
            // The command will be able to stop the worker: first it must have told the keeper what to watch.
            Around::Namespace => match receive::<Stop>(&self.report) {
                Ok(Some((Stop { signal: BEGIN }, _))) => {}
                Ok(_) | Err(_) => return Err(StartFailure::new(Step::ParentDeath, Errno::ESRCH, "the worker is gone")),
            },
            Around::Nothing => {}
        }
        let Self {
            start,
            streams,
            compiled,
            report,
            canaries,
            most_tasks,
            ..
        } = self;
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC).map_err(at(Step::Fork))?;
        let attributes = compiled
            .as_ref()
            .map(|compiled| compiled.plan.attributes.clone())
            .unwrap_or_default();
        let terminal = start.terminal;
        let deadline = start
            .limits
            .timeout_ms
            .and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        let runner = getpid();
        let Some(child) = sys::fork().map_err(at(Step::Fork))? else {
            drop((ours, report));
            Command {
                start,
                streams,
                compiled,
                handover: theirs,
                runner,
                canaries,
                most_tasks,
            }
            .execute()
        };
        drop((theirs, streams, compiled));
        let mut underway = Underway {
            child,
            handover: Some(ours),
            broker: None,
            own_files: Vec::new(),
            terminal,
            failure: None,
            deadline,
            kill_at: None,
            why: None,
        };
        underway.watch(&signals, &report, &attributes)
    }
}

/// What a runner is alone with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    /// The command's tree: a scope keeps its signals there.
    Scope,
    /// The worker and others of its commands, in a PID namespace; the kernel knows no scopes.
    Namespace,
    /// Everything of this user: nothing confines commands.
    Nothing,
}

impl Around {
    fn of(compiled: Option<&Compiled>) -> Self {
        match compiled {
            Some(compiled) if ruleset::has_scopes(&compiled.plan.landlock) => Self::Scope,
            Some(_) => Self::Namespace,
            None => Self::Nothing,
        }
    }
}

/// The worker's word to a new runner: it waits for that where its command could stop the worker.
pub(crate) fn let_begin(report: &OwnedFd, compiled: Option<&Compiled>) {
    match Around::of(compiled) {
        Around::Namespace => {
            // A runner that is gone already needs no word.
            let _told = send(report, &Stop { signal: BEGIN }, &[]);
        }
        Around::Scope | Around::Nothing => {}
    }
}

/// Ends what is left of the tree and reaps it; `false` where that takes too long. Without a scope it takes looking
/// for each process, which a swarm can outrun, and which /proc must be readable for.
fn finish_tree(around: Around) -> bool {
    match around {
        // Not in its scope yet, if it failed before.
        Around::Scope if signals_are_scoped(getppid()) => {
            sweep::kill_scoped();
            true
        }
        Around::Scope | Around::Nothing => {
            sweep::kill_descendants();
            true
        }
        Around::Namespace => sweep::kill_descendants_until(Instant::now() + SWEEP),
    }
}

impl Underway {
    fn watch(
        &mut self,
        signals: &SignalFd,
        report: &OwnedFd,
        attributes: &crate::backend::attributes::AttributePlan,
    ) -> Result<End, StartFailure> {
        loop {
            let mut fds = vec![
                PollFd::new(signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(report.as_fd(), PollFlags::POLLIN),
            ];
            let handover_at = self.handover.as_ref().map(|fd| {
                fds.push(PollFd::new(fd.as_fd(), PollFlags::POLLIN));
                fds.len() - 1
            });
            let broker_at = self.broker.as_ref().map(|broker| {
                fds.push(PollFd::new(broker.as_fd(), PollFlags::POLLIN));
                fds.len() - 1
            });
            match poll(&mut fds, self.next_timeout()) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(StartFailure::new(Step::Fork, errno, "waiting for the command")),
            }
            let ready = |at: usize| fds.get(at).and_then(PollFd::any).unwrap_or(true);
            let (signalled, reported) = (ready(0), ready(1));
            let (handed, asked) = (handover_at.is_some_and(ready), broker_at.is_some_and(ready));
            if handed {
                self.take_handover(attributes)?;
            }
            if asked && let Some(broker) = &mut self.broker {
                match broker.serve() {
                    Served::Idle | Served::Answered | Served::Departed => {}
                    // No process is left that could call; the child's end is on its way.
                    Served::Over => self.broker = None,
                    Served::Broken(errno) => {
                        return Err(StartFailure::new(
                            Step::Broker,
                            errno,
                            "the listener broke; the command was killed",
                        ));
                    }
                }
            }
            if reported {
                match receive::<Stop>(report) {
                    Ok(Some((stop, _))) => self.stop(Signal::try_from(stop.signal).unwrap_or(Signal::SIGKILL)),
                    Ok(None) | Err(_) => return Ok(End::Cancelled),
                }
            }
            if signalled && let Some(end) = self.take_signals(signals) {
                return Ok(end);
            }
            if let Some(end) = self.out_of_time() {
                return Ok(end);
            }
        }
    }

    /// Reads what the child says before it becomes the command.
    fn take_handover(&mut self, attributes: &crate::backend::attributes::AttributePlan) -> Result<(), StartFailure> {
        let Some(handover) = &self.handover else { return Ok(()) };
        match receive::<Handover>(handover) {
            Ok(Some((Handover::Listener, fds))) => {
                let Some(listener) = fds.into_iter().next() else {
                    return Err(StartFailure::new(Step::Broker, Errno::EBADF, "no listener arrived"));
                };
                let broker = Broker::new(listener, attributes.clone())
                    .map_err(|error| StartFailure::new(Step::Broker, Errno::EIO, error.to_string()))?;
                self.broker = Some(broker);
                if self.terminal {
                    self.own_files = ruleset::own_process_files(self.child);
                }
            }
            Ok(Some((Handover::Failed(failure), _))) => self.failure = Some(failure),
            // Closed by execve, or by the child's death.
            Ok(None) | Err(_) => self.handover = None,
        }
        Ok(())
    }

    fn take_signals(&mut self, signals: &SignalFd) -> Option<End> {
        while let Ok(Some(info)) = signals.read_signal() {
            match i32::try_from(info.ssi_signo)
                .ok()
                .and_then(|raw| Signal::try_from(raw).ok())
            {
                Some(Signal::SIGUSR1) => return Some(End::OverLimit(LimitKind::Memory)),
                Some(Signal::SIGUSR2) => return Some(End::OverLimit(LimitKind::Processes)),
                Some(Signal::SIGTERM) => return Some(End::Cancelled),
                _ => {}
            }
        }
        loop {
            match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return None,
                Ok(WaitStatus::Exited(pid, code)) if pid == self.child => return Some(self.ended(End::Exited(code))),
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.child => {
                    return Some(self.ended(End::Signaled(signal as i32)));
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// The end to report for the first process, which has just ended.
    fn ended(&mut self, end: End) -> End {
        // Its last words may still lie in the socket.
        while let Some(handover) = &self.handover {
            match receive::<Handover>(handover) {
                Ok(Some((Handover::Failed(failure), _))) => self.failure = Some(failure),
                Ok(Some((Handover::Listener, _))) => {}
                Ok(None) | Err(_) => self.handover = None,
            }
        }
        match (self.failure.take(), self.why.take()) {
            (Some(failure), _) => End::NotStarted(failure),
            (None, Some(why)) => why,
            (None, None) => end,
        }
    }

    /// Sends the first signal of a stop; a second stop kills at once.
    fn stop(&mut self, signal: Signal) {
        let now = Instant::now();
        if self.kill_at.is_some() || signal == Signal::SIGKILL {
            self.kill_at = Some(now);
        } else {
            self.kill_at = Some(now + GRACE);
            // The command leads a session of its own, and a group of the same number. It may be gone.
            let _signalled = kill(Pid::from_raw(-self.child.as_raw()), signal);
        }
        self.why = Some(End::Cancelled);
    }

    fn next_timeout(&self) -> PollTimeout {
        match [self.deadline, self.kill_at].into_iter().flatten().min() {
            None => PollTimeout::NONE,
            // Rounded up: waking a millisecond early would spin.
            Some(at) => PollTimeout::try_from(at.saturating_duration_since(Instant::now()) + Duration::from_millis(1))
                .unwrap_or(PollTimeout::MAX),
        }
    }

    fn out_of_time(&self) -> Option<End> {
        let now = Instant::now();
        if self.deadline.is_some_and(|at| at <= now) {
            return Some(End::TimedOut);
        }
        self.kill_at.is_some_and(|at| at <= now).then_some(End::Cancelled)
    }
}
