//! Why the sockets of a way out are not taken.

use std::net::SocketAddr;

use nix::errno::Errno;

/// Why the sockets that a forker passed out are not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WayOutError {
    /// Not the number that it spoke of.
    #[error("{got} sockets came where {expected} were announced")]
    Count {
        /// Announced.
        expected: usize,
        /// Came.
        got: usize,
    },
    /// The kernel does not say what one of them is.
    #[error("{what} cannot be found out: {}", errno.desc())]
    Unknown {
        /// What was asked.
        what: &'static str,
        /// The system's error.
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
