//! The reports made so far, as hashes: a command chooses how many names there are and how long they are.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use super::super::violation::Effect;

/// The reports made so far: a second try at an entry is no second violation.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    /// Random keys, so that a command cannot produce a collision.
    keys: RandomState,
    reports: HashSet<u64>,
}

impl Reported {
    /// Adds a report and returns whether it is new.
    pub(crate) fn insert(&mut self, path: &Path, kind: Effect) -> bool {
        self.reports.insert(self.keys.hash_one((path, kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_news_once() {
        let mut reported = Reported::default();
        assert!(reported.insert(Path::new("/a"), Effect::Created));
        assert!(reported.insert(Path::new("/a"), Effect::Removed) && reported.insert(Path::new("/b"), Effect::Created));
        assert!(!reported.insert(Path::new("/a"), Effect::Created));
    }
}
