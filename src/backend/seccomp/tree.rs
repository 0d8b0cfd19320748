//! The decisions by number alone, as a search tree.
//!
//! When a filter is installed the kernel runs it for every number of every table, to learn which ones are
//! always allowed; and it translates each instruction. So what a start pays is how many instructions there are,
//! and how many of them lie before an answer: a tree has few of both.

use super::instruction::{Instruction, JUMP, JUMP_GREATER_EQUAL, Program, RETURN, step};

/// Where a number leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Branch {
    /// The filter returns this.
    Return(u32),
    /// To the filters behind the tree, which judge the arguments.
    Onward,
}

/// Stands for the way onward until it is known how long that is.
const ONWARD: Instruction = step(JUMP, 0, 0, u32::MAX);

/// A program that sorts the number in the accumulator by where it lies. Each piece of `branches` reaches from its number to
/// that of the next one; the first is 0.
pub(super) fn tree(branches: &[(u32, Branch)]) -> Program {
    let mut program = branch(branches);
    let distances = (0..program.len()).rev();
    for (instruction, distance) in program.iter_mut().zip(distances) {
        if *instruction == ONWARD {
            // A distance past u32 would be refused by the reader as a jump past the end.
            instruction.k = u32::try_from(distance).unwrap_or(u32::MAX);
        }
    }
    program
}

fn branch(branches: &[(u32, Branch)]) -> Program {
    let (low, high) = branches.split_at(branches.len() / 2);
    let Some(&(first, way)) = high.first() else {
        return Program::new();
    };
    if low.is_empty() {
        return vec![match way {
            Branch::Return(value) => step(RETURN, 0, 0, value),
            Branch::Onward => ONWARD,
        }];
    }
    let low = branch(low);
    let mut program = match u8::try_from(low.len()) {
        Ok(length) => vec![step(JUMP_GREATER_EQUAL, length, 0, first)],
        Err(_) => vec![
            step(JUMP_GREATER_EQUAL, 0, 1, first),
            step(JUMP, 0, 0, u32::try_from(low.len()).unwrap_or(u32::MAX)),
        ],
    };
    program.extend(low);
    program.extend(branch(high));
    program
}

#[cfg(test)]
mod tests {
    use super::super::instruction::LOAD;
    use super::super::reader::Filter;
    use super::super::{Call, NATIVE_ARCH, Verdict};
    use super::*;

    #[test]
    fn each_number_goes_its_way_however_many_pieces_there_are() {
        for count in [1u32, 2, 3, 7, 64, 300, 900] {
            let way = |number: u32| match (number / 3) % count % 3 {
                0 => Branch::Return(0x7FFF_0000),
                1 => Branch::Return(0x0005_0000 | (number / 3)),
                _ => Branch::Onward,
            };
            let branches: Vec<(u32, Branch)> = (0..count).map(|piece| (piece * 3, way(piece * 3))).collect();
            let mut program = vec![step(LOAD, 0, 0, 0)];
            program.extend(tree(&branches));
            program.push(step(RETURN, 0, 0, 0x8000_0000));
            let filter = Filter::read(&program).unwrap();
            for nr in 0..count * 3 {
                let expected = match way(nr / 3 * 3) {
                    Branch::Return(value) => Verdict::from_return(value).unwrap(),
                    Branch::Onward => Verdict::KillProcess,
                };
                let call = Call {
                    arch: NATIVE_ARCH,
                    nr,
                    args: [0; 6],
                };
                assert_eq!(filter.answer(&call), expected, "{nr} of {count} pieces");
            }
        }
    }
}
