//! What std and nix do not ask of a socket.

use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;

/// `SO_NETNS_COOKIE` of `asm-generic/socket.h`, which the `libc` crate does not have.
const NETNS_COOKIE: libc::c_int = 71;
/// `SO_PROTOCOL` of the same.
const PROTOCOL: libc::c_int = 38;

/// The number of the network namespace that a socket was made in. The kernel gives none twice.
pub(crate) fn network_namespace(socket: impl AsFd) -> nix::Result<u64> {
    option::<8>(socket, NETNS_COOKIE).map(u64::from_ne_bytes)
}

/// The protocol of a socket, such as `IPPROTO_TCP`.
pub(crate) fn protocol(socket: impl AsFd) -> nix::Result<i32> {
    option::<4>(socket, PROTOCOL).map(i32::from_ne_bytes)
}

/// An option at the level of sockets whose value has `N` bytes.
fn option<const N: usize>(socket: impl AsFd, name: libc::c_int) -> nix::Result<[u8; N]> {
    let mut value = [0u8; N];
    let mut length = libc::socklen_t::try_from(N).map_err(|_| Errno::EINVAL)?;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes at the first pointer, which comes from an exclusive reference to
    // that many, and one `socklen_t` at the second, which comes from an exclusive reference to one.
    let result = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, value.as_mut_ptr().cast(), &raw mut length) };
    Errno::result(result)?;
    if usize::try_from(length) == Ok(N) {
        Ok(value)
    } else {
        Err(Errno::EPROTO)
    }
}
