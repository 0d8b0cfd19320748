//! Installing seccomp filters on the calling thread.

use std::os::fd::{FromRawFd, OwnedFd};

use nix::errno::Errno;

use crate::backend::seccomp::Program;

/// The most instructions the kernel takes in one filter (`BPF_MAXINSNS`).
const LONGEST: usize = 4096;

/// Installs a filter on the calling thread, which must have `no_new_privs`.
pub(crate) fn install_filter(program: &Program) -> Result<(), Errno> {
    set_filter(program, 0).map(|_| ())
}

/// Installs a filter on the calling thread, which must have `no_new_privs`, and gives the listener
/// of its notifications; `EBUSY` where an earlier filter of the thread has one already.
///
/// Once a notification is received, only a fatal signal ends the caller's wait.
pub(crate) fn install_notify_filter(program: &Program) -> Result<OwnedFd, Errno> {
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let listener = set_filter(program, flags)?;
    let listener = i32::try_from(listener).map_err(|_| Errno::EBADF)?;
    // SAFETY: with NEW_LISTENER the call's result is a descriptor it has just opened for this
    // process, and nothing else knows its number yet, so it has this one owner.
    Ok(unsafe { OwnedFd::from_raw_fd(listener) })
}

/// `seccomp(SECCOMP_SET_MODE_FILTER)`.
fn set_filter(program: &Program, flags: libc::c_ulong) -> Result<libc::c_long, Errno> {
    if program.len() > LONGEST {
        return Err(Errno::EINVAL);
    }
    let mut code: Vec<libc::sock_filter> = program
        .iter()
        .map(|step| libc::sock_filter {
            code: step.code,
            jt: step.jt,
            jf: step.jf,
            k: step.k,
        })
        .collect();
    let len = u16::try_from(code.len()).map_err(|_| Errno::EINVAL)?;
    let filter = libc::sock_fprog {
        len,
        filter: code.as_mut_ptr(),
    };
    // SAFETY: the kernel reads `filter`, and through it exactly `len` instructions of `code`; both
    // live until the call returns, are of the types it reads, and are not written by it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const filter,
        )
    };
    Errno::result(result)
}
