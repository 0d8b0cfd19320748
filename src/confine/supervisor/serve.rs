//! The supervisor after its fork: not confined by Landlock but idle, and the root of the process tree.
//!
//! It runs no agent code and takes only the fixed messages of [`SupervisorRequest`]. It outlives the forker: when the parent or the
//! forker ends, it kills every process below it, restores protected names and removes the session directory. It also samples the
//! limits that no rlimit enforces for a whole tree, because the forker cannot read /proc.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::Flock;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::confine::supervisor::bwrap_error;
use crate::confine::supervisor::protected::{ProtectedNames, Recorded};
use crate::confine::supervisor::samples::Samples;
use crate::confine::wire::protocol::{
    OfferReply, OfferRequest, ProtectSetup, Reply, StartFailure, Step, SupervisorReply, SupervisorRequest,
};
use crate::confine::wire::{receive, send};
use crate::confine::{protect, session, sweep, sys};
use crate::policy::path::display;

/// How often a watched tree is measured.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// How often the trees that a command may grow are measured.
const GROWTH_INTERVAL: Duration = Duration::from_secs(1);
/// How long a forker that lost its parent may take to end its commands itself.
const FORKER_GRACE: Duration = Duration::from_millis(300);

/// The supervisor's state.
#[derive(Debug)]
pub(crate) struct Supervisor<'a> {
    control: &'a OwnedFd,
    link: OwnedFd,
    /// To the parent alone, until the parent closes it.
    side_channel: Option<OwnedFd>,
    session: PathBuf,
    names: ProtectedNames,
    lock: Option<Flock<File>>,
    samples: Samples,
    /// bwrap's standard error, where it makes the namespaces.
    bwrap_stderr: Option<OwnedFd>,
}

impl<'a> Supervisor<'a> {
    pub(crate) fn new(
        control: &'a OwnedFd,
        link: OwnedFd,
        side_channel: OwnedFd,
        session: PathBuf,
        protect: Option<ProtectSetup>,
    ) -> Self {
        Self {
            control,
            link,
            side_channel: Some(side_channel),
            session,
            names: ProtectedNames::of(protect),
            lock: None,
            samples: Samples::default(),
            bwrap_stderr: None,
        }
    }

    /// Restores what killed sessions left, and reports it before the parent sends a plan.
    pub(crate) fn prepare(&mut self) {
        let recovered = self.names.recover();
        // A dead parent is noticed at the next read.
        let _sent = send(self.control, &Reply::Recovered(recovered), &[]);
        self.lock_session();
        session::sweep_stale(&self.session);
    }

    /// Locks the session, once the parent has made it.
    fn lock_session(&mut self) {
        if self.lock.is_none() {
            self.lock = session::lock_existing(&self.session);
        }
    }

    /// Tells the parent which protected names mounts are to cover.
    pub(crate) fn report_names_to_cover(&mut self) {
        let covered = self.names.present();
        // A dead parent is noticed at the next read.
        let _sent = send(self.control, &Reply::ToCover(covered), &[]);
    }

    /// Serves until parent or forker ends, cleans up, and exits. `bwrap_stderr` reads the errors of bwrap.
    pub(crate) fn serve(mut self, forker: Pid, bwrap_stderr: Option<OwnedFd>) -> ! {
        // The name only helps a person reading a process list.
        let _named = prctl::set_name(c"stockade-super");
        self.bwrap_stderr = bwrap_stderr;
        let mut forker = Some(forker);
        let signals = self.serve_until_end(&mut forker);
        self.finish(forker, signals.as_ref())
    }

    /// Serves; returns the signals of ended children. `forker` is `None` once it was reaped.
    fn serve_until_end(&mut self, forker: &mut Option<Pid>) -> Option<SignalFd> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        let Ok(signals) = mask
            .thread_block()
            .and_then(|()| SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK))
        else {
            return None;
        };
        let mut measured = Instant::now();
        while !has_ended(forker) {
            let is_watched = self.names.watch().is_some_and(protect::Watch::needs_polling);
            let wait = match (self.samples.is_empty() && !is_watched, self.names.is_guarding()) {
                (false, _) => Some(SAMPLE_INTERVAL),
                (true, true) => Some(GROWTH_INTERVAL),
                (true, false) => None,
            };
            let timeout = wait.map_or(PollTimeout::NONE, |wait| {
                PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO)
            });
            let mut fds = vec![
                // Only a hang-up is reported.
                PollFd::new(self.control.as_fd(), PollFlags::empty()),
                PollFd::new(self.link.as_fd(), PollFlags::POLLIN),
                PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            ];
            let side_channel = self.side_channel.as_ref().map(|fd| {
                fds.push(PollFd::new(fd.as_fd(), PollFlags::POLLIN));
                fds.len() - 1
            });
            fds.extend(
                self.names
                    .watch()
                    .into_iter()
                    .map(|watch| PollFd::new(watch.as_fd(), PollFlags::POLLIN)),
            );
            match poll(&mut fds, timeout) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => break,
            }
            let is_ready = |at: usize| fds.get(at).is_some_and(|fd| fd.any().unwrap_or(true));
            let (control, link, child, side_channel) = (
                is_ready(0),
                is_ready(1),
                is_ready(2),
                side_channel.is_some_and(is_ready),
            );
            if control {
                break;
            }
            if self.seize() || self.is_outgrown(&mut measured) {
                break;
            }
            if child {
                while let Ok(Some(_)) = signals.read_signal() {}
            }
            if link && !self.answer() {
                break;
            }
            if side_channel {
                self.answer_offers();
            }
            if !self.samples.take() {
                break;
            }
        }
        Some(signals)
    }

    /// Quarantines what leads git elsewhere, and kills the session of the command that did it; whether one did.
    fn seize(&mut self) -> bool {
        // Killed first: a command that keeps writing could delay the copy forever.
        let Some(first) = self.names.take_away(sweep::kill_descendants) else {
            return false;
        };
        let what = format!(
            "the command was killed: it changed {}, which leads your git to settings or hooks, and git obeys those at once",
            display(&first)
        );
        self.kill_session(Step::Killed, Errno::EPERM, &what);
        true
    }

    /// Kills the session of a command that makes more directories than can be walked; whether one did.
    fn is_outgrown(&mut self, measured: &mut Instant) -> bool {
        if measured.elapsed() < GROWTH_INTERVAL {
            return false;
        }
        let is_outgrown = self.names.is_outgrown();
        *measured = Instant::now();
        if is_outgrown {
            let what = "the command was killed: it made more directories than protected names can be looked for in. \
                        Remove what it made";
            self.kill_session(Step::Killed, Errno::ENOSPC, what);
        }
        is_outgrown
    }

    /// Kills everything of the session, and reports why.
    fn kill_session(&self, step: Step, errno: Errno, why: &str) {
        sweep::kill_descendants();
        // The parent may be gone.
        let _sent = send(self.control, &Reply::Refused(StartFailure::new(step, errno, why)), &[]);
    }

    /// Answers one message; `false` when the forker's end is closed or broken.
    fn answer(&mut self) -> bool {
        let Ok(Some((request, fds))) = receive::<SupervisorRequest>(&self.link) else {
            return false;
        };
        self.lock_session();
        let reply = match request {
            SupervisorRequest::Snapshot => match self.names.snapshot() {
                Ok(Recorded::Ready) => SupervisorReply::Recorded,
                Ok(Recorded::Stale) => {
                    self.kill_session(Step::Covers, Errno::ESTALE, "what is to be covered is more than it was");
                    return false;
                }
                Err(why) => SupervisorReply::Failed(why),
            },
            SupervisorRequest::Settle => SupervisorReply::Settled(self.names.put_all_back()),
            SupervisorRequest::Watch { call, limits } => {
                let Some(runner) = fds.into_iter().next() else {
                    return false;
                };
                self.samples.begin(call, runner, limits);
                return true;
            }
            SupervisorRequest::Unwatch { call } => {
                self.samples.end(call);
                return true;
            }
        };
        send(&self.link, &reply, &[]).is_ok()
    }

    /// Answers the parent; closes a socket that is broken.
    fn answer_offers(&mut self) {
        let Some(side_channel) = &self.side_channel else { return };
        let answer = match receive::<OfferRequest>(side_channel) {
            Ok(Some((OfferRequest::Offer, _))) => OfferReply::Offer(self.names.offer()),
            Ok(Some((OfferRequest::PutBack { digest }, _))) => OfferReply::PutBack(self.names.put_back(&digest)),
            Ok(None) | Err(_) => {
                self.side_channel = None;
                return;
            }
        };
        if send(side_channel, &answer, &[]).is_err() {
            self.side_channel = None;
        }
    }

    /// Reports the error of bwrap where the forker never started. All writers are dead.
    fn report_bwrap_error(&mut self) {
        let Some(failure) = self.bwrap_stderr.take().and_then(bwrap_error::read) else {
            return;
        };
        // A report of the forker itself came first. The parent may be dead.
        let _sent = send(self.control, &Reply::Refused(failure), &[]);
    }

    fn finish(&mut self, forker: Option<Pid>, signals: Option<&SignalFd>) -> ! {
        self.lock_session();
        session::prune(&self.session);
        let (mut forker, deadline) = (forker, Instant::now() + FORKER_GRACE);
        while !has_ended(&mut forker) && Instant::now() < deadline {
            wait_for_child(signals, deadline);
        }
        if let Some(forker) = forker {
            // It may have ended now; the sweep below reaps it.
            let _killed = kill(forker, Signal::SIGKILL);
        }
        sweep::kill_descendants();
        self.report_bwrap_error();
        // If settling fails the journal stays, and the next start restores from it.
        let put_back = self.names.put_all_back();
        // If the forker died in mid-call, nobody else can report this. The parent may be dead.
        let _sent = send(self.control, &Reply::ForkerExited(put_back), &[]);
        self.names.remove_copies();
        session::remove(&self.session);
        sys::exit_now(0)
    }
}

/// Waits until a child ends, at most until the deadline.
fn wait_for_child(signals: Option<&SignalFd>, deadline: Instant) {
    let Some(signals) = signals else {
        return std::thread::sleep(Duration::from_micros(200));
    };
    // Rounded up: a wait of nothing would spin.
    let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
    let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    // Interrupted or not: the caller looks again.
    let _ready = poll(&mut fds, PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO));
    while let Ok(Some(_)) = signals.read_signal() {}
}

/// Whether the forker has ended. It is reaped then, and forgotten: its pid may be reused. Only the forker is waited for, because
/// it reaps what its tree leaves while it lives.
fn has_ended(forker: &mut Option<Pid>) -> bool {
    let Some(pid) = *forker else { return true };
    match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => false,
        Ok(_) | Err(_) => {
            *forker = None;
            true
        }
    }
}
