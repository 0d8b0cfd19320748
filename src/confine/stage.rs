//! The stage: this binary re-executed, single-threaded, decided before any runtime exists.
//!
//! Order: own session and nothing but the control socket · capabilities · `no_new_privs` · fork. What
//! comes after the fork is told in [`super::keeper`] and [`super::worker`]; between fork and worker there may be
//! the way into namespaces, told in [`super::entry`].

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socketpair, sockopt};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, chdir, getpgid, getpid, getppid, pipe2, setpgid, setsid};

use super::above::Above;
use super::entry::INSIDE;
use super::protocol::{Announcement, Place, StartFailure, Step};
use super::refusal::tell;
use super::wire::receive;
use super::{entry, keeper, namespaces, privilege, session, sys, worker};
use crate::backend::host::PROBE;

/// The hidden subcommand that makes a process the stage.
pub const SUBCOMMAND: &str = "__stage";

/// The descriptors of a program that starts a stage have lower numbers.
const FEW: RawFd = 1024;

/// The stage's exit code when it was not started by a Stockade parent.
const NOT_A_STAGE: i32 = 125;

/// Whether the first argument of this program says that it was started to confine commands, or to try that; then [`main`] must be
/// called before anything else.
pub fn is_ours(first: &OsStr) -> bool {
    first == SUBCOMMAND || first == INSIDE || first == PROBE
}

/// Becomes the stage, the worker inside namespaces, or a probe: never returns.
pub fn main() -> ! {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == INSIDE => entry::inside(arguments),
        Some(first) if first == PROBE => namespaces::probe(arguments),
        Some(_) | None => outside(),
    }
}

/// The stage. Standard input must be the parent's control socket.
fn outside() -> ! {
    // Nothing is owned at or above 3 before `enter` says so.
    let closed = close_all();
    let Ok(control) = enter() else {
        sys::exit_now(NOT_A_STAGE)
    };
    let begun = closed.and_then(|()| stand_alone());
    let Ok(Some((announcement, along))) = receive::<Announcement>(&control) else {
        sys::exit_now(NOT_A_STAGE)
    };
    let Ok([aside]) = <[OwnedFd; 1]>::try_from(along) else {
        sys::exit_now(NOT_A_STAGE)
    };
    let session = PathBuf::from(&announcement.session);
    // The keeper samples a fork bomb and the runner kills it. Without this they do so later. The right to it is given up next.
    let _scheduled = sys::come_first();
    let failure = match begun.and_then(|()| prepare(announcement.place)) {
        Ok(()) => become_both(&control, aside, &session, announcement),
        Err(failure) => failure,
    };
    // Before the parent can miss the session: it is to know why.
    tell(&control, failure);
    session::remove(&session);
    sys::exit_now(1)
}

/// Closes all descriptors but the standard ones. Nothing may be owned beyond them.
pub(crate) fn close_all() -> Result<(), StartFailure> {
    sys::close_from(3).map_err(|errno| {
        // Nothing starts; but while this process holds the parent's end of the control socket it does not hear of its end.
        sys::close_each(3..FEW);
        StartFailure::new(Step::Descriptors, errno, "close_range")
    })
}

fn enter() -> nix::Result<OwnedFd> {
    let null = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
    let control = sys::take_stdin(null.as_fd())?;
    match getsockopt(&control, sockopt::SockType)? {
        SockType::Stream => Ok(control),
        _ => Err(Errno::ENOTSOCK),
    }
}

fn stand_alone() -> Result<(), StartFailure> {
    let at = |step| StartFailure::at(step);
    sys::reset_signals().map_err(at(Step::Session))?;
    sys::ignore_stops().map_err(at(Step::Session))?;
    // Who leads a group begins no session. In the parent's it is for this moment, in which it ignores what the terminal sends.
    setpgid(Pid::from_raw(0), getpgid(Some(getppid())).map_err(at(Step::Session))?).map_err(at(Step::Session))?;
    setsid().map_err(at(Step::Session))?;
    chdir("/").map_err(at(Step::Session))?;
    prctl::set_dumpable(false).map_err(at(Step::Session))?;
    leave_no_core()
}

fn leave_no_core() -> Result<(), StartFailure> {
    // One byte, not none: a core that is piped to a program ignores a limit of zero.
    let Err(errno) = setrlimit(Resource::RLIMIT_CORE, 1, 1) else {
        return Ok(());
    };
    let is_none = getrlimit(Resource::RLIMIT_CORE) == Ok((0, 0));
    match std::fs::read("/proc/sys/kernel/core_pattern") {
        Ok(pattern) if is_none && !pattern.starts_with(b"|") => Ok(()),
        Ok(_) | Err(_) => Err(StartFailure::new(
            Step::Limits,
            errno,
            "a core that goes to a program (kernel.core_pattern) ignores the hard limit of 0; one of 1 stops it",
        )),
    }
}

/// Gives up what a process at this place does not need.
pub(crate) fn prepare(place: Place) -> Result<(), StartFailure> {
    match place {
        Place::Host => privilege::drop_all()?,
        Place::Namespaces(_) | Place::Bwrap => privilege::drop_for_namespaces()?,
    }
    prctl::set_no_new_privs().map_err(StartFailure::at(Step::NoNewPrivileges))
}

fn become_both(control: &OwnedFd, aside: OwnedFd, session: &Path, announcement: Announcement) -> StartFailure {
    let linked = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC);
    let (keeper_end, worker_end) = match linked {
        Ok(ends) => ends,
        Err(errno) => return StartFailure::new(Step::Fork, errno, "the link between keeper and worker"),
    };
    if let Err(errno) = prctl::set_child_subreaper(true) {
        return StartFailure::new(Step::Fork, errno, "child subreaper");
    }
    let failed = |what: &'static str| move |errno| StartFailure::new(Step::Fork, errno, what);
    let mut keeper = keeper::Keeper::new(control, keeper_end, aside, session.to_owned(), announcement.protect);
    let keeping = getpid();
    match announcement.place {
        // The worker has nothing to do until the plan is made, which the parent works on elsewhere.
        Place::Host => match sys::fork() {
            Ok(Some(worker)) => {
                drop(worker_end);
                keeper.prepare();
                keeper.serve(worker, None)
            }
            Ok(None) => {
                drop(keeper);
                worker::main(control, worker_end, Above::Keeper(keeping), session)
            }
            Err(errno) => failed("the worker")(errno),
        },
        Place::Namespaces(network) => match sys::fork() {
            Ok(Some(worker)) => {
                drop(worker_end);
                // What the other one needs the keeper does not. It ends with the keeper if this fails.
                if let Err(failure) = privilege::drop_all() {
                    return failure;
                }
                keeper.prepare();
                keeper.tell_present();
                keeper.serve(worker, None)
            }
            Ok(None) => {
                drop(keeper);
                entry::make(control, worker_end, keeping, session, network)
            }
            Err(errno) => failed("namespaces")(errno),
        },
        Place::Bwrap => {
            keeper.prepare();
            keeper.tell_present();
            let (complaints, complaining) = match pipe2(OFlag::O_CLOEXEC) {
                Ok(ends) => ends,
                Err(errno) => return failed("a pipe for bwrap")(errno),
            };
            match sys::fork() {
                Ok(Some(worker)) => {
                    drop((worker_end, complaining));
                    // What bwrap needs the keeper does not. It ends with the keeper if this fails.
                    match privilege::drop_all() {
                        Ok(()) => keeper.serve(worker, Some(complaints)),
                        Err(failure) => failure,
                    }
                }
                Ok(None) => {
                    // Not dropped: the lock on the session is the keeper's as well, and would be given back for both.
                    // Whatever comes next closes all but what it needs.
                    std::mem::forget((keeper, complaints));
                    entry::wrap(control, &worker_end, &complaining, keeping, session)
                }
                Err(errno) => failed("bwrap")(errno),
            }
        }
    }
}
