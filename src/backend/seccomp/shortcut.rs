//! A short way out of a filter for `openat`.
//!
//! Calls that are always allowed are in a bitmap of the kernel. For all others it runs every filter of the stack, and opening a
//! file is by far the most frequent. It is refused only if its mode has a bit that is rarely set, so that bit is tested first.

use super::instruction::{Instruction, JUMP_EQUAL, LOAD, Program, RET_ALLOW, RETURN, step};
use super::row::{Clause, Test};

/// The call.
pub(super) const CALL: i64 = libc::SYS_openat;

const JUMP_ANY_BIT: u16 = 0x45;
/// Where the arguments begin in what a filter sees, and how far apart they are; the low half of one comes first.
const ARGUMENTS: u32 = 16;
const ARGUMENT: u32 = 8;

/// Its number.
pub(super) fn number() -> u32 {
    // One that is none meets nothing.
    u32::try_from(CALL).unwrap_or(u32::MAX)
}

/// Allows the call, whose number is in the accumulator, where none of the clauses that refuse it can hold. What it does not allow, and
/// every other call, goes on with the number in the accumulator. Nothing where no single look tells.
pub(super) fn past(clauses: &[Clause]) -> Program {
    let number = number();
    if clauses.is_empty() {
        return vec![step(JUMP_EQUAL, 0, 1, number), ALLOW];
    }
    let Some((argument, bits)) = needed(clauses) else {
        return Program::new();
    };
    vec![
        step(JUMP_EQUAL, 0, 4, number),
        step(LOAD, 0, 0, ARGUMENTS + ARGUMENT * u32::from(argument)),
        step(JUMP_ANY_BIT, 1, 0, bits),
        ALLOW,
        step(LOAD, 0, 0, 0), // nr
    ]
}

const ALLOW: Instruction = step(RETURN, 0, 0, RET_ALLOW);

/// The argument, and bits of it of which each clause needs one.
fn needed(clauses: &[Clause]) -> Option<(u8, u32)> {
    let first = |clause: &Clause| match clause.first() {
        Some(Test::Bits(argument, _, value)) if *value != 0 => Some((*argument, *value)),
        Some(Test::Bits(..) | Test::Is(..) | Test::IsNot(..)) | None => None,
    };
    let (argument, _) = clauses.first().and_then(first)?;
    clauses.iter().try_fold((argument, 0), |(_, bits), clause| {
        let (other, value) = first(clause)?;
        (other == argument).then_some((argument, bits | value))
    })
}

#[cfg(test)]
mod tests {
    use Test::{Bits, Is};

    use super::super::reader::Filter;
    use super::super::{Call, NATIVE_ARCH, Verdict};
    use super::*;

    const SECOND: Clause = &[Bits(3, 0o2000, 0o2000), Bits(2, 0o100, 0o100)];
    const CLAUSES: &[Clause] = &[&[Bits(3, 0o4000, 0o4000), Bits(2, 0o100, 0o100)], SECOND];

    fn answer(clauses: &[Clause], nr: i64, mode: u64) -> Verdict {
        let behind = [
            step(JUMP_EQUAL, 0, 1, u32::try_from(nr).unwrap()),
            step(RETURN, 0, 0, 0x0005_0001),
            ALLOW,
        ];
        let program: Program = [step(LOAD, 0, 0, 0)]
            .into_iter()
            .chain(past(clauses))
            .chain(behind)
            .collect();
        let call = Call {
            arch: NATIVE_ARCH,
            nr: u32::try_from(nr).unwrap(),
            args: [0, 0, 0, mode, 0, 0],
        };
        Filter::read(&program).unwrap().answer(&call)
    }

    #[test]
    fn a_call_that_no_clause_can_refuse_is_allowed_at_once() {
        assert_eq!(answer(CLAUSES, CALL, 0o644), Verdict::Allow);
        assert_eq!(answer(&[], CALL, 0o6644), Verdict::Allow);
    }

    #[test]
    fn a_call_with_a_bit_that_some_clause_needs_goes_on() {
        for mode in [0o4000, 0o2000, 0o6777] {
            assert_ne!(answer(CLAUSES, CALL, mode), Verdict::Allow, "{mode:o}");
        }
    }

    #[test]
    fn another_call_goes_on_as_itself() {
        for clauses in [CLAUSES, &[]] {
            assert_ne!(answer(clauses, CALL + 1, 0), Verdict::Allow);
        }
    }

    #[test]
    fn clauses_that_no_single_look_tells_apart_have_no_way_out() {
        let several: [&[Clause]; 4] = [&[&[Is(3, 4)]], &[SECOND, &[Bits(2, 1, 1)]], &[&[Bits(3, 1, 0)]], &[&[]]];
        for clauses in several {
            assert_eq!(past(clauses), Program::new());
        }
    }
}
