//! The start of the supervisor: this binary re-executed, single-threaded, before any runtime exists.
//!
//! Order: own session and nothing but the control socket · capabilities · `no_new_privs` · fork. What
//! comes after the fork is told in [`crate::confine::supervisor::serve`] and [`crate::confine::forker::serve`]; between fork and forker there may be
//! the way into namespaces, [`crate::confine::forker::entry`].

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socketpair, sockopt};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, chdir, getpgid, getpid, getppid, pipe2, setpgid, setsid};

use crate::backend::host::PROBE;
use crate::confine::forker::entry::INSIDE;
use crate::confine::forker::forker_parent::ForkerParent;
use crate::confine::forker::{self, entry};
use crate::confine::layers::{descriptors, privilege};
use crate::confine::supervisor::serve;
use crate::confine::wire::protocol::{Announcement, ForkerLocation, StartFailure, Step};
use crate::confine::wire::receive;
use crate::confine::wire::refusal::send_refusal;
use crate::confine::{namespaces, session, sys};

/// The hidden subcommand that makes a process the supervisor.
pub const SUBCOMMAND: &str = "__supervisor";

/// The supervisor's exit code when it was not started by a Stockade parent.
const NOT_A_SUPERVISOR: i32 = 125;

/// Whether the first argument of this program says that it was started to confine commands, or to try that; then [`main`] must be
/// called before anything else.
pub fn is_internal_subcommand(first: &OsStr) -> bool {
    first == SUBCOMMAND || first == INSIDE || first == PROBE
}

/// How many threads there were when [`init`] was called in this process; 0 before that.
static THREADS_AT_INIT: AtomicUsize = AtomicUsize::new(0);

/// Whether a process that this program starts of itself would become the confined child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initialized {
    /// [`init`] was not called.
    No,
    /// It was called when there were this many threads: the child would have them, too, and its descriptors would be closed
    /// under them.
    Late(usize),
    /// It was called in time.
    Yes,
}

/// Becomes the confined child, where this process was started as one; else returns.
pub fn init() {
    let threads = threads();
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| is_internal_subcommand(&first))
    {
        if threads > 1 {
            sys::exit_now(NOT_A_SUPERVISOR);
        }
        main();
    }
    THREADS_AT_INIT.store(threads, Ordering::Relaxed);
}

/// Whether [`init`] was called in this process, and in time.
pub fn initialized() -> Initialized {
    match THREADS_AT_INIT.load(Ordering::Relaxed) {
        0 => Initialized::No,
        1 => Initialized::Yes,
        threads => Initialized::Late(threads),
    }
}

/// The threads of this process; 1 where they cannot be counted.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, |threads| threads.count().max(1))
}

/// As if [`init`] had been called in time. Tests have threads, and start no child.
#[cfg(test)]
pub(crate) fn assume_initialized() {
    THREADS_AT_INIT.store(1, Ordering::Relaxed);
}

/// Becomes the supervisor, the forker inside namespaces, or a probe: never returns.
pub fn main() -> ! {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == INSIDE => entry::inside(arguments),
        Some(first) if first == PROBE => namespaces::probe(arguments),
        Some(_) | None => run_supervisor(),
    }
}

/// The supervisor. Standard input must be the parent's control socket.
fn run_supervisor() -> ! {
    // Nothing is owned at or above 3 before `enter` says so.
    let closed = descriptors::close_all();
    let Ok(control) = enter() else {
        sys::exit_now(NOT_A_SUPERVISOR)
    };
    let detached = closed.and_then(|()| detach());
    let Ok(Some((announcement, fds))) = receive::<Announcement>(&control) else {
        sys::exit_now(NOT_A_SUPERVISOR)
    };
    let Ok([side_channel]) = <[OwnedFd; 1]>::try_from(fds) else {
        sys::exit_now(NOT_A_SUPERVISOR)
    };
    let session = PathBuf::from(&announcement.session);
    // So that sampling and killing a fork bomb is not delayed. The capability for it is dropped next.
    let _prioritised = sys::raise_priority();
    let failure = match detached.and_then(|()| privilege::prepare(announcement.location)) {
        Ok(()) => start_processes(&control, side_channel, &session, announcement),
        Err(failure) => failure,
    };
    // Before the session is removed, so that the parent knows why it is.
    send_refusal(&control, failure);
    session::remove(&session);
    sys::exit_now(1)
}

fn enter() -> nix::Result<OwnedFd> {
    let null = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
    let control = sys::take_stdin(null.as_fd())?;
    match getsockopt(&control, sockopt::SockType)? {
        SockType::Stream => Ok(control),
        _ => Err(Errno::ENOTSOCK),
    }
}

fn detach() -> Result<(), StartFailure> {
    let at = |step| StartFailure::at(step);
    sys::reset_signals().map_err(at(Step::Session))?;
    sys::ignore_termination().map_err(at(Step::Session))?;
    // A group leader cannot begin a session, so it joins the parent's group for a moment, with terminal signals ignored.
    setpgid(Pid::from_raw(0), getpgid(Some(getppid())).map_err(at(Step::Session))?).map_err(at(Step::Session))?;
    setsid().map_err(at(Step::Session))?;
    chdir("/").map_err(at(Step::Session))?;
    prctl::set_dumpable(false).map_err(at(Step::Session))?;
    disable_core_dumps()
}

fn disable_core_dumps() -> Result<(), StartFailure> {
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

fn start_processes(
    control: &OwnedFd,
    side_channel: OwnedFd,
    session: &Path,
    announcement: Announcement,
) -> StartFailure {
    let pair = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC);
    let (supervisor_end, forker_end) = match pair {
        Ok(ends) => ends,
        Err(errno) => return StartFailure::new(Step::Fork, errno, "the link between supervisor and forker"),
    };
    if let Err(errno) = prctl::set_child_subreaper(true) {
        return StartFailure::new(Step::Fork, errno, "child subreaper");
    }
    let failed = |what: &'static str| move |errno| StartFailure::new(Step::Fork, errno, what);
    let mut supervisor = serve::Supervisor::new(
        control,
        supervisor_end,
        side_channel,
        session.to_owned(),
        announcement.protect,
    );
    let me = getpid();
    match announcement.location {
        // The forker waits for the plan, which the parent makes meanwhile.
        ForkerLocation::Host => match sys::fork() {
            Ok(Some(forker)) => {
                drop(forker_end);
                supervisor.prepare();
                supervisor.serve(forker, None)
            }
            Ok(None) => {
                drop(supervisor);
                forker::serve::main(control, forker_end, ForkerParent::Supervisor(me), session)
            }
            Err(errno) => failed("the forker")(errno),
        },
        ForkerLocation::Namespaces(network) => match sys::fork() {
            Ok(Some(forker)) => {
                drop(forker_end);
                // Only the child needs these capabilities. It dies with the supervisor if this fails.
                if let Err(failure) = privilege::drop_all() {
                    return failure;
                }
                supervisor.prepare();
                supervisor.report_names_to_cover();
                supervisor.serve(forker, None)
            }
            Ok(None) => {
                drop(supervisor);
                entry::make(control, forker_end, me, session, network)
            }
            Err(errno) => failed("namespaces")(errno),
        },
        ForkerLocation::Bwrap => {
            supervisor.prepare();
            supervisor.report_names_to_cover();
            let (bwrap_stderr, bwrap_stderr_end) = match pipe2(OFlag::O_CLOEXEC) {
                Ok(ends) => ends,
                Err(errno) => return failed("a pipe for bwrap")(errno),
            };
            match sys::fork() {
                Ok(Some(forker)) => {
                    drop((forker_end, bwrap_stderr_end));
                    // Only bwrap needs these capabilities. It dies with the supervisor if this fails.
                    match privilege::drop_all() {
                        Ok(()) => supervisor.serve(forker, Some(bwrap_stderr)),
                        Err(failure) => failure,
                    }
                }
                Ok(None) => {
                    // Not dropped: that would release the supervisor's lock on the session, which is shared. The next step closes
                    // all descriptors that it does not need.
                    std::mem::forget((supervisor, bwrap_stderr));
                    entry::wrap(control, &forker_end, &bwrap_stderr_end, me, session)
                }
                Err(errno) => failed("bwrap")(errno),
            }
        }
    }
}
