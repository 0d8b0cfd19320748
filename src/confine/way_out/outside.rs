//! The parent's half: verifying the sockets of a forker, which may be hostile.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::libc::IPPROTO_TCP;
use nix::sys::socket::{Shutdown, SockType, getsockopt, shutdown, sockopt};

use super::error::WayOutError;
use crate::confine::sys::sockets::{network_namespace, protocol};
use crate::confine::wire::protocol::Loopback;

/// The sockets that listen in a forker's network namespace, for one command.
///
/// Dropping it shuts them, for all copies: waiting clients are disconnected, and no others can connect.
#[derive(Debug)]
pub struct WayOut {
    port: u16,
    listeners: Vec<TcpListener>,
}

impl WayOut {
    /// The port, on 127.0.0.1 and, where the namespace has it, on `::1`.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Copies of the sockets, not blocking, for whoever takes connections. An error of `accept` other than those of one connection
    /// means that they were shut.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn listeners(&self) -> io::Result<Vec<TcpListener>> {
        self.listeners.iter().map(TcpListener::try_clone).collect()
    }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        for listener in &self.listeners {
            shut(listener);
        }
    }
}

/// The network namespace of a forker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::confine) struct Namespace(u64);

/// Takes sockets that a forker passed out; they must be of this namespace, if an earlier command's are known.
pub(in crate::confine) fn take(
    sockets: Vec<OwnedFd>,
    addresses: Loopback,
    known: Option<Namespace>,
) -> Result<(WayOut, Namespace), WayOutError> {
    let ips: &[IpAddr] = match addresses {
        Loopback::V4 => &[IpAddr::V4(Ipv4Addr::LOCALHOST)],
        Loopback::Both => &[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)],
    };
    if sockets.len() != ips.len() {
        return Err(WayOutError::Count {
            expected: ips.len(),
            got: sockets.len(),
        });
    }
    let host = namespace_of_this_process()?;
    let mut namespace = known;
    let mut port = None;
    let mut listeners = Vec::new();
    for (socket, ip) in sockets.into_iter().zip(ips) {
        let actual = namespace_of(&socket)?;
        if actual == host {
            return Err(WayOutError::HostNamespace);
        }
        if *namespace.get_or_insert(actual) != actual {
            return Err(WayOutError::Namespaces);
        }
        let listener = listening(socket)?;
        let address = listener.local_addr().map_err(unknown("where one of them is bound"))?;
        let expected = SocketAddr::new(*ip, *port.get_or_insert(address.port()));
        if address != expected || address.port() == 0 {
            return Err(WayOutError::Address(address));
        }
        listener
            .set_nonblocking(true)
            .map_err(unknown("whether one of them blocks"))?;
        listeners.push(listener);
    }
    match (port, namespace) {
        (Some(port), Some(namespace)) => Ok((WayOut { port, listeners }, namespace)),
        (None, _) | (_, None) => Err(WayOutError::Count { expected: 1, got: 0 }),
    }
}

/// Ends a socket's listening, for all copies of it: who waits is disconnected, half open connections included.
fn shut(listener: &TcpListener) {
    // Shut already by somebody with a copy: nothing is left to end.
    let _already = shutdown(listener.as_raw_fd(), Shutdown::Both);
}

fn unknown(what: &'static str) -> impl Fn(std::io::Error) -> WayOutError {
    move |error| WayOutError::Unknown {
        what,
        errno: error.raw_os_error().map_or(Errno::EIO, Errno::from_raw),
    }
}

fn namespace_of(socket: impl AsFd) -> Result<Namespace, WayOutError> {
    let what = "the network namespace of a socket";
    network_namespace(socket)
        .map(Namespace)
        .map_err(|errno| WayOutError::Unknown { what, errno })
}

fn namespace_of_this_process() -> Result<Namespace, WayOutError> {
    let (ours, _) = UnixStream::pair().map_err(unknown("the network namespace of this process"))?;
    namespace_of(ours)
}

/// The socket as what it is, if it is a TCP socket that listens.
fn listening(socket: OwnedFd) -> Result<TcpListener, WayOutError> {
    let unknown = |errno| WayOutError::Unknown {
        what: "what one of them is",
        errno,
    };
    let is_tcp = getsockopt(&socket, sockopt::SockType).map_err(unknown)? == SockType::Stream
        && protocol(&socket).map_err(unknown)? == IPPROTO_TCP;
    if is_tcp && getsockopt(&socket, sockopt::AcceptConn).map_err(unknown)? {
        Ok(TcpListener::from(socket))
    } else {
        Err(WayOutError::NotListening)
    }
}
