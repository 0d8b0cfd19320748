//! The table → filters.
//!
//! A hand-written head decides by number alone. It also kills calls of other architectures, and fails numbers beyond the
//! known ones, x32's among them, with `ENOSYS`. Calls that are decided by arguments go on to filters by seccompiler. Each of
//! those returns one action, so there is one per error number, and another for refusals of what they allow. All are joined
//! into one, because each filter of a stack costs time per call; only the one that notifies is separate, as it is
//! installed with a listener. What the filters of command and forker share is in the forker's alone: the kernel runs every
//! filter of the stack, and the cost of installing one grows with its length.
//!
//! A call that is decided by arguments runs through all of these. So each part begins with a short way out for frequent
//! calls that it has no rule for, and the most frequent one has a way past everything ([`shortcut`]).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::instruction::{Instruction, JUMP, JUMP_EQUAL, LOAD, Program, RET_ALLOW, RETURN, step};
use super::number::{GAP, HIGHEST, NATIVE_ARCH};
use super::plan::SeccompPlan;
use super::row::{Action, Clause, Errno, Test};
use super::settings::{Role, Settings};
use super::shortcut;
use super::table::Table;
use super::tree::{Branch, tree};

const RET_KILL_PROCESS: u32 = 0x8000_0000;
const RET_ERRNO: u32 = 0x0005_0000;
const RET_USER_NOTIF: u32 = 0x7FC0_0000;

#[cfg(target_arch = "x86_64")]
const TARGET: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const TARGET: TargetArch = TargetArch::aarch64;

/// Why no filters could be made.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeccompError {
    /// The table's own mistake: one answer given twice whatever the arguments.
    #[error("the table answers call {number} the same twice")]
    AnsweredTwice {
        /// The call.
        number: u32,
    },
    /// seccompiler refused.
    #[error("compile the filter that answers {answer}")]
    Compile {
        /// What the filter answers.
        answer: String,
        /// Why.
        source: BackendError,
    },
}

/// Which of an error's rules a call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Those with tests of arguments.
    ByArgument,
    /// Those without. They come second, for calls that the others allow.
    Error,
}

/// The most frequent calls that are decided by arguments, after the one with a way past everything.
const FREQUENT: [i64; 6] = [
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_clone,
    libc::SYS_prctl,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
];

/// Rules per call number; no rule means: whatever the arguments.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters that a role installs under these settings. A command inherits the forker's filters, so what those refuse needs
/// no rule.
pub fn lower(settings: Settings) -> Result<SeccompPlan, SeccompError> {
    let table = Table::of(settings);
    let behind = match settings.role {
        Role::Forker => None,
        Role::Command => Some(Table::of(Settings {
            role: Role::Forker,
            ..settings
        })),
    };
    let is_answered = |number: u32, action: Action| {
        let rows = behind.as_ref().map_or(&[][..], |behind| behind.rows_for(number));
        rows.iter().any(|active_row| active_row.action == action)
    };
    let mut errors: BTreeMap<(Part, Errno), Rules> = BTreeMap::new();
    let mut notified = Rules::new();
    for (number, active_rows) in table.entries() {
        for answer in active_rows {
            let (rules, chain) = match answer.action {
                Action::Allow => continue,
                Action::Notify(clauses) | Action::Report(clauses) => {
                    let chain = clauses.iter().map(rule).collect::<Result<_, _>>();
                    (&mut notified, chain.map_err(watched_failed)?)
                }
                Action::Error(_) | Action::ErrorIf(..) if is_answered(number, answer.action) => continue,
                Action::Error(errno) => (errors.entry((Part::Error, errno)).or_default(), Vec::new()),
                Action::ErrorIf(errno, clauses) => {
                    let chain = clauses.iter().map(rule);
                    let chain = chain
                        .collect::<Result<_, _>>()
                        .map_err(|source| failed(errno, source))?;
                    (errors.entry((Part::ByArgument, errno)).or_default(), chain)
                }
            };
            match rules.entry(number.into()) {
                Entry::Vacant(slot) => {
                    slot.insert(chain);
                }
                // A further reason for the same answer: the clauses of both hold.
                Entry::Occupied(mut slot) if !slot.get().is_empty() && !chain.is_empty() => {
                    slot.get_mut().extend(chain);
                }
                Entry::Occupied(_) => return Err(SeccompError::AnsweredTwice { number }),
            }
        }
    }
    let always = take_always(&mut errors);
    let judged: BTreeSet<i64> = errors.values().flat_map(BTreeMap::keys).copied().collect();
    let mut parts = Vec::new();
    for ((_, errno), rules) in errors {
        let action = SeccompAction::Errno(errno.code().into());
        parts.push(compile(rules, action, &judged).map_err(|source| failed(errno, source))?);
    }
    let unknown = match settings.role {
        Role::Forker => refusal(Errno::NoSys),
        Role::Command => RET_ALLOW,
    };
    let past = way_past(&table, is_answered);
    let program = assemble(past, &branches(&always, &judged, unknown), parts);
    let (mut programs, mut notify) = (vec![program], None);
    match settings.role {
        // The forker has no listener, so these calls fail. Of two filters that notify, the kernel uses the listener of the later.
        Role::Forker if !notified.is_empty() => programs.push(notifying(notified)?),
        Role::Forker => {}
        Role::Command => notify = Some(notifying(notified)?),
    }
    Ok(SeccompPlan { programs, notify })
}

/// The head, then the parts that decide by arguments.
fn assemble(past: Program, branches: &[(u32, Branch)], parts: Vec<Program>) -> Program {
    let mut program = frame();
    program.extend(past);
    program.extend(tree(branches));
    program.extend(join(parts));
    program
}

/// The way past what refuses the most frequent call, where its arguments alone decide.
fn way_past(table: &Table, is_answered: impl Fn(u32, Action) -> bool) -> Program {
    let number = shortcut::number();
    let mut clauses = Vec::new();
    for active_row in table.rows_for(number) {
        match active_row.action {
            // The forker's filters, and the filter that notifies, decide these.
            Action::Allow | Action::Notify(_) | Action::Report(_) => {}
            Action::Error(_) | Action::ErrorIf(..) if is_answered(number, active_row.action) => {}
            Action::Error(_) => return Program::new(),
            Action::ErrorIf(_, more) => clauses.extend_from_slice(more),
        }
    }
    shortcut::past(&clauses)
}

/// Takes out the numbers that always fail, with the return value of the filter.
fn take_always(errors: &mut BTreeMap<(Part, Errno), Rules>) -> BTreeMap<i64, u32> {
    let by_argument: BTreeSet<i64> = errors
        .iter()
        .filter(|((part, _), _)| *part == Part::ByArgument)
        .flat_map(|(_, rules)| rules.keys().copied())
        .collect();
    let mut always = BTreeMap::new();
    for ((part, errno), rules) in errors.iter_mut() {
        match part {
            Part::ByArgument => {}
            Part::Error => rules.retain(|number, _| {
                let judged = by_argument.contains(number);
                if !judged {
                    // Of two errors the one that comes first, as it would in a row of filters.
                    always.entry(*number).or_insert(refusal(*errno));
                }
                judged
            }),
        }
    }
    errors.retain(|_, rules| !rules.is_empty());
    always
}

/// What a filter returns for an error.
fn refusal(errno: Errno) -> u32 {
    RET_ERRNO | u32::from(errno.code())
}

/// The branches of the search tree; `unknown` is returned for numbers of no call.
fn branches(always: &BTreeMap<i64, u32>, judged: &BTreeSet<i64>, unknown: u32) -> Vec<(u32, Branch)> {
    let unknown = Branch::Return(unknown);
    let way = |number: u32| {
        if GAP.contains(&number) {
            return unknown;
        }
        let number = i64::from(number);
        match always.get(&number) {
            Some(value) => Branch::Return(*value),
            None if judged.contains(&number) => Branch::Onward,
            None => Branch::Return(RET_ALLOW),
        }
    };
    let known = (0..=HIGHEST).map(|number| (number, way(number)));
    let mut branches: Vec<(u32, Branch)> = known.chain([(HIGHEST + 1, unknown)]).collect();
    branches.dedup_by_key(|(_, way)| *way);
    branches
}

/// The error for a filter that answers an error number.
fn failed(errno: Errno, source: BackendError) -> SeccompError {
    SeccompError::Compile {
        answer: format!("error {}", errno.code()),
        source,
    }
}

/// One rule: all tests of the clause, on the low 32 bits.
fn rule(clause: &Clause) -> Result<SeccompRule, BackendError> {
    let condition = |test: &Test| {
        let (operator, value) = match *test {
            Test::Is(_, value) => (SeccompCmpOp::Eq, value),
            Test::IsNot(_, value) => (SeccompCmpOp::Ne, value),
            Test::Bits(_, mask, value) => (SeccompCmpOp::MaskedEq(mask.into()), value),
        };
        SeccompCondition::new(test.arg(), SeccompCmpArgLen::Dword, operator, value.into())
    };
    SeccompRule::new(clause.iter().map(condition).collect::<Result<_, _>>()?)
}

/// A filter with one action for the calls of some rules, which allows all others.
pub(super) fn compile(rules: Rules, action: SeccompAction, seen: &BTreeSet<i64>) -> Result<Program, BackendError> {
    let silent_on: Vec<i64> = FREQUENT
        .into_iter()
        .filter(|number| seen.contains(number) && !rules.contains_key(number))
        .collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, TARGET)?;
    let program = BpfProgram::try_from(filter)?;
    let mut program = program.into_iter().map(|i| step(i.code, i.jt, i.jf, i.k)).collect();
    hasten(&mut program, &silent_on);
    Ok(program)
}

/// One filter of all parts: where a part allows, the next one decides.
fn join(parts: Vec<Program>) -> Program {
    let last = parts.len().saturating_sub(1);
    let mut joined = Program::new();
    for (index, mut part) in parts.into_iter().enumerate() {
        if index < last {
            let distances = (0..part.len()).rev();
            for (instruction, distance) in part.iter_mut().zip(distances) {
                if *instruction == step(RETURN, 0, 0, RET_ALLOW) {
                    // A distance past u32 would be refused by the reader as a jump past the end.
                    *instruction = step(JUMP, 0, 0, u32::try_from(distance).unwrap_or(u32::MAX));
                }
            }
        }
        joined.append(&mut part);
    }
    joined
}

/// Puts a way out for some numbers right behind the load of the number.
fn hasten(program: &mut Program, numbers: &[i64]) {
    let Some(load) = program
        .iter()
        .position(|instruction| *instruction == step(LOAD, 0, 0, 0))
    else {
        return;
    };
    // Each test jumps over the tests left and the jump behind them, onto the return.
    let numbers: Vec<u32> = numbers
        .iter()
        .filter_map(|number| u32::try_from(*number).ok())
        .collect();
    let tests = numbers.iter().zip((0..=u8::try_from(numbers.len()).unwrap_or(0)).rev());
    let tests = tests.map(|(number, left)| step(JUMP_EQUAL, left, 0, *number));
    let way_out: Vec<Instruction> = tests
        .chain([step(JUMP, 0, 0, 1), step(RETURN, 0, 0, RET_ALLOW)])
        .collect();
    // Jumps are relative and none leads from before this place to behind it, so nothing else moves.
    let behind = load + 1;
    program.splice(behind..behind, way_out);
}

fn watched_failed(source: BackendError) -> SeccompError {
    SeccompError::Compile {
        answer: "notify".to_owned(),
        source,
    }
}

/// The filter that hands calls to a listener. seccompiler has no such action: `Log`, which no other
/// filter uses, holds its place.
fn notifying(rules: Rules) -> Result<Program, SeccompError> {
    let placeholder = u32::from(SeccompAction::Log);
    let is_notified = rules.contains_key(&shortcut::CALL);
    let (always, judged): (Rules, Rules) = rules.into_iter().partition(|(_, chain)| chain.is_empty());
    let always = always.into_keys().map(|number| (number, RET_USER_NOTIF)).collect();
    let numbers: BTreeSet<i64> = judged.keys().copied().collect();
    let mut parts = Vec::new();
    if !judged.is_empty() {
        parts.push(compile(judged, SeccompAction::Log, &numbers).map_err(watched_failed)?);
    }
    for instruction in parts.iter_mut().flatten() {
        if instruction.code == RETURN && instruction.k == placeholder {
            instruction.k = RET_USER_NOTIF;
        }
    }
    let past = if is_notified {
        Program::new()
    } else {
        shortcut::past(&[])
    };
    Ok(assemble(past, &branches(&always, &numbers, RET_ALLOW), parts))
}

/// The beginning: the architecture, and the number for what follows.
fn frame() -> Program {
    vec![
        step(LOAD, 0, 0, 4), // arch
        step(JUMP_EQUAL, 1, 0, NATIVE_ARCH),
        step(RETURN, 0, 0, RET_KILL_PROCESS),
        step(LOAD, 0, 0, 0), // nr
    ]
}
