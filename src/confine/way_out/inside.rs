//! The forker's half: making sockets on the loopback of its network namespace.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, SockaddrIn6, SockaddrLike, bind, getsockname, listen,
    setsockopt, socket, sockopt,
};

use super::BACKLOG;
use crate::confine::wire::protocol::{Loopback, StartFailure, Step};

const MAX_ATTEMPTS: usize = 64;
/// How many ports are remembered: a small part of those that the kernel chooses from, and more than there are commands in
/// the time for which the kernel keeps sending for a dead one.
const MOST_USED: usize = 4096;

/// The ports of the last commands. None of them is taken again: a dead command's last bytes may still be on their way there.
#[derive(Debug, Default)]
pub(in crate::confine) struct UsedPorts(VecDeque<u16>);

impl UsedPorts {
    /// Whether the port was not used lately; it is, from here on.
    fn take(&mut self, port: u16) -> bool {
        if self.0.contains(&port) {
            return false;
        }
        if self.0.len() >= MOST_USED {
            self.0.pop_front();
        }
        self.0.push_back(port);
        true
    }
}

/// Sockets that listen on the loopback of this network namespace, on one port that no command had lately.
///
/// Nothing of a command is alive here, so nobody takes the port in between.
pub(in crate::confine) fn open(used: &mut UsedPorts) -> Result<(Loopback, Vec<OwnedFd>), StartFailure> {
    for _ in 0..MAX_ATTEMPTS {
        let port = free_port().map_err(failed("a free port"))?;
        if used.take(port)
            && let Some(made) = listen_on(port)?
        {
            return Ok(made);
        }
    }
    Err(failed("a port that is free on 127.0.0.1 and ::1")(Errno::EADDRINUSE))
}

fn failed(what: &'static str) -> impl Fn(Errno) -> StartFailure {
    move |errno| StartFailure::new(Step::WayOut, errno, what)
}

/// Sockets that listen on this port; `None` where one of the addresses has it taken.
fn listen_on(port: u16) -> Result<Option<(Loopback, Vec<OwnedFd>)>, StartFailure> {
    let first = match bind_socket(AddressFamily::Inet, &v4(port)) {
        Ok(first) => first,
        Err(Errno::EADDRINUSE) => return Ok(None),
        Err(errno) => return Err(failed("a socket on 127.0.0.1")(errno)),
    };
    let second = match bind_socket(AddressFamily::Inet6, &v6(port)) {
        Ok(second) => Some(second),
        Err(Errno::EADDRINUSE) => return Ok(None),
        // A kernel without IPv6, or one where it is switched off: no command can switch it on.
        Err(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL) => None,
        Err(errno) => return Err(failed("a socket on ::1")(errno)),
    };
    let addresses = match second {
        Some(_) => Loopback::Both,
        None => Loopback::V4,
    };
    let sockets: Vec<OwnedFd> = [Some(first), second].into_iter().flatten().collect();
    let backlog = Backlog::new(BACKLOG).map_err(failed("the backlog"))?;
    for socket in &sockets {
        listen(socket, backlog).map_err(failed("listening"))?;
    }
    Ok(Some((addresses, sockets)))
}

fn v4(port: u16) -> SockaddrIn {
    SockaddrIn::new(127, 0, 0, 1, port)
}

fn v6(port: u16) -> SockaddrIn6 {
    SockaddrIn6::from(std::net::SocketAddrV6::new(std::net::Ipv6Addr::LOCALHOST, port, 0, 0))
}

/// A TCP socket at this address. It shares that with nobody: `SO_REUSEADDR`, which std sets, stays off.
fn bind_socket(family: AddressFamily, address: &dyn SockaddrLike) -> nix::Result<OwnedFd> {
    let made = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    if family == AddressFamily::Inet6 {
        setsockopt(&made, sockopt::Ipv6V6Only, &true)?;
    }
    bind(made.as_raw_fd(), address)?;
    Ok(made)
}

/// A port that the kernel chooses. It is bound again by its number: a port that the kernel chose for a socket is given up
/// when that one is shut, one that was named is held until it is closed.
fn free_port() -> nix::Result<u16> {
    let chosen = bind_socket(AddressFamily::Inet, &v4(0))?;
    Ok(getsockname::<SockaddrIn>(chosen.as_raw_fd())?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_was_used_lately_is_not_taken_again() {
        let mut used = UsedPorts::default();
        assert!(used.take(40_000) && !used.take(40_000));
        for port in 0..4096 {
            used.take(port);
        }
        assert!(used.take(40_000), "the oldest is not forgotten");
    }

    #[test]
    fn both_addresses_listen_on_one_port_and_are_shared_with_nobody() {
        let (addresses, sockets) = open(&mut UsedPorts::default()).unwrap();
        let port = getsockname::<SockaddrIn>(sockets[0].as_raw_fd()).unwrap().port();
        assert_eq!(
            bind_socket(AddressFamily::Inet, &v4(port)).err(),
            Some(Errno::EADDRINUSE)
        );
        if addresses == Loopback::Both {
            assert_eq!(getsockname::<SockaddrIn6>(sockets[1].as_raw_fd()).unwrap().port(), port);
        }
        // std asks to share it.
        assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_err());
        assert!(std::net::TcpListener::bind(("0.0.0.0", port)).is_err());
    }
}
