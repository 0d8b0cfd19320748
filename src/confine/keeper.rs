//! The keeper: the stage after its fork, unconfined by Landlock but idle, and the root of the tree.
//!
//! It runs no agent code and takes only the fixed messages of [`KeeperRequest`]. It is there for what
//! must outlive the worker: when the parent or the worker is gone it ends every process that
//! descends from it, restores protected names and removes the session directory. It also
//! samples the limits that no rlimit holds for a whole tree, because the worker cannot read /proc.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::Flock;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::covering::Shown;
use super::protocol::{Answer, Inquiry, KeeperReply, KeeperRequest, ProtectSetup, Reply, Violation};
use super::sampling::Samples;
use super::undone::{bounded, offers, put_back, reported, summary};
use super::wire::{receive, send};
use super::{complaint, protect, session, sweep, sys};

/// How often a watched tree is measured.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);
/// How long a worker that lost its parent may take to end its commands itself.
const WORKER_GRACE: Duration = Duration::from_millis(300);
/// How long what was recorded ahead of the first command is what is there when it starts.
const STAYS_FRESH: Duration = Duration::from_secs(1);
/// The same for a command that is about to start.
const STAYS_FRESH_AT_ONCE: Duration = Duration::from_millis(100);

/// The keeper's state.
#[derive(Debug)]
pub(crate) struct Keeper<'a> {
    control: &'a OwnedFd,
    link: OwnedFd,
    /// To the parent alone; gone when the parent has closed it.
    aside: Option<OwnedFd>,
    session: PathBuf,
    protect: Option<ProtectSetup>,
    guard: Option<protect::Guard>,
    /// What the last guard undid and a person may still want.
    offers: Option<protect::Offers>,
    /// What the last guard saw of the tree.
    known: Option<protect::Known>,
    lock: Option<Flock<File>>,
    /// What mounts show in the place of protected names.
    shown: Shown,
    /// Until when protected names that were recorded hold for a command that has not come yet.
    prepared: Option<Instant>,
    recovered: Vec<Violation>,
    unrecovered: Vec<protect::Unrecovered>,
    samples: Samples,
    /// What bwrap says, where it makes the namespaces, until the worker has entered.
    complaints: Option<OwnedFd>,
}

impl<'a> Keeper<'a> {
    /// A keeper for this session.
    pub(crate) fn new(
        control: &'a OwnedFd,
        link: OwnedFd,
        aside: OwnedFd,
        session: PathBuf,
        protect: Option<ProtectSetup>,
    ) -> Self {
        Self {
            control,
            link,
            aside: Some(aside),
            session,
            protect,
            guard: None,
            offers: None,
            known: None,
            lock: None,
            shown: Shown::default(),
            prepared: None,
            recovered: Vec::new(),
            unrecovered: Vec::new(),
            samples: Samples::default(),
            complaints: None,
        }
    }

    /// Restores what others left, and records protected names for the first command, which in most sessions starts at
    /// once. Done before or while the worker confines itself.
    pub(crate) fn prepare(&mut self) {
        self.recover();
        self.prepared = self.record().ok().map(|()| Instant::now() + STAYS_FRESH);
        self.hold_session();
        session::sweep_stale(&self.session);
    }

    /// Takes hold of the session, which the parent may make later than the stage is told of it.
    fn hold_session(&mut self) {
        if self.lock.is_none() {
            self.lock = session::hold(&self.session);
        }
    }

    /// Tells the parent which protected names mounts are to cover; [`prepare`](Self::prepare) has recorded them. Where it
    /// could not, nothing may run behind mounts that cover nothing.
    pub(crate) fn tell_present(&mut self) {
        let covered = match self.record_once() {
            Ok(()) => self.shown.cover(self.protect.as_ref(), self.guard.as_ref()),
            Err(why) => self.shown.fail(why),
        };
        // A parent that is gone is noticed by whoever reads from it next.
        let _told = send(self.control, &Reply::Present(covered), &[]);
    }

    /// Serves until parent or worker is gone, cleans up, and ends the process. `complaints` is what the worker
    /// writes errors to as long as it is not this program yet.
    pub(crate) fn serve(mut self, worker: Pid, complaints: Option<OwnedFd>) -> ! {
        // The name only helps a person reading a process list.
        let _named = prctl::set_name(c"stockade-keep");
        self.complaints = complaints;
        let mut worker = Some(worker);
        let signals = self.watch_over(&mut worker);
        self.finish(worker, signals.as_ref())
    }

    /// Serves; gives back where ended children are told of. A worker that has ended is nobody any more.
    fn watch_over(&mut self, worker: &mut Option<Pid>) -> Option<SignalFd> {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        let Ok(signals) = mask
            .thread_block()
            .and_then(|()| SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK))
        else {
            return None;
        };
        while !is_gone(worker) {
            let timeout = if self.samples.is_empty() {
                PollTimeout::NONE
            } else {
                PollTimeout::try_from(SAMPLE_EVERY).unwrap_or(PollTimeout::ZERO)
            };
            let mut fds = vec![
                // No event is asked for: what is reported is the hang-up.
                PollFd::new(self.control.as_fd(), PollFlags::empty()),
                PollFd::new(self.link.as_fd(), PollFlags::POLLIN),
                PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            ];
            fds.extend(self.aside.iter().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
            match poll(&mut fds, timeout) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => break,
            }
            let told = |at: usize| fds.get(at).is_some_and(|fd| fd.any().unwrap_or(true));
            let (control, link, child, aside) = (told(0), told(1), told(2), told(3));
            if control {
                break;
            }
            if child {
                while let Ok(Some(_)) = signals.read_signal() {}
            }
            if link && !self.answer() {
                break;
            }
            if aside {
                self.answer_aside();
            }
            if !self.samples.take() {
                break;
            }
        }
        Some(signals)
    }

    /// Answers one message; `false` when the worker's end is closed or broken.
    fn answer(&mut self) -> bool {
        let Ok(Some((request, fds))) = receive::<KeeperRequest>(&self.link) else {
            return false;
        };
        self.hold_session();
        let reply = match request {
            KeeperRequest::Snapshot => match self.snapshot() {
                Ok(()) => KeeperReply::Recorded,
                Err(why) => KeeperReply::Failed(why),
            },
            KeeperRequest::Forget => {
                if self.prepared.take().is_some() {
                    // Nobody has claimed it, so no start takes it for something to restore.
                    let _released = self.release();
                }
                return true;
            }
            KeeperRequest::Settle => {
                let (violations, unsettled) = bounded(self.settle());
                let told = send(&self.link, &KeeperReply::Settled(violations, unsettled), &[]);
                // Nobody waits for what only spares the next start some work.
                if let Some(known) = &mut self.known {
                    known.keep();
                }
                return told.is_ok();
            }
            KeeperRequest::Watch { call, limits } => {
                let Some(runner) = fds.into_iter().next() else {
                    return false;
                };
                self.samples.begin(call, runner, limits);
                return true;
            }
            KeeperRequest::Unwatch { call } => {
                self.samples.end(call);
                return true;
            }
        };
        send(&self.link, &reply, &[]).is_ok()
    }

    /// Answers the parent; a socket that is closed or broken is not listened to any more.
    fn answer_aside(&mut self) {
        let Some(aside) = &self.aside else { return };
        let answer = match receive::<Inquiry>(aside) {
            Ok(Some((Inquiry::Expected, _))) => return self.expect(),
            Ok(Some((Inquiry::Offers, _))) => Answer::Offers(offers(self.offers.as_ref())),
            Ok(Some((Inquiry::PutBack { number, digest }, _))) => {
                Answer::PutBack(put_back(self.offers.as_mut(), number, &digest))
            }
            Ok(None) | Err(_) => {
                self.aside = None;
                return;
            }
        };
        if send(aside, &answer, &[]).is_err() {
            self.aside = None;
        }
    }

    /// Records protected names while the parent makes ready the command that it is about to start.
    fn expect(&mut self) {
        // What is recorded holds for a command that runs, or for this one already.
        if self.guard.is_none() && self.shown.failed().is_none() {
            // Why it cannot be recorded is told when the command asks for it.
            self.prepared = self.record().ok().map(|()| Instant::now() + STAYS_FRESH_AT_ONCE);
        }
    }

    /// Has the protected names recorded for a command that starts now.
    fn snapshot(&mut self) -> Result<(), String> {
        if let Some(why) = self.shown.failed() {
            return Err(why);
        }
        match self.prepared.take() {
            Some(until) if Instant::now() < until => {}
            Some(_) => {
                self.release()?;
                self.record()?;
            }
            None => self.record()?,
        }
        let shown = &self.shown;
        let ready = |guard: &mut protect::Guard| shown.lay(guard).and_then(|()| guard.claim());
        let claimed = self.guard.as_mut().map_or(Ok(()), ready);
        claimed.map_err(|error| {
            // Nobody may settle what no command came for.
            let released = self.release().err();
            released
                .into_iter()
                .fold(error.to_string(), |told, why| format!("{told}; {why}"))
        })
    }

    /// Records them where that failed before.
    fn record_once(&mut self) -> Result<(), String> {
        if self.guard.is_none() {
            self.record()?;
            self.prepared = Some(Instant::now() + STAYS_FRESH);
        }
        Ok(())
    }

    /// Records the protected names, for nobody yet.
    fn record(&mut self) -> Result<(), String> {
        let Some(setup) = self.protect.clone() else {
            return Ok(());
        };
        let paths = |list: &[OsString]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        let (roots, extra, store) = (paths(&setup.roots), paths(&setup.extra), Path::new(&setup.store));
        if let Some(left) = self.unrecovered.iter().find(|left| left.concerns(&roots)) {
            return Err(left.explain(&store.join("journal")));
        }
        // An older guard is settled before it is replaced, so that nothing escapes between two commands.
        if self.guard.is_some() {
            let (violations, unsettled) = self.settle();
            self.recovered = violations;
            if let Some(why) = unsettled {
                return Err(why);
            }
        }
        // Offers expire when the next command starts.
        self.offers = None;
        let guard = protect::Guard::ahead(&roots, &extra, store, &setup.person, self.known.as_ref());
        self.guard = Some(guard.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// What was put back, and why the rest could not be.
    fn settle(&mut self) -> (Vec<Violation>, Option<String>) {
        let mut violations = std::mem::take(&mut self.recovered);
        // No command came for it.
        if self.prepared.take().is_some() {
            return (violations, self.release().err());
        }
        let Some(guard) = self.guard.take() else {
            return (violations, None);
        };
        let protect::After { settled, known, offers } = guard.settle_knowing(self.shown.copies());
        self.known = known;
        self.offers = offers;
        violations.extend(settled.violations.into_iter().map(reported));
        (violations, summary(&settled.errors))
    }

    /// Forgets what was recorded for a command that never came.
    fn release(&mut self) -> Result<(), String> {
        match self.guard.take() {
            Some(guard) => guard.release().map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Restores what a session that was killed with all its processes left; told with the next command.
    fn recover(&mut self) {
        let Some(setup) = &self.protect else { return };
        let recovered = protect::recover(setup.store.as_ref());
        self.recovered.extend(recovered.violations.into_iter().map(reported));
        // Names that cannot be put back now would be taken for the state to keep.
        self.unrecovered = recovered.failures;
    }

    /// Tells the parent what bwrap complained about, if the worker never came to be. Everything that held the
    /// other end is dead.
    fn pass_on(&mut self) {
        let Some(failure) = self.complaints.take().and_then(complaint::read) else {
            return;
        };
        // A worker that spoke for itself has been heard first; the parent may be gone.
        let _told = send(self.control, &Reply::Refused(failure), &[]);
    }

    fn finish(&mut self, worker: Option<Pid>, signals: Option<&SignalFd>) -> ! {
        self.hold_session();
        session::prune(&self.session);
        let (mut worker, deadline) = (worker, Instant::now() + WORKER_GRACE);
        while !is_gone(&mut worker) && Instant::now() < deadline {
            wait_for_child(signals, deadline);
        }
        if let Some(worker) = worker {
            // It may have ended now; the sweep below reaps it.
            let _killed = kill(worker, Signal::SIGKILL);
        }
        sweep::kill_descendants();
        self.pass_on();
        // If settling fails the journal stays, and the next start restores from it.
        let (violations, unsettled) = bounded(self.settle());
        // The parent may be gone; where it is the worker that went in mid-call, nobody else can say what was put back.
        let _told = send(self.control, &Reply::Lost(violations, unsettled), &[]);
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

/// Whether the worker has ended, which it has told of then: its number may be another's. As long as it lives, what its tree
/// leaves behind is its own to reap.
fn is_gone(worker: &mut Option<Pid>) -> bool {
    let Some(pid) = *worker else { return true };
    match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => false,
        Ok(_) | Err(_) => {
            *worker = None;
            true
        }
    }
}
