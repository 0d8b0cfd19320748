//! Conditions that refuse → conditions that permit, each looking at an argument once.
//!
//! A [`Cube`] fixes some bits of some arguments. What no clause refuses is a union of cubes: from the cube
//! of everything, each clause takes away its part, and a cube that it does not touch stays whole.

use std::collections::BTreeMap;

use crate::backend::seccomp::table::{Clause, Test};

/// The bits in the order in which cubes are split. The type of an `ioctl` request comes first, because most
/// clauses speak of it: split in one order, cubes are the leaves of one tree, and few.
const ORDER: [u32; 32] = [
    15, 14, 13, 12, 11, 10, 9, 8, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 7, 6, 5, 4, 3, 2, 1,
    0,
];

/// More than any call of the table needs; beyond it something is wrong.
const MAX_CUBES: usize = 512;

/// Bits that arguments must have: by argument, a mask and the value under it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Cube(BTreeMap<u32, (u32, u32)>);

impl Cube {
    /// Argument, mask and value of each condition, by argument.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        self.0.iter().map(|(index, (mask, value))| (*index, *mask, *value))
    }

    fn at(&self, index: u32) -> (u32, u32) {
        self.0.get(&index).copied().unwrap_or_default()
    }

    /// The part in which the argument's bits under `mask` are `value`; `None` if there is none.
    fn with(&self, index: u32, mask: u32, value: u32) -> Option<Self> {
        let (known_mask, known) = self.at(index);
        if known & mask & known_mask != value & mask & known_mask {
            return None;
        }
        let mut cube = self.clone();
        cube.0.insert(index, (known_mask | mask, known | value & mask));
        Some(cube)
    }

    /// The parts in which the argument's bits under `mask` are anything but `value`; they do not overlap.
    fn without(&self, index: u32, mask: u32, value: u32) -> Vec<Self> {
        let (known_mask, known) = self.at(index);
        if known & mask & known_mask != value & mask & known_mask {
            return vec![self.clone()];
        }
        // Bit by bit: equal so far, and different here.
        let mut same = 0;
        let mut parts = Vec::new();
        let bits = ORDER.map(|bit| 1_u32 << bit);
        for bit in bits.into_iter().filter(|bit| mask & !known_mask & bit != 0) {
            parts.extend(self.with(index, same | bit, (value & same) | (!value & bit)));
            same |= bit;
        }
        parts
    }

    /// The parts in which the test fails.
    fn failing(&self, test: Test) -> Vec<Self> {
        let index = u32::from(test.arg());
        match test {
            Test::Is(_, value) => self.without(index, u32::MAX, value),
            Test::IsNot(_, value) => self.with(index, u32::MAX, value).into_iter().collect(),
            Test::Bits(_, mask, value) => self.without(index, mask, value),
        }
    }

    /// The part in which the test holds, where that is one cube; `None` where there is none.
    fn passing(&self, test: Test) -> Option<Self> {
        let index = u32::from(test.arg());
        match test {
            Test::Is(_, value) => self.with(index, u32::MAX, value),
            Test::Bits(_, mask, value) => self.with(index, mask, value),
            // Everything but a point is no cube; the whole is more than it, which only costs a rule.
            Test::IsNot(_, value) => {
                let (mask, known) = self.at(index);
                (mask != u32::MAX || known != value).then(|| self.clone())
            }
        }
    }
}

/// What none of the clauses refuses.
pub(super) fn permitted(clauses: &[Clause]) -> Result<Vec<Cube>, String> {
    let mut left = vec![Cube::default()];
    for clause in clauses {
        let mut next = Vec::new();
        for cube in left {
            let mut refused = Some(cube.clone());
            for test in *clause {
                refused = refused.and_then(|cube| cube.passing(*test));
            }
            if refused.is_none() {
                next.push(cube);
                continue;
            }
            next.extend(clause.iter().flat_map(|test| cube.failing(*test)));
        }
        next.sort();
        next.dedup();
        if next.len() > MAX_CUBES {
            return Err("the conditions of a call come to too many rules".to_owned());
        }
        left = next;
    }
    Ok(left)
}
