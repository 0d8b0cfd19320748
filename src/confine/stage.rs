//! The stage: this binary re-executed, single-threaded, decided before any runtime exists.
//!
//! Order: own session and nothing but the control socket · capabilities · `no_new_privs` · fork. What
//! comes after the fork is told in [`super::keeper`] and [`super::worker`].

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socketpair, sockopt};
use nix::sys::stat::Mode;
use nix::unistd::{chdir, getpid, setsid};

use super::protocol::{Announcement, Reply, StartFailure, Step};
use super::wire::{receive, send};
use super::{keeper, privilege, session, sys, worker};

/// The hidden subcommand that makes a process the stage.
pub const SUBCOMMAND: &str = "__stage";

/// The stage's exit code when it was not started by a Stockade parent.
const NOT_A_STAGE: i32 = 125;

/// Becomes the stage: never returns. Standard input must be the parent's control socket.
pub fn main() -> ! {
    let Ok(control) = enter() else {
        sys::exit_now(NOT_A_STAGE)
    };
    let Ok(Some((announcement, _))) = receive::<Announcement>(&control) else {
        sys::exit_now(NOT_A_STAGE)
    };
    let session = PathBuf::from(&announcement.session);
    let failure = match prepare() {
        Ok(()) => become_both(&control, &session, announcement),
        Err(failure) => failure,
    };
    session::remove(&session);
    refuse(&control, failure)
}

/// Tells the parent why nothing can start, and ends.
pub(crate) fn refuse(control: &OwnedFd, failure: StartFailure) -> ! {
    // The parent reads end-of-file if even this cannot be sent, which is a refusal as well.
    let _told = send(control, &Reply::Refused(failure), &[]);
    sys::exit_now(1)
}

fn enter() -> nix::Result<OwnedFd> {
    sys::close_from(3)?;
    let null = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
    let control = sys::take_stdin(null.as_fd())?;
    match getsockopt(&control, sockopt::SockType)? {
        SockType::Stream => Ok(control),
        _ => Err(Errno::ENOTSOCK),
    }
}

fn prepare() -> Result<(), StartFailure> {
    let at = |step| StartFailure::at(step);
    sys::reset_signals().map_err(at(Step::Session))?;
    sys::ignore_stops().map_err(at(Step::Session))?;
    setsid().map_err(at(Step::Session))?;
    chdir("/").map_err(at(Step::Session))?;
    prctl::set_dumpable(false).map_err(at(Step::Session))?;
    // One byte, not none: a core that is piped to a program ignores a limit of zero.
    setrlimit(Resource::RLIMIT_CORE, 1, 1).map_err(at(Step::Limits))?;
    privilege::drop_all()?;
    prctl::set_no_new_privs().map_err(at(Step::NoNewPrivileges))
}

fn become_both(control: &OwnedFd, session: &Path, announcement: Announcement) -> StartFailure {
    let linked = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC);
    let (keeper_end, worker_end) = match linked {
        Ok(ends) => ends,
        Err(errno) => return StartFailure::new(Step::Fork, errno, "the link between keeper and worker"),
    };
    if let Err(errno) = prctl::set_child_subreaper(true) {
        return StartFailure::new(Step::Fork, errno, "child subreaper");
    }
    let keeper = getpid();
    match sys::fork() {
        Ok(Some(worker)) => {
            drop(worker_end);
            keeper::Keeper::new(control, keeper_end, worker, session.to_owned(), announcement.protect).serve()
        }
        Ok(None) => {
            drop(keeper_end);
            worker::main(control, worker_end, keeper, session)
        }
        Err(errno) => StartFailure::new(Step::Fork, errno, "the worker"),
    }
}
