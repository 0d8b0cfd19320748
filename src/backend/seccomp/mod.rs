//! Profile → BPF filters, and the reader that interprets them back.
//!
//! [`table`] is the decision, as data: what each system call is answered, per role and settings. [`lower()`]
//! turns it into filters, and what they allow whatever the arguments stays in the kernel's bitmap of allowed
//! calls and costs nothing. `reader` runs such filters in user space, and [`validate()`] holds what it sees
//! against the table at every start.
//!
//! Landlock guards what has a path; this guards what has none: sockets, other processes, keyrings,
//! the kernel's own surface, and (through a listener) the attributes of files.

mod call;
mod conditions;
mod lower;
mod number;
mod reader;
mod requests;
mod rows;
mod shortcut;
mod stack;
pub mod table;
#[cfg(test)]
mod tests;
mod tree;
mod validate;
mod watched;

use serde::{Deserialize, Serialize};

use crate::backend::namespaces::NetworkNamespace;
use crate::policy::{Network, UnixSockets};

pub use call::{Call, Verdict};
pub use lower::{SeccompError, lower};
pub(crate) use number::STATMOUNT;
pub use number::{HIGHEST, NATIVE_ARCH};
pub use reader::{Entered, Filter, Malformed, stacked};
pub use stack::{Filters, Stack};
pub use table::tests;
pub use validate::{SeccompWitness, validate};
pub(crate) use watched::is_rename;
pub use watched::{Sort, Whatever};

/// One classic BPF instruction, as `struct sock_filter` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Jump when true.
    pub jt: u8,
    /// Jump when false.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// One filter program.
pub type Program = Vec<Instruction>;

/// Whose filters these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// The worker and its runners: Stockade's own code, which must read a command's memory to judge
    /// attribute calls and perform them.
    Worker,
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
    /// Whether somebody looks on.
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
    /// Some do: the broker hears of renames, and carries out those onto a copy.
    Shown,
}

/// Whether a listener hears of what a command attempts, beside the attribute calls. What is refused is refused either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempts {
    /// It does not: nothing is slower for it.
    Unseen,
    /// It hears of each call with a path or an address in it that does more than look, which then goes on to the kernel, and
    /// of the calls that the table refuses. Those wait for its refusal, and are refused by the kernel where there is no listener.
    Watched,
    /// It hears of looks as well. They come to nothing where mounts hide files, and nowhere else.
    WatchedWithLooks,
}

/// The filters that one role installs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeccompPlan {
    /// Filters that answer by themselves, in the order they are installed; the strictest answer wins.
    pub programs: Vec<Program>,
    /// The filter that hands attribute calls to the broker; installed first, with a listener, which the others refuse.
    pub notify: Option<Program>,
}
