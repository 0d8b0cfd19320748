//! One row of the table, and its parts.

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

/// What a row does to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Permits it.
    Allow,
    /// Notifies the broker, which decides, if some clause holds, or without clauses.
    Notify(&'static [Clause]),
    /// Fails it with this error.
    Error(Errno),
    /// Fails it with this error if some clause holds.
    ErrorIf(Errno, &'static [Clause]),
    /// Notifies the listener, which reports it and fails it, if some clause holds, or without clauses.
    Report(&'static [Clause]),
}

/// The settings under which a row applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
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

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Why.
    pub(super) reason: &'static str,
    /// The calls, by number.
    pub(super) calls: &'static [i64],
    /// When the row applies.
    pub(super) condition: Condition,
    /// The action for the forker and its runners.
    pub(super) forker: Action,
    /// The action for a command.
    pub(super) command: Action,
}

impl Row {
    /// A row for both roles.
    pub(super) const fn both(reason: &'static str, calls: &'static [i64], action: Action) -> Self {
        Self {
            reason,
            calls,
            condition: Condition::Every,
            forker: action,
            command: action,
        }
    }

    /// A row for commands only.
    pub(super) const fn command(reason: &'static str, calls: &'static [i64], action: Action) -> Self {
        Self {
            reason,
            calls,
            condition: Condition::Every,
            forker: Action::Allow,
            command: action,
        }
    }

    /// The same row, under some settings only.
    pub(super) const fn condition(self, condition: Condition) -> Self {
        Self { condition, ..self }
    }

    /// The action for a role.
    pub(super) const fn action(&self, role: Role) -> Action {
        match role {
            Role::Forker => self.forker,
            Role::Command => self.command,
        }
    }
}

/// A row that applies: its action and reason.
#[derive(Debug, Clone, Copy)]
pub struct ActiveRow {
    /// Why.
    pub reason: &'static str,
    /// The action.
    pub action: Action,
}
