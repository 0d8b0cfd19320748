//! Processes: forking, descriptors, signals, filters.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::{ForkResult, Pid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Duplicates the process.
///
/// Call it only from a single-threaded process (the supervisor and what descends from it, and the parent before it starts a
/// thread): then the child may allocate and lock, because no other thread can have held a lock across the fork.
pub(crate) fn fork() -> nix::Result<Option<Pid>> {
    // SAFETY: the supervisor starts no thread, and was executed or forked from a process without others; only it, its descendants and
    // such a process call this, so the child inherits no lock held by a thread that does not exist in it.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(Some(child)),
        ForkResult::Child => Ok(None),
    }
}

/// The slice that [`raise_priority`] asks for, in nanoseconds: the shortest that the kernel grants.
const SHORTEST_SLICE: u64 = 100_000;
/// The most that a process weighs against others (setpriority(2)).
const HEAVIEST: i32 = -20;
/// The lowest real-time priority: before everything ordinary, after everything that was given one.
const LOWEST_REAL_TIME: u32 = 1;

/// Raises the priority of this process and its descendants, as far as permitted.
///
/// It is for the processes that must end a fork bomb: among thousands of runnable processes an equal share is next to nothing, and a low nice
/// value did not help: measured on Linux 6.18, processes at -20 waited for ten seconds while children of the bomb were begun.
/// So it asks for real time (sched(7)), which takes `CAP_SYS_NICE`. The kernel leaves others a twentieth of each second. Where
/// it may not have that, a negative nice value, and at least a short slice (Linux 6.12), which has it run soon after it wakes.
/// Where the caller chose a policy or a nice value, nothing changes.
pub(crate) fn raise_priority() -> nix::Result<()> {
    let ordinary = scheduling_attributes()?;
    if ordinary.sched_nice != 0 || ordinary.sched_policy != libc::SCHED_OTHER.cast_unsigned() {
        return Ok(());
    }
    let with = |change: fn(&mut libc::sched_attr)| {
        let mut first = ordinary;
        change(&mut first);
        set_scheduling_attributes(&first)
    };
    with(|first| {
        first.sched_policy = libc::SCHED_RR.cast_unsigned();
        first.sched_priority = LOWEST_REAL_TIME;
    })
    .or_else(|_| {
        with(|first| {
            first.sched_runtime = SHORTEST_SLICE;
            first.sched_nice = HEAVIEST;
        })
    })
    .or_else(|_| with(|first| first.sched_runtime = SHORTEST_SLICE))
}

/// Has later children run at normal priority, where [`raise_priority`] changed it. A filter around Stockade that hides the calls also
/// kept that from changing anything.
pub(crate) fn reset_priority_for_children() -> nix::Result<()> {
    let Ok(mut attributes) = scheduling_attributes() else {
        return Ok(());
    };
    let is_real_time = attributes.sched_policy == libc::SCHED_RR.cast_unsigned();
    if !is_real_time && attributes.sched_nice != HEAVIEST && attributes.sched_runtime != SHORTEST_SLICE {
        return Ok(());
    }
    attributes.sched_flags |= u64::from(libc::SCHED_FLAG_RESET_ON_FORK.cast_unsigned());
    set_scheduling_attributes(&attributes)
}

fn scheduling_attributes() -> nix::Result<libc::sched_attr> {
    let mut attributes = libc::sched_attr {
        size: 0,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: `attributes` is a valid structure of the size given, for the length of the call.
    Errno::result(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) })?;
    Ok(attributes)
}

fn set_scheduling_attributes(attributes: &libc::sched_attr) -> nix::Result<()> {
    // SAFETY: `attributes` is a valid structure, which gives its own size, and the call only reads it.
    Errno::result(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0) }).map(drop)
}

/// Takes ownership of descriptors that `recvmsg` has just installed.
pub(crate) fn adopt(fds: &[RawFd]) -> Vec<OwnedFd> {
    // SAFETY: the kernel created these descriptors for this very message; nothing else knows them.
    fds.iter().map(|fd| unsafe { OwnedFd::from_raw_fd(*fd) }).collect()
}

/// Closes every descriptor from `first` on.
///
/// The caller must use or drop no `OwnedFd` at or above `first` afterwards: the supervisor has none yet, and the file server
/// only ever ends.
pub(crate) fn close_from(first: RawFd) -> nix::Result<()> {
    let first = u32::try_from(first).map_err(|_| Errno::EBADF)?;
    // SAFETY: close_range takes integers only; no owner of such a descriptor acts again, as the caller promises.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    Errno::result(done).map(drop)
}

/// Closes these descriptors one by one, whether they are open or not. The caller promises what it does to [`close_from`].
pub(crate) fn close_each(numbers: std::ops::Range<RawFd>) {
    for number in numbers {
        // SAFETY: close takes an integer only; no owner of such a descriptor acts again, as the caller promises.
        let _not_open = unsafe { libc::close(number) };
    }
}

/// Marks every descriptor from `first` on, so that no program that is executed gets it.
pub(crate) fn close_on_exec_from(first: u32) -> nix::Result<()> {
    // SAFETY: close_range takes integers only, and with this flag it closes nothing.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    Errno::result(done).map(drop)
}

/// Takes descriptor 0, which the parent set to the control socket, and leaves /dev/null in its place.
pub(crate) fn take_stdin(null: BorrowedFd<'_>) -> nix::Result<OwnedFd> {
    // SAFETY: fcntl with F_DUPFD_CLOEXEC takes integers only and returns a fresh descriptor.
    let copy = Errno::result(unsafe { libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: dup2 takes integers only; descriptor 0 has no Rust owner that would close it.
    Errno::result(unsafe { libc::dup2(null.as_raw_fd(), 0) })?;
    // SAFETY: `copy` was created just above and is known to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Makes the terminal the controlling terminal of this session.
pub(crate) fn set_controlling_terminal(terminal: BorrowedFd<'_>) -> nix::Result<()> {
    // SAFETY: TIOCSCTTY takes an integer argument; the descriptor is borrowed, so it is open.
    Errno::result(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) }).map(drop)
}

/// Locks the secure bits so that uid 0 regains no capability by `execve`.
pub(crate) fn lock_securebits() -> nix::Result<()> {
    const NOROOT: libc::c_ulong = 1;
    const NO_SETUID_FIXUP: libc::c_ulong = 1 << 2;
    const KEEP_CAPS_LOCKED: libc::c_ulong = 1 << 5;
    const NO_CAP_AMBIENT_RAISE: libc::c_ulong = 1 << 6;
    let bits = NOROOT
        | NOROOT << 1
        | NO_SETUID_FIXUP
        | NO_SETUID_FIXUP << 1
        | KEEP_CAPS_LOCKED
        | NO_CAP_AMBIENT_RAISE
        | NO_CAP_AMBIENT_RAISE << 1;
    // SAFETY: PR_SET_SECUREBITS takes integers only.
    Errno::result(unsafe { libc::prctl(libc::PR_SET_SECUREBITS, bits, 0, 0, 0) }).map(drop)
}

/// Ends the process at once: no destructor, no exit handler, nothing inherited across the fork runs twice.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes an integer and does not return.
    unsafe { libc::_exit(code) }
}

/// Gives every signal its default action and unblocks all of them, as a fresh program expects.
pub(crate) fn reset_signals() -> nix::Result<()> {
    use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
    for each in Signal::iterator() {
        if matches!(each, Signal::SIGKILL | Signal::SIGSTOP) {
            continue;
        }
        // SAFETY: the default action is installed, so no Rust code runs in a signal handler.
        unsafe { signal(each, SigHandler::SigDfl) }?;
    }
    for each in libc::SIGRTMIN()..=libc::SIGRTMAX() {
        // SAFETY: as above.
        if unsafe { libc::signal(each, libc::SIG_DFL) } == libc::SIG_ERR {
            return Err(Errno::last());
        }
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

/// Ignores the signals that ask a program to end: supervisor and forker end when their parent does, so that
/// whoever signals every process of a session still finds protected names restored.
pub(crate) fn ignore_termination() -> nix::Result<()> {
    use nix::sys::signal::{SigHandler, Signal, signal};
    for each in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
        // SAFETY: the signal is ignored, so no Rust code runs in a signal handler.
        unsafe { signal(each, SigHandler::SigIgn) }?;
    }
    Ok(())
}

/// Whether `ptrace(PTRACE_ATTACH)` on `target` is refused; used by the self-test on a process outside.
pub(crate) fn ptrace_attach_fails(target: Pid) -> bool {
    // SAFETY: PTRACE_ATTACH takes a pid and ignores addr and data.
    let done = unsafe { libc::ptrace(libc::PTRACE_ATTACH, target.as_raw(), 0, 0) };
    done == -1
}

/// A descriptor for the process `pid`, which must be a child that was not reaped yet.
pub(crate) fn open_pidfd(pid: Pid) -> nix::Result<OwnedFd> {
    // SAFETY: pidfd_open takes integers only and returns a fresh descriptor.
    let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) })?;
    let fd = RawFd::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: `fd` was created just above and is known to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Signals the process behind a pidfd, which nobody else can have become.
pub(crate) fn signal_by(pidfd: &OwnedFd, signal: Signal) -> nix::Result<()> {
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open, and the kernel takes no information for the default one.
    let done = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal as i32, none, 0) };
    Errno::result(done).map(drop)
}

/// Watches a descriptor for becoming readable; needs a runtime.
pub(crate) fn watch(fd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned by what watches it, which gives it out to nobody, so it stays open and the same.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(Into::into)
}

/// Watches a file of the kernel's for changes to what it says; needs a runtime.
pub(crate) fn watch_changes(fd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: as in `watch`.
    unsafe { AsyncFd::register_with_interest(fd, Interest::PRIORITY) }.map_err(Into::into)
}

/// Takes ownership of descriptors that this process was started with, by number; `EBADF` where one is not open,
/// is one of the standard streams, or is named twice. Every other descriptor is closed.
///
/// Call it before this process opens anything.
pub(crate) fn inherit<const N: usize>(numbers: [RawFd; N]) -> nix::Result<[OwnedFd; N]> {
    for (index, number) in numbers.iter().enumerate() {
        if *number < 3 || numbers.iter().take(index).any(|other| other == number) {
            return Err(Errno::EBADF);
        }
        // SAFETY: fcntl with F_SETFD takes integers only.
        Errno::result(unsafe { libc::fcntl(*number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    }
    let mut kept = numbers;
    close_others(&mut kept)?;
    // SAFETY: each is open, was opened by whoever started this process, and gets exactly one owner here.
    Ok(numbers.map(|number| unsafe { OwnedFd::from_raw_fd(number) }))
}

/// Closes every descriptor but the standard streams and these.
///
/// The caller must use or drop no other `OwnedFd` afterwards: who calls this has forked, and never returns to what owned
/// them.
pub(crate) fn close_all_but(kept: &[BorrowedFd<'_>]) -> nix::Result<()> {
    let mut kept: Vec<RawFd> = kept.iter().map(AsRawFd::as_raw_fd).collect();
    close_others(&mut kept)
}

/// Closes every descriptor but the standard streams and these.
fn close_others(kept: &mut [RawFd]) -> nix::Result<()> {
    kept.sort_unstable();
    let mut first = 3;
    for number in kept.iter().copied().chain([RawFd::MAX]) {
        if number > first {
            // SAFETY: close_range takes integers only; no owner of such a descriptor acts again, as the callers promise.
            Errno::result(unsafe { libc::syscall(libc::SYS_close_range, first, number - 1, 0) })?;
        }
        first = number.saturating_add(1).max(first);
    }
    Ok(())
}

/// Closes a descriptor whose owner will never be dropped, because this fork never returns to it.
pub(crate) fn close_raw(fd: RawFd) {
    // SAFETY: called in the runner right after the fork for descriptors that only the forker's
    // borrowed state refers to; the runner ends by `exit_now`, so no owner closes them again.
    unsafe { libc::close(fd) };
}
