//! One line of the table, and the words of it.

use super::call::Call;
use super::settings::{Attributes, IpSockets, Role, UnixDomain};

/// The error numbers the table answers.
///
/// `ENOSYS` where runtimes fall back on it, `EPERM` where programs expect to lack a privilege,
/// `EAFNOSUPPORT` and its kin for sockets, `EBUSY` where the kernel itself says so. `EACCES` is left to Landlock, so that logs tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Errno {
    /// Not allowed.
    Perm,
    /// No such call.
    NoSys,
    /// No such address family.
    AfNoSupport,
    /// No such protocol.
    ProtoNoSupport,
    /// Not with this socket.
    OpNotSupp,
    /// There is one already.
    Busy,
}

impl Errno {
    /// The number.
    pub const fn code(self) -> u16 {
        match self {
            Self::Perm => 1,
            Self::Busy => 16,
            Self::NoSys => 38,
            Self::ProtoNoSupport => 93,
            Self::OpNotSupp => 95,
            Self::AfNoSupport => 97,
        }
    }
}

/// A test of the low 32 bits of one argument; the kernel reads no more of an `int`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// The argument is this.
    Is(u8, u32),
    /// The argument is anything but this.
    IsNot(u8, u32),
    /// Under a mask, the argument is this: argument, mask, value.
    Bits(u8, u32, u32),
}

impl Test {
    /// The index of the tested argument.
    pub const fn arg(self) -> u8 {
        match self {
            Self::Is(arg, _) | Self::IsNot(arg, _) | Self::Bits(arg, ..) => arg,
        }
    }

    /// Whether a value passes.
    pub const fn passes(self, value: u32) -> bool {
        match self {
            Self::Is(_, want) => value == want,
            Self::IsNot(_, not) => value != not,
            Self::Bits(_, mask, want) => value & mask == want,
        }
    }

    /// Whether the call's argument passes.
    pub fn holds(self, call: &Call) -> bool {
        self.passes(call.low(self.arg()))
    }
}

/// Tests that must all hold.
pub type Clause = &'static [Test];

/// What one row answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// Nothing against it.
    Allow,
    /// The broker decides where some clause holds; always where there is none.
    Notify(&'static [Clause]),
    /// Always this error.
    Always(Errno),
    /// This error where some clause holds.
    When(Errno, &'static [Clause]),
    /// An error that a listener gives, once it has taken note, where some clause holds; always where there is none.
    Told(&'static [Clause]),
}

/// The settings under which a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Under {
    /// All.
    Every,
    /// Whether IP sockets may be made.
    Ip(IpSockets),
    /// Whether IP sockets and Unix sockets may be made.
    Sockets(IpSockets, UnixDomain),
    /// Private copies stand for protected files.
    Copies,
    /// Who keeps a command from changing attributes outside.
    Attributes(Attributes),
}

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Why.
    pub(super) reason: &'static str,
    /// The calls, by number.
    pub(super) calls: &'static [i64],
    /// When the row stands.
    pub(super) under: Under,
    /// The answer to the forker and its runners.
    pub(super) forker: Say,
    /// The answer to a command.
    pub(super) command: Say,
}

impl Row {
    /// A row that tells both roles the same.
    pub(super) const fn both(reason: &'static str, calls: &'static [i64], say: Say) -> Self {
        Self {
            reason,
            calls,
            under: Under::Every,
            forker: say,
            command: say,
        }
    }

    /// A row that concerns commands only.
    pub(super) const fn command(reason: &'static str, calls: &'static [i64], say: Say) -> Self {
        Self {
            reason,
            calls,
            under: Under::Every,
            forker: Say::Allow,
            command: say,
        }
    }

    /// The same row, under some settings only.
    pub(super) const fn under(self, under: Under) -> Self {
        Self { under, ..self }
    }

    /// What the row tells a role.
    pub(super) const fn say(&self, role: Role) -> Say {
        match role {
            Role::Forker => self.forker,
            Role::Command => self.command,
        }
    }
}

/// One answer that stands, with its reason.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// Why.
    pub reason: &'static str,
    /// The answer.
    pub say: Say,
}
