//! The places that one pass has moved something from or to.

use std::collections::BTreeSet;

use super::super::entry::nofollow::{is_within, prefixes};

/// Paths below roots, asked for what lies above and below them without looking at each.
#[derive(Debug, Default)]
pub(crate) struct Touched(BTreeSet<(u16, Vec<u8>)>);

impl Touched {
    pub(crate) fn add(&mut self, root: u16, path: &[u8]) {
        self.0.insert((root, path.to_vec()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether none of them is this path, lies above it or below it.
    pub(crate) fn is_clear(&self, root: u16, path: &[u8]) -> bool {
        let has = |above: &[u8]| self.0.contains(&(root, above.to_vec()));
        if has(b"") || prefixes(path).any(has) {
            return false;
        }
        let mut within = path.to_vec();
        if !path.is_empty() {
            within.push(b'/');
        }
        let below = self.0.range((root, within)..).next();
        !below.is_some_and(|(other, below)| *other == root && is_within(below, path))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_path_is_clear_of_what_lies_neither_above_nor_below_it(
            added in prop::collection::vec((0_u16..2, "([ab.]{1,2}(/[ab.]{1,2}){0,2})?"), 0..6),
            root in 0_u16..2,
            path in "([ab.]{1,2}(/[ab.]{1,2}){0,2})?",
        ) {
            let mut touched = Touched::default();
            for (root, path) in &added {
                touched.add(*root, path.as_bytes());
            }
            let path = path.as_bytes();
            let clear = added.iter().all(|(other, at)| {
                *other != root || !(is_within(path, at.as_bytes()) || is_within(at.as_bytes(), path))
            });
            prop_assert_eq!(touched.is_clear(root, path), clear);
        }
    }
}
