//! A running command, watched until it ends, is stopped, times out or exceeds a limit.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::backend::attributes::AttributePlan;
use crate::confine::broker::{Attempts, Broker, Origin, Served};
use crate::confine::layers::ruleset;
use crate::confine::runner::command::Handover;
use crate::confine::runner::command_tree::CommandTree;
use crate::confine::sweep::MOST_REAPED;
use crate::confine::wire::protocol::{End, LimitKind, RunnerRequest, StartFailure, Step};
use crate::confine::wire::receive;

/// How long a command may take to stop before it is killed.
const STOP_GRACE: Duration = Duration::from_secs(2);

pub(crate) struct RunningCommand<'a> {
    pub(crate) child: Pid,
    /// Signals that report ended children, exceeded limits and the forker's end.
    pub(crate) signals: &'a SignalFd,
    pub(crate) report: &'a OwnedFd,
    pub(crate) attributes: AttributePlan,
    /// Private copies onto which renames are emulated, by device and inode.
    pub(crate) copies: Vec<(u64, u64)>,
    pub(crate) attempts: Attempts,
    pub(crate) command_tree: CommandTree,
    pub(crate) broker: Option<Broker>,
    /// The command's own files in /proc, kept open so that the inodes in its layer stay theirs.
    pub(crate) own_files: Vec<OwnedFd>,
    pub(crate) terminal: bool,
    pub(crate) failure: Option<StartFailure>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) kill_at: Option<Instant>,
    pub(crate) stop_reason: Option<End>,
    /// Whether more ended children may wait to be reaped.
    pub(crate) has_unreaped: bool,
}

pub(crate) fn deadline(timeout_ms: Option<u64>) -> Option<Instant> {
    timeout_ms.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)))
}

impl RunningCommand<'_> {
    pub(crate) fn watch(&mut self) -> Result<End, StartFailure> {
        loop {
            let mut fds = vec![
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.report.as_fd(), PollFlags::POLLIN),
            ];
            let handover_at = self.command_tree.handover().map(|fd| {
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
            let (signals_ready, report_ready) = (ready(0), ready(1));
            let (handover_ready, broker_ready) = (handover_at.is_some_and(ready), broker_at.is_some_and(ready));
            if handover_ready {
                self.take_handover()?;
            }
            if broker_ready && let Some(broker) = &mut self.broker {
                // Before `execve` it is Stockade's own code, which runs the self-test.
                let attempts = match self.command_tree.handover() {
                    Some(_) => Origin::No,
                    None => Origin::Yes,
                };
                match broker.serve(&mut self.attempts, attempts) {
                    Served::Idle | Served::Answered | Served::CallerExited => {}
                    // No process is left that could call; the child's end is reported next.
                    Served::NoCallers => self.broker = None,
                    Served::Broken(errno) => {
                        return Err(StartFailure::new(
                            Step::Broker,
                            errno,
                            "the listener broke; the command was killed",
                        ));
                    }
                }
            }
            if report_ready {
                match receive::<RunnerRequest>(self.report) {
                    Ok(Some((RunnerRequest::SetTimeout { timeout_ms }, _))) => {
                        self.deadline = deadline(Some(timeout_ms));
                    }
                    Ok(Some((RunnerRequest::Stop { signal }, _))) => {
                        self.stop(Signal::try_from(signal).unwrap_or(Signal::SIGKILL));
                    }
                    Ok(None) | Err(_) => return Ok(End::Cancelled),
                }
            }
            if (signals_ready || self.has_unreaped)
                && let Some(end) = self.take_signals()
            {
                return Ok(end);
            }
            if let Some(end) = self.out_of_time() {
                return Ok(end);
            }
        }
    }

    /// Handles a message of the child.
    fn take_handover(&mut self) -> Result<(), StartFailure> {
        let failed = |stop_reason: String| StartFailure::new(Step::Broker, Errno::EIO, stop_reason);
        match self
            .command_tree
            .receive_handover()
            .map_err(|error| failed(error.to_string()))?
        {
            Some(Handover::Listener) => {
                let listener = self
                    .command_tree
                    .listener()
                    .map_err(|error| failed(error.to_string()))?;
                let Some(listener) = listener else {
                    return Err(StartFailure::new(Step::Broker, Errno::EBADF, "no listener arrived"));
                };
                let broker =
                    Broker::new(listener, self.attributes.clone()).map_err(|error| failed(error.to_string()))?;
                self.broker = Some(broker.with_copies(self.copies.clone()));
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
        self.has_unreaped = false;
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
        for _ in 0..MOST_REAPED {
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
        self.has_unreaped = true;
        None
    }

    /// The end to report for the first process, which has just ended.
    fn ended(&mut self, end: End) -> End {
        // Its last messages may still lie in the socket.
        while let Ok(Some(message)) = self.command_tree.receive_handover() {
            match message {
                Handover::Failed(failure) => self.failure = Some(failure),
                Handover::Listener => {}
            }
        }
        match (self.failure.take(), self.stop_reason.take()) {
            (Some(failure), _) => End::NotStarted(failure),
            (None, Some(stop_reason)) => stop_reason,
            (None, None) => end,
        }
    }

    /// Sends the first signal of a stop; a second stop kills at once.
    fn stop(&mut self, signal: Signal) {
        let now = Instant::now();
        if self.kill_at.is_some() || signal == Signal::SIGKILL {
            self.kill_at = Some(now);
        } else {
            self.kill_at = Some(now + STOP_GRACE);
            // The command leads its own session and process group. It may have ended.
            let _signalled = kill(Pid::from_raw(-self.child.as_raw()), signal);
        }
        self.stop_reason = Some(End::Cancelled);
    }

    fn next_timeout(&self) -> PollTimeout {
        if self.has_unreaped {
            return PollTimeout::ZERO;
        }
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
