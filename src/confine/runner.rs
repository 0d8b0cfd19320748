//! The runner: one small process per command.
//!
//! It stands in a Landlock layer of its own, one inside the worker's and one outside the command's.
//! So its signals reach the command's whole tree and nothing else, and nothing of the tree reaches
//! it: when the command ends, times out or is stopped, one `kill(-1)` ends every descendant,
//! whatever session or parent it chose. It judges the attribute calls of the tree meanwhile.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{AddressFamily, Shutdown, SockFlag, SockType, shutdown, socketpair};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, getppid};

use super::attempted::Attempted;
use super::broker::{Attempts, Broker, Noted, Served};
use super::command::{Command, Handover, Told};
use super::compiled::Compiled;
use super::listening::{Around, Killed, Listening};
use super::protocol::{End, LimitKind, RunnerReport, RunnerRequest, StartFailure, Step};
use super::ruleset::Speech;
use super::selftest::{Canaries, signals_are_scoped};
use super::wire::{receive, send};
use super::{group, ruleset, sys};
use crate::backend::attributes::AttributePlan;

/// How long a command that was told to stop may take before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// Everything a runner takes with it.
#[derive(Debug)]
pub(crate) struct Runner {
    /// What the command is told.
    pub(crate) told: Told,
    /// The plan of the profile; `None` where nothing confines commands.
    pub(crate) compiled: Option<Compiled>,
    /// Where the report goes and stops come from.
    pub(crate) report: OwnedFd,
    /// The worker.
    pub(crate) worker: Pid,
    /// What the command's self-test tries.
    pub(crate) canaries: Canaries,
}

/// A command under way.
struct Underway {
    child: Pid,
    signals: SignalFd,
    report: OwnedFd,
    attributes: AttributePlan,
    attempts: Attempts,
    listening: Listening,
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
        let Ok(report) = self.report.try_clone() else {
            sys::exit_now(1)
        };
        let (end, attempted) = match self.begin() {
            Err(failure) => (End::NotStarted(failure), Attempted::default()),
            Ok(mut underway) => {
                let end = underway.watch().unwrap_or_else(End::NotStarted);
                match underway.listening.kill_tree() {
                    Killed::All => (end, underway.attempts.told()),
                    Killed::NotYet => {
                        // The worker takes the command for lost and kills all that is in the namespace, at one blow.
                        // Until then the listener stays open.
                        let _told = shutdown(report.as_raw_fd(), Shutdown::Both);
                        drop(underway);
                        sys::exit_now(1)
                    }
                }
            }
        };
        // The worker reads end-of-file if this fails, and treats the command as lost.
        let _reported = send(&report, &RunnerReport { end, attempted }, &[]);
        sys::exit_now(0)
    }

    /// Makes this process a runner and forks the command.
    fn begin(mut self) -> Result<Underway, StartFailure> {
        let at = |step| StartFailure::at(step);
        if let Told::Now(task) = &mut self.told
            && let Some(door) = task.group.take()
        {
            // First of all: what is made from here on is in it.
            group::enter(&door)
                .map_err(|errno| StartFailure::new(Step::Limits, errno, "entering its control group"))?;
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
        prctl::set_pdeathsig(Signal::SIGTERM).map_err(at(Step::ParentDeath))?;
        if getppid() != self.worker {
            return Err(StartFailure::new(Step::ParentDeath, Errno::ESRCH, "the worker is gone"));
        }
        prctl::set_child_subreaper(true).map_err(at(Step::ParentDeath))?;
        let around = Around::of(self.compiled.as_ref());
        match around {
            Around::Scope => {
                let plan = self.compiled.as_ref().map(|compiled| &compiled.plan.landlock);
                ruleset::apply(ruleset::scope_only()?, plan.map_or(Speech::Default, Speech::silent))?;
                if !signals_are_scoped(self.worker) {
                    return Err(StartFailure::new(
                        Step::SelfTest,
                        Errno::EPERM,
                        "the runner can signal the worker",
                    ));
                }
            }
            // The command will be able to stop the worker: first it must have told the keeper what to watch.
            Around::Namespace => match receive::<RunnerRequest>(&self.report) {
                Ok(Some((RunnerRequest::Begin { .. }, _))) => {}
                Ok(_) | Err(_) => return Err(StartFailure::new(Step::ParentDeath, Errno::ESRCH, "the worker is gone")),
            },
            Around::Nothing => {}
        }
        let Self {
            told,
            compiled,
            report,
            canaries,
            ..
        } = self;
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC).map_err(at(Step::Fork))?;
        let attributes = compiled
            .as_ref()
            .map(|compiled| compiled.plan.attributes.clone())
            .unwrap_or_default();
        let watched = compiled.as_ref().and_then(|compiled| {
            let filters = &compiled.plan.command_filters;
            compiled.plan.watched.is_some().then(|| filters.clone())
        });
        let (terminal, deadline) = match &told {
            Told::Now(task) => (task.start.terminal, deadline(task.start.limits.timeout_ms)),
            Told::Later(_) => (false, None),
        };
        let runner = getpid();
        let Some(child) = sys::fork().map_err(at(Step::Fork))? else {
            drop((ours, report));
            Command {
                told,
                compiled,
                handover: theirs,
                runner,
                canaries,
            }
            .execute()
        };
        drop((theirs, told, compiled));
        Ok(Underway {
            child,
            signals,
            report,
            attributes,
            attempts: Attempts::of(watched),
            listening: Listening::new(around, ours),
            broker: None,
            own_files: Vec::new(),
            terminal,
            failure: None,
            deadline,
            kill_at: None,
            why: None,
        })
    }
}

/// When a command that begins now runs out of time.
fn deadline(timeout_ms: Option<u64>) -> Option<Instant> {
    timeout_ms.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)))
}

/// The worker's word to a new runner: it waits for that where its command could stop the worker.
pub(crate) fn let_begin(report: &OwnedFd, compiled: Option<&Compiled>) {
    match Around::of(compiled) {
        Around::Namespace => {
            // A runner that is gone already needs no word.
            let _told = send(report, &RunnerRequest::Begin { timeout_ms: None }, &[]);
        }
        Around::Scope | Around::Nothing => {}
    }
}

impl Underway {
    fn watch(&mut self) -> Result<End, StartFailure> {
        loop {
            let mut fds = vec![
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.report.as_fd(), PollFlags::POLLIN),
            ];
            let handover_at = self.listening.handover().map(|fd| {
                fds.push(PollFd::new(fd, PollFlags::POLLIN));
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
                self.take_handover()?;
            }
            if asked && let Some(broker) = &mut self.broker {
                // Until it has become the command it is Stockade's own, and tries what must fail.
                let attempts = match self.listening.handover() {
                    Some(_) => Noted::No,
                    None => Noted::Yes,
                };
                match broker.serve(&mut self.attempts, attempts) {
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
                match receive::<RunnerRequest>(&self.report) {
                    Ok(Some((RunnerRequest::Begin { timeout_ms }, _))) => self.deadline = deadline(timeout_ms),
                    Ok(Some((RunnerRequest::Stop { signal }, _))) => {
                        self.stop(Signal::try_from(signal).unwrap_or(Signal::SIGKILL));
                    }
                    Ok(None) | Err(_) => return Ok(End::Cancelled),
                }
            }
            if signalled && let Some(end) = self.take_signals() {
                return Ok(end);
            }
            if let Some(end) = self.out_of_time() {
                return Ok(end);
            }
        }
    }

    /// Reads what the child says before it becomes the command.
    fn take_handover(&mut self) -> Result<(), StartFailure> {
        let failed = |why: String| StartFailure::new(Step::Broker, Errno::EIO, why);
        match self.listening.hear().map_err(|error| failed(error.to_string()))? {
            Some(Handover::Listener) => {
                let listener = self.listening.listener().map_err(|error| failed(error.to_string()))?;
                let Some(listener) = listener else {
                    return Err(StartFailure::new(Step::Broker, Errno::EBADF, "no listener arrived"));
                };
                let broker =
                    Broker::new(listener, self.attributes.clone()).map_err(|error| failed(error.to_string()))?;
                self.broker = Some(broker);
                if self.terminal {
                    self.own_files = ruleset::own_process_files(self.child);
                }
            }
            Some(Handover::Failed(failure)) => self.failure = Some(failure),
            None => {}
        }
        Ok(())
    }

    fn take_signals(&mut self) -> Option<End> {
        while let Ok(Some(info)) = self.signals.read_signal() {
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
        while let Ok(Some(word)) = self.listening.hear() {
            match word {
                Handover::Failed(failure) => self.failure = Some(failure),
                Handover::Listener => {}
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
