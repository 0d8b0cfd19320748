//! What each system call is answered: the words of the table, and the table for given settings.
//!
//! A call that no row names is allowed if its number is known, and answered `ENOSYS` if it is not.

use super::call::{Call, Verdict};
use super::number::{GAP, HIGHEST, NATIVE_ARCH};
use super::{Attempts, Attributes, Copies, IpSockets, Role, Settings, UnixDomain, conditions, requests, rows, watched};

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
pub enum Under {
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
pub struct Row {
    /// Why.
    pub reason: &'static str,
    /// The calls, by number.
    pub calls: &'static [i64],
    /// When the row stands.
    pub under: Under,
    /// The answer to the worker and its runners.
    pub worker: Say,
    /// The answer to a command.
    pub command: Say,
}

impl Row {
    /// A row that tells both roles the same.
    pub(super) const fn both(reason: &'static str, calls: &'static [i64], say: Say) -> Self {
        Self {
            reason,
            calls,
            under: Under::Every,
            worker: say,
            command: say,
        }
    }

    /// A row that concerns commands only.
    pub(super) const fn command(reason: &'static str, calls: &'static [i64], say: Say) -> Self {
        Self {
            reason,
            calls,
            under: Under::Every,
            worker: Say::Allow,
            command: say,
        }
    }

    /// The same row, under some settings only.
    pub(super) const fn under(self, under: Under) -> Self {
        Self { under, ..self }
    }

    /// What the row tells a role.
    pub const fn say(&self, role: Role) -> Say {
        match role {
            Role::Worker => self.worker,
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

/// The answers that stand under given settings, by call number.
#[derive(Debug)]
pub struct Table {
    by_number: Vec<Vec<Standing>>,
}

impl Table {
    /// The table for these settings.
    pub fn of(settings: Settings) -> Self {
        let mut by_number = vec![Vec::new(); HIGHEST as usize + 1];
        for row in rows() {
            let say = row.say(settings.role);
            if say == Say::Allow || !stands(row.under, settings) {
                continue;
            }
            for number in row.calls {
                let say = match settings.attempts {
                    Attempts::Unseen => say,
                    Attempts::Watched | Attempts::WatchedWithLooks => watched::told(*number, say),
                };
                // A row for a number past HIGHEST would be dead: the frame answers it. A test holds that there is none.
                if let Some(list) = usize::try_from(*number).ok().and_then(|index| by_number.get_mut(index)) {
                    list.push(Standing {
                        reason: row.reason,
                        say,
                    });
                }
            }
        }
        match settings.role {
            Role::Command => watched::look_at_attempts(&mut by_number, settings.attempts),
            Role::Worker => {}
        }
        Self { by_number }
    }

    /// Every number that some row speaks of, with what stands for it.
    pub fn spoken(&self) -> impl Iterator<Item = (u32, &[Standing])> {
        (0u32..)
            .zip(&self.by_number)
            .filter(|(_, list)| !list.is_empty())
            .map(|(number, list)| (number, list.as_slice()))
    }

    /// What stands for one number.
    pub fn standing(&self, number: u32) -> &[Standing] {
        usize::try_from(number)
            .ok()
            .and_then(|index| self.by_number.get(index))
            .map_or(&[], Vec::as_slice)
    }

    /// The answer to a call, with its reason.
    pub fn answer(&self, call: &Call) -> (Verdict, &'static str) {
        if call.arch != NATIVE_ARCH {
            return (
                Verdict::KillProcess,
                "another architecture's table would bypass this one",
            );
        }
        if call.nr > HIGHEST || GAP.contains(&call.nr) {
            return (Verdict::Errno(Errno::NoSys.code()), "a call this table does not know");
        }
        for standing in self.standing(call.nr) {
            let verdict = match standing.say {
                Say::Always(errno) => Verdict::Errno(errno.code()),
                Say::Notify(clauses) | Say::Told(clauses)
                    if clauses.is_empty() || clauses.iter().any(|clause| meets(call, clause)) =>
                {
                    Verdict::Notify
                }
                Say::When(errno, clauses) if clauses.iter().any(|clause| meets(call, clause)) => {
                    Verdict::Errno(errno.code())
                }
                Say::Allow | Say::When(..) | Say::Notify(_) | Say::Told(_) => continue,
            };
            return (verdict, standing.reason);
        }
        (Verdict::Allow, "nothing speaks against it")
    }
}

/// Every row, whatever the settings.
fn rows() -> impl Iterator<Item = &'static Row> {
    rows::ROWS
        .iter()
        .chain(rows::LEGACY)
        .chain(conditions::ROWS)
        .chain(conditions::LEGACY)
        .chain(requests::ROWS)
}

/// Whether some answer to a call hangs on this argument.
pub fn tests(number: u32, arg: u8) -> bool {
    let mut speaking = rows().filter(|row| row.calls.contains(&i64::from(number)));
    speaking.any(|row| {
        [row.worker, row.command].into_iter().any(|say| match say {
            Say::When(_, clauses) | Say::Notify(clauses) | Say::Told(clauses) => {
                clauses.iter().any(|clause| clause.iter().any(|test| test.arg() == arg))
            }
            Say::Allow | Say::Always(_) => false,
        })
    })
}

/// Whether a call meets every test of a clause.
fn meets(call: &Call, clause: Clause) -> bool {
    clause.iter().all(|test| test.holds(call))
}

/// Whether a row's condition on the settings is met.
fn stands(under: Under, settings: Settings) -> bool {
    match under {
        Under::Every => true,
        Under::Ip(ip) => ip == settings.ip,
        Under::Sockets(ip, domain) => ip == settings.ip && domain == settings.unix,
        Under::Copies => settings.copies == Copies::Shown,
        Under::Attributes(attributes) => attributes == settings.attributes,
    }
}
