//! The forker's loop: it confines itself once, and serves commands until the parent closes the socket.
//!
//! A forker serves one profile. It compiles the profile's layer once and stands in it itself, so that its commands
//! do; each of them gets a layer of its own with scopes of its own. Each command gets a runner; the forker asks
//! the supervisor to record and settle protected names around it, and passes the runner's report on.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::backend::NetworkExit;
use crate::confine::forker::compiled::{self, Compiled};
use crate::confine::forker::counting::Counter;
use crate::confine::forker::forker_parent::ForkerParent;
use crate::confine::forker::mounts::{Changed, Mounts};
use crate::confine::forker::spare::Spare;
use crate::confine::layers::selftest;
use crate::confine::way_out::inside::{self, UsedPorts};
use crate::confine::wire::attempted::Attempted;
use crate::confine::wire::protocol::{
    End, Ended, PutBack, Reply, Request, RunnerReport, RunnerRequest, SetupMessage, StartFailure, Step, Watch,
};
use crate::confine::wire::refusal::refuse;
use crate::confine::wire::{receive, send};
use crate::confine::{sweep, sys};
use crate::policy::path::display;

/// The interval of mount checks while a command runs.
const MOUNT_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The number of commands after which a spare runner is prepared. Many sessions have one command.
pub(crate) const CALLS_BEFORE_SPARE: u8 = 2;

/// Whether the supervisor samples the tree of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampling {
    On,
    Off,
}

/// The forker's state.
pub(crate) struct Forker<'a> {
    pub(crate) control: &'a OwnedFd,
    pub(crate) link: OwnedFd,
    pub(crate) parent: ForkerParent,
    /// The mounts of the profile, in namespaces.
    mounts: Option<Mounts>,
    /// `None` where nothing confines commands.
    pub(crate) compiled: Option<Compiled>,
    pub(crate) canaries: selftest::Canaries,
    pub(crate) counter: Counter,
    pub(crate) active: BTreeMap<u64, Active>,
    pub(crate) spare: Option<Spare>,
    /// How many more commands come before a spare is prepared.
    pub(crate) calls_before_spare: u8,
    used: UsedPorts,
}

/// A command under way.
pub(crate) struct Active {
    pub(crate) runner: Pid,
    pub(crate) report: OwnedFd,
    pub(crate) watch: Watch,
    pub(crate) sampling: Sampling,
}

/// Waits for the setup and begins; never returns.
pub(crate) fn main(control: &OwnedFd, link: OwnedFd, parent: ForkerParent, session: &Path) -> ! {
    let setup = receive_setup(control);
    begin(control, link, parent, setup, session)
}

pub(crate) fn receive_setup(control: &OwnedFd) -> SetupMessage {
    match receive::<SetupMessage>(control) {
        Ok(Some((setup, _))) => setup,
        // The parent gave up, or is dead.
        Ok(None) => sys::exit_now(0),
        Err(error) => refuse(
            control,
            StartFailure::new(Step::Setup, Errno::EPROTO, error.to_string()),
        ),
    }
}

/// Confines this process as the setup says, proves it, and serves; never returns.
pub(crate) fn begin(control: &OwnedFd, link: OwnedFd, parent: ForkerParent, setup: SetupMessage, session: &Path) -> ! {
    let canaries = selftest::Canaries::of(session, parent);
    let (compiled, mounts) = match compiled::confine(parent, setup) {
        Ok(confined) => confined,
        Err(failure) => refuse(control, failure),
    };
    if let Some(Compiled { plan, .. }) = &compiled
        && let Err(hole) = selftest::forker(&canaries, parent, plan)
    {
        let _sent = send(control, &Reply::SelfTestFailed(hole), &[]);
        sys::exit_now(1);
    }
    if send(control, &Reply::Ready, &[]).is_err() {
        sys::exit_now(1);
    }
    let forker = Forker {
        control,
        link,
        parent,
        mounts,
        compiled,
        canaries,
        counter: Counter::default(),
        active: BTreeMap::new(),
        spare: None,
        calls_before_spare: CALLS_BEFORE_SPARE,
        used: UsedPorts::default(),
    };
    forker.serve()
}

impl Forker<'_> {
    fn serve(mut self) -> ! {
        loop {
            self.make_spare();
            let calls: Vec<u64> = self.active.keys().copied().collect();
            let mut fds = vec![PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
            let watched = self.mounts.as_ref().map(|mounts| {
                fds.push(PollFd::new(mounts.as_fd(), PollFlags::POLLPRI));
            });
            let first = fds.len();
            fds.extend(
                self.active
                    .values()
                    .map(|active| PollFd::new(active.report.as_fd(), PollFlags::POLLIN)),
            );
            let spare = self.spare.as_ref().map(|spare| {
                fds.push(PollFd::new(spare.report.as_fd(), PollFlags::POLLIN));
                fds.len() - 1
            });
            let timeout = if watched.is_none() || self.active.is_empty() {
                PollTimeout::NONE
            } else {
                PollTimeout::try_from(MOUNT_CHECK_INTERVAL).unwrap_or(PollTimeout::ZERO)
            };
            match poll(&mut fds, timeout) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(_) => self.end(),
            }
            let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(true)).collect();
            if spare.is_some_and(|at| ready.get(at).copied().unwrap_or(true)) {
                // It failed or was killed. If that repeats, the next command reports why.
                self.dismiss_spare();
                self.calls_before_spare = CALLS_BEFORE_SPARE;
                if self.active.is_empty() {
                    // The command of a killed runner is the forker's child now.
                    sweep::reap();
                }
            }
            // On every round, because the kernel does not notify about mounts that move with their file. No end is reported and
            // nothing is started before this check.
            self.check_mounts(self.active.is_empty());
            for (call, _) in calls.iter().zip(ready.iter().skip(first)).filter(|(_, ready)| **ready) {
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

    /// Ends everything when a mount of the profile is missing: what is at that path then was never judged. A missing cover of a
    /// protected name counts only `before_a_command`: changes while one runs are undone after it.
    fn check_mounts(&mut self, before_a_command: bool) {
        let Some(mounts) = &mut self.mounts else { return };
        let (step, missing) = match mounts.changed() {
            Ok(Changed::Nothing) => return,
            Ok(Changed::Protected) if !before_a_command => return,
            Ok(Changed::Protected) => (Step::Covers, "a protected or denied name".to_owned()),
            Ok(Changed::Missing(path)) => (Step::Mounts, display(&path)),
            Err(errno) => (Step::Mounts, errno.desc().to_owned()),
        };
        self.kill_everything();
        let what = format!("{missing} was replaced on the host while the sandbox held it; every command was killed");
        refuse(self.control, StartFailure::new(step, Errno::ESTALE, what))
    }

    fn take(&mut self, request: Request, fds: Vec<OwnedFd>) {
        match request {
            Request::Start(start) => {
                let (call, watch) = (start.call, start.work.watch());
                let is_watched = |active: &Active| active.watch == Watch::ProtectedNames;
                if watch == Watch::ProtectedNames && !self.active.values().any(is_watched) {
                    // A file server that only reads needs no covers, so with it alone they are checked again.
                    self.check_mounts(true);
                }
                if let Err(failure) = self.start(start, fds) {
                    // Its snapshot must not stay for a later command, after which a person's changes would be undone.
                    let put_back = if self.active.values().any(|active| active.watch == watch) {
                        PutBack::default()
                    } else {
                        self.settle(watch)
                    };
                    self.reply(Ended {
                        call,
                        end: End::NotStarted(failure),
                        put_back,
                        attempted: Attempted::default(),
                    });
                }
            }
            Request::WayOut => self.make_way_out(),
            Request::Cancel { call, signal } => {
                if let Some(active) = self.active.get(&call) {
                    // A runner that has just ended needs no stop.
                    let _sent = send(&active.report, &RunnerRequest::Stop { signal }, &[]);
                }
            }
        }
    }

    /// Makes a way out and sends its sockets to the parent; none stays open here.
    fn make_way_out(&mut self) {
        let namespace_plan = self
            .compiled
            .as_ref()
            .and_then(|compiled| compiled.plan.namespaces.as_ref());
        let made = match namespace_plan.map(|namespace_plan| namespace_plan.exit) {
            // A running command could use the next one's way out.
            Some(NetworkExit::Proxy) if self.active.values().all(|active| active.watch == Watch::Nothing) => {
                inside::open(&mut self.used)
            }
            Some(NetworkExit::Proxy) => Err(StartFailure::new(Step::WayOut, Errno::EBUSY, "a command is alive")),
            Some(NetworkExit::None) | None => Err(StartFailure::new(Step::WayOut, Errno::EPROTO, "the plan has none")),
        };
        let (reply, sockets) = match made {
            Ok((addresses, sockets)) => (Ok(addresses), sockets),
            Err(failure) => (Err(failure), Vec::new()),
        };
        let raw: Vec<RawFd> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
        if send(self.control, &Reply::WayOut(reply), &raw).is_err() {
            self.end();
        }
    }

    /// Receives a runner's report. The command's tree is dead by then, or is killed here.
    fn conclude(&mut self, call: u64) {
        let Some(active) = self.active.remove(&call) else {
            return;
        };
        let report = if let Ok(Some((report, _))) = receive::<RunnerReport>(&active.report) {
            report
        } else {
            // A runner never ends without a report unless it was killed. Its command's processes are
            // now children of the forker, mixed with those of other calls, so everything goes.
            self.lose_everything();
            RunnerReport {
                end: End::Lost,
                attempted: Attempted::default(),
            }
        };
        let Active {
            runner,
            watch,
            sampling,
            ..
        } = active;
        self.unwatch(call, sampling);
        // It has reported, or is dead: this does not block.
        let _reaped = waitpid(runner, None);
        let put_back = self.settle(watch);
        self.reply(Ended {
            call,
            end: report.end,
            put_back,
            attempted: report.attempted,
        });
    }

    fn reply(&self, ended: Ended) {
        if send(self.control, &Reply::Ended(ended), &[]).is_err() {
            self.end();
        }
    }

    /// Kills everything, the spare runner included.
    pub(crate) fn lose_everything(&mut self) {
        self.kill_everything();
        self.spare = None;
        self.calls_before_spare = CALLS_BEFORE_SPARE;
    }

    fn kill_everything(&self) {
        let is_alone = match self.parent {
            ForkerParent::Supervisor(pid) => self.compiled.is_some() && selftest::signals_are_scoped(pid),
            // All others in the namespace.
            ForkerParent::Hidden => true,
        };
        if is_alone {
            sweep::kill_scoped();
        } else {
            sweep::kill_descendants();
        }
    }

    pub(crate) fn end(&self) -> ! {
        self.kill_everything();
        sys::exit_now(0)
    }
}
