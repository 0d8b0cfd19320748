//! Checks the filters against the table.
//!
//! Every number is tried on the native architecture, and on foreign ones unless these are killed without a look at
//! the number, and every call whose answer
//! hangs on an argument with the values around each test, each also with high bits the kernel drops.
//! A call that the table allows needs no check: any action is at least as strict.

use std::collections::BTreeSet;
use std::fmt;

use super::call::{Call, Verdict};
use super::number::NATIVE_ARCH;
use super::plan::{SeccompPlan, Stack};
use super::reader::{Filter, Malformed, stacked};
use super::row::{Action, ActiveRow, Clause, Test};
use super::settings::{Role, Settings};
use super::table::Table;

/// `AUDIT_ARCH_*` of tables a process of this machine could switch to, and of some it could not.
const FOREIGN: [u32; 6] = [0x4000_0003, 0x4000_0028, 0xC000_003E, 0xC000_00B7, 0xC000_00F3, 0];
/// The bit of an x32 number.
const X32: u32 = 0x4000_0000;
/// The numbers tried one by one.
const NUMBERS: std::ops::Range<u32> = 0..1024;
/// What the kernel drops from an `int`.
const HIGH: u64 = 1 << 32;

/// A call that the filters permit and the table does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeccompWitness {
    /// A malformed filter.
    Malformed {
        /// Its index in the order of installation.
        program: usize,
        /// What is wrong.
        why: Malformed,
    },
    /// A listener too many, or one that is missing.
    Listener(Role),
    /// A call that is answered more weakly.
    Weaker {
        /// The call.
        call: Call,
        /// The filters' answer.
        filters: Verdict,
        /// The table's answer.
        table: Verdict,
        /// The table's reason.
        reason: &'static str,
    },
}

impl fmt::Display for SeccompWitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { program, why } => write!(f, "filter {program} is malformed: {why}"),
            Self::Listener(Role::Forker) => f.write_str("the forker's filters wait for a listener that does not exist"),
            Self::Listener(Role::Command) => f.write_str("the command's filters hand nothing to the broker"),
            Self::Weaker {
                call,
                filters,
                table,
                reason,
            } => {
                write!(f, "{call}: {filters} by the filters, {table} by the table ({reason})")
            }
        }
    }
}

impl std::error::Error for SeccompWitness {}

/// Checks that the filters are at least as strict as the table of their settings.
pub fn validate(stack: Stack<'_>, settings: Settings) -> Result<(), SeccompWitness> {
    let listens = |plan: &SeccompPlan| plan.notify.is_some();
    let is_meant = stack.role() == settings.role
        && listens(stack.own()) == (settings.role == Role::Command)
        && !stack.behind().is_some_and(listens);
    if !is_meant {
        return Err(SeccompWitness::Listener(settings.role));
    }
    let filters = read(stack)?;
    let table = Table::of(settings);
    // The strictest answer of a stack is at least as strict as the table's iff some filter's is.
    // Nothing is stricter than to kill, so where a filter kills an architecture as such, no number of it is left to try.
    let killed = |arch: u32| {
        let mut answers = filters.iter().map(|filter| filter.answer_to_all_of(arch));
        answers.any(|answer| answer == Some(Verdict::KillProcess))
    };
    let foreign = foreign().filter(|arch| !killed(*arch)).flat_map(calls_of);
    for call in native_calls().chain(foreign) {
        let (expected, reason) = table.answer(&call);
        if expected != Verdict::Allow && !filters.iter().any(|filter| filter.answer(&call).at_least(expected)) {
            return Err(SeccompWitness::Weaker {
                call,
                filters: stacked(&filters, &call),
                table: expected,
                reason,
            });
        }
    }
    let mut number = None;
    let mut entered = Vec::new();
    for call in awkward_calls(&table).chain(socket_calls()) {
        let (expected, reason) = table.answer(&call);
        if expected == Verdict::Allow {
            continue;
        }
        if number != Some(call.nr) {
            number = Some(call.nr);
            entered = filters.iter().map(|filter| filter.enter(&call)).collect();
        }
        if !entered.iter().any(|filter| filter.answer(&call).at_least(expected)) {
            return Err(SeccompWitness::Weaker {
                call,
                filters: stacked(&filters, &call),
                table: expected,
                reason,
            });
        }
    }
    Ok(())
}

/// The filters in the order they are installed.
pub(super) fn read(stack: Stack<'_>) -> Result<Vec<Filter<'_>>, SeccompWitness> {
    let programs = stack.programs().enumerate();
    programs
        .map(|(index, program)| Filter::read(program).map_err(|why| SeccompWitness::Malformed { program: index, why }))
        .collect()
}

/// Every number without arguments: native, x32 and foreign, and the ends of the range.
#[cfg(test)]
pub(super) fn plain_calls() -> impl Iterator<Item = Call> {
    native_calls().chain(foreign().flat_map(calls_of))
}

fn foreign() -> impl Iterator<Item = u32> {
    FOREIGN.into_iter().filter(|arch| *arch != NATIVE_ARCH)
}

fn native_calls() -> impl Iterator<Item = Call> {
    let x32 = NUMBERS.map(|nr| Call {
        arch: NATIVE_ARCH,
        nr: X32 | nr,
        args: [0; 6],
    });
    calls_of(NATIVE_ARCH).chain(x32)
}

/// Every number and the ends of the range, on one architecture.
fn calls_of(arch: u32) -> impl Iterator<Item = Call> {
    let numbers = NUMBERS.chain([X32 - 1, X32 | 1023, 0x7FFF_FFFF, 0x8000_0000, u32::MAX]);
    numbers.map(move |nr| Call { arch, nr, args: [0; 6] })
}

/// The calls around each test of each conditioned call.
pub(super) fn awkward_calls(table: &Table) -> impl Iterator<Item = Call> {
    table.entries().flat_map(|(nr, active_rows)| {
        let clauses: Vec<Clause> = clauses(active_rows).collect();
        let mut tried: BTreeSet<[u64; 6]> = BTreeSet::new();
        for clause in &clauses {
            around(clause, &mut tried);
        }
        let high: Vec<_> = tried.iter().map(|args| args.map(|arg| arg | HIGH)).collect();
        tried.into_iter().chain(high).map(move |args| Call {
            arch: NATIVE_ARCH,
            nr,
            args,
        })
    })
}

/// Every family and type and the protocols there are, for what makes sockets.
pub(super) fn socket_calls() -> impl Iterator<Item = Call> {
    let families = (0..48).map(|family| [family, 1, 0, 0, 0, 0]);
    let types = [1, 2, 10]
        .into_iter()
        .flat_map(|family| (0..16).map(move |kind| [family, kind | 0x8_0800, 0, 0, 0, 0]));
    // None, the five known ones and their neighbours, IGMP, DCCP, SCTP, UDP-Lite, raw, MPTCP.
    let protocols = [
        0, 1, 2, 5, 6, 7, 16, 17, 18, 33, 57, 58, 59, 132, 136, 143, 255, 256, 262,
    ];
    let protocols = protocols
        .into_iter()
        .flat_map(|protocol| [[2, 1, protocol, 0, 0, 0], [16, 3, protocol, 0, 0, 0]]);
    let numbers = [libc::SYS_socket, libc::SYS_socketpair]
        .into_iter()
        .filter_map(|number| u32::try_from(number).ok());
    let args = families.chain(types).chain(protocols);
    numbers.flat_map(move |nr| {
        args.clone().map(move |args| Call {
            arch: NATIVE_ARCH,
            nr,
            args,
        })
    })
}

/// The clauses of the answers that hang on an argument.
pub(super) fn clauses(active_rows: &[ActiveRow]) -> impl Iterator<Item = Clause> {
    active_rows
        .iter()
        .flat_map(|active_row| match active_row.action {
            Action::ErrorIf(_, clauses) | Action::Notify(clauses) | Action::Report(clauses) => clauses,
            Action::Allow | Action::Error(_) => &[],
        })
        .copied()
}

/// Arguments that meet a clause, and the same with each tested argument moved across each test.
fn around(clause: Clause, tried: &mut BTreeSet<[u64; 6]>) {
    let mut meeting = [0u64; 6];
    for (arg, slot) in (0u8..).zip(&mut meeting) {
        *slot = meeting_value(clause, arg).into();
    }
    tried.insert(meeting);
    for test in clause {
        for value in borders(*test) {
            let mut args = meeting;
            if let Some(slot) = args.get_mut(usize::from(test.arg())) {
                *slot = value.into();
            }
            tried.insert(args);
        }
    }
}

/// A value of one argument that passes all its tests in a clause; 0 where it is not tested.
pub(super) fn meeting_value(clause: Clause, arg: u8) -> u32 {
    let tests = || clause.iter().filter(|test| test.arg() == arg);
    let base = tests().fold(0, |base, test| match test {
        Test::Is(_, value) | Test::Bits(_, _, value) => base | value,
        Test::IsNot(..) => base,
    });
    let nearby = (0..32).map(|bit| base ^ (1 << bit));
    std::iter::once(base)
        .chain(nearby)
        .find(|value| tests().all(|test| test.passes(*value)))
        .unwrap_or(base)
}

/// The values on both sides of a test.
pub(super) fn borders(test: Test) -> Vec<u32> {
    match test {
        Test::Is(_, value) | Test::IsNot(_, value) => vec![value, value.wrapping_add(1), value.wrapping_sub(1)],
        Test::Bits(_, mask, value) => {
            vec![
                value,
                value | !mask,
                !value & mask,
                value ^ (mask & mask.wrapping_neg()),
            ]
        }
    }
}
