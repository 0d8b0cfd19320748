//! Terminals, and descriptors watched for readiness.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::pty::Winsize;
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdRegisterError};

/// The size of the terminal `fd`.
pub(crate) fn window_size(fd: impl AsFd) -> io::Result<Winsize> {
    let mut size = Winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCGWINSZ writes one `winsize` at the pointer, which comes from an exclusive reference to one.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    if result == 0 {
        Ok(size)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Gives the terminal `fd` a size; its foreground process group gets SIGWINCH when it changes.
pub(crate) fn set_window_size(fd: impl AsFd, size: &Winsize) -> io::Result<()> {
    // SAFETY: TIOCSWINSZ only reads one `winsize` from the pointer, which comes from a reference to one.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::TIOCSWINSZ, &raw const *size) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// How many bytes a read of the pipe or terminal `fd` would find now.
pub(crate) fn unread(fd: impl AsFd) -> io::Result<u64> {
    let mut count: libc::c_int = 0;
    // SAFETY: FIONREAD writes one `int` at the pointer, which comes from an exclusive reference to one.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut count) };
    if result == 0 {
        Ok(u64::try_from(count).unwrap_or(0))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The slave end of the pseudo-terminal `master`, opened without a path, so no `/dev/pts` can stand in its way.
///
/// Close-on-exec, and not made the controlling terminal of the caller.
pub(crate) fn pty_peer(master: impl AsFd) -> io::Result<OwnedFd> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: TIOCGPTPEER takes open flags by value and touches no memory of ours.
    let result = unsafe { libc::ioctl(master.as_fd().as_raw_fd(), libc::TIOCGPTPEER, flags) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just returned this descriptor as a new one, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

// ---- readiness ------------------------------------------------------------------------------------

/// Watches `fd` in the running runtime; gives it back with the error where it cannot be watched.
pub(crate) fn watch_readiness(fd: OwnedFd, interest: Interest) -> Result<AsyncFd<OwnedFd>, (OwnedFd, io::Error)> {
    // SAFETY: an `OwnedFd` keeps one descriptor open and answers with that one, until the `AsyncFd` drops it.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(AsyncFdRegisterError::into_parts)
}
