//! The way out of a network namespace that has nothing but a loopback.
//!
//! Before each command of a profile with a list of hosts, the worker makes sockets that listen on the
//! loopback of its namespace ([`inside`]) and passes them to the parent; it keeps none, and no command ever
//! has one. The parent holds them against what was asked for ([`outside`]) and gives them to a proxy, which
//! judges every connection. So the proxy itself is nowhere in the namespace, and nothing else leads out of
//! it.
//!
//! Each command gets sockets and a port of its own. A connection that a dead command left behind (in the
//! backlog, half open, or in a kernel that still sends its last bytes) ends with that command's sockets, so what comes
//! to these is the new command's.
//!
//! [`asker()`] says which process is behind a connection, for whoever is asked about it.

mod asker;
pub(super) mod inside;
pub(super) mod outside;

use std::io;
use std::net::{SocketAddr, TcpListener};

use nix::errno::Errno;

pub use asker::{Asker, asker};

/// How many connections wait until they are taken.
const BACKLOG: i32 = 1024;

/// The sockets that listen in a worker's network namespace, for one command.
///
/// Dropping it shuts them for good, whoever has copies: who waits is disconnected, and nobody comes any more.
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
            outside::shut(listener);
        }
    }
}

/// Why the sockets that a worker passed out are not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WayOutError {
    /// Not the number that it spoke of.
    #[error("{got} sockets came where {want} were announced")]
    Count {
        /// Announced.
        want: usize,
        /// Came.
        got: usize,
    },
    /// The kernel does not say what one of them is.
    #[error("{what} cannot be found out: {}", errno.desc())]
    Unknown {
        /// What was asked.
        what: &'static str,
        /// The system's word.
        errno: Errno,
    },
    /// One is something else than a TCP socket that listens.
    #[error("one of them is not a TCP socket that listens")]
    NotListening,
    /// One is bound elsewhere.
    #[error("one of them is bound to {0}")]
    Address(SocketAddr),
    /// One belongs to the network namespace of the parent.
    #[error("one of them is in the network namespace of the host")]
    HostNamespace,
    /// They belong to several network namespaces, or to another one than those of the command before.
    #[error("one of them is in another network namespace than the others")]
    Namespaces,
}
