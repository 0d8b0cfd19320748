//! What decides between the variants of the filters.

use serde::{Deserialize, Serialize};

use crate::backend::namespaces::NetworkNamespace;
use crate::policy::{Network, UnixSockets};

/// The role that installs the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// The forker and its runners: Stockade's own code, which must read a command's memory to judge
    /// attribute calls and perform them.
    Forker,
    /// A command.
    Command,
}

/// Whether IP sockets may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IpSockets {
    /// No.
    Refused,
    /// Yes: the network is open, or there is nothing but a loopback of one's own.
    Allowed,
}

impl IpSockets {
    /// What a reach over IP means in a network namespace.
    pub const fn of(network: &Network, namespace: NetworkNamespace) -> Self {
        match (network, namespace) {
            (Network::Full, NetworkNamespace::Own | NetworkNamespace::Host)
            | (Network::Off | Network::Hosts(_), NetworkNamespace::Own) => Self::Allowed,
            (Network::Off | Network::Hosts(_), NetworkNamespace::Host) => Self::Refused,
        }
    }
}

/// Whether Unix sockets that can reach a path may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixDomain {
    /// No.
    Refused,
    /// Yes: all of them, or as far as Landlock lets them.
    Allowed,
}

impl UnixDomain {
    /// What a reach over Unix sockets means beside Landlock of this ABI, which from 9 on holds those with a path.
    pub const fn of(sockets: UnixSockets, landlock_abi: u32) -> Self {
        match sockets {
            UnixSockets::All => Self::Allowed,
            UnixSockets::WithinRoots if landlock_abi >= 9 => Self::Allowed,
            UnixSockets::WithinRoots | UnixSockets::None => Self::Refused,
        }
    }
}

/// What decides between the variants of the filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Whether IP sockets may be made.
    pub ip: IpSockets,
    /// Whether Unix sockets may be made.
    pub unix: UnixDomain,
    /// Whose filters.
    pub role: Role,
    /// Whether attempts are reported.
    pub attempts: Attempts,
    /// Whether private copies stand for protected files.
    pub copies: Copies,
    /// Who keeps a command from changing attributes outside.
    pub attributes: Attributes,
}

/// Who keeps a command from changing attributes outside what it may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attributes {
    /// The broker: it judges every call that changes them.
    Brokered,
    /// Mounts, which are read-only everywhere else. The broker judges only what sets a set-uid or set-gid bit or an extended attribute.
    Mounted,
}

/// Whether private copies stand for protected files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copies {
    /// None does.
    None,
    /// Some do: the broker is notified of renames, and performs those onto a copy.
    Shown,
}

/// Whether a listener is notified of attempts, beside the attribute calls. The same calls are refused either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempts {
    /// No.
    Unseen,
    /// Of calls with a path or an address that do more than look it up; they continue to the kernel. Of calls that the table
    /// refuses too; the listener fails them, without one the kernel does.
    Watched,
    /// Of lookups as well, which only mounts make fail.
    WatchedWithLooks,
}
