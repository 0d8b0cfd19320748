//! What has been reported, in little memory: a command chooses how many names there are, and how long they are.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use super::violation::ViolationKind;

/// What has been reported: a second try at an entry is no second violation.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// Nobody outside knows them, so nobody makes two reports look like one.
    keys: RandomState,
    reports: HashSet<u64>,
}

impl Reported {
    /// Whether this has not been reported yet.
    pub(super) fn insert(&mut self, path: &Path, kind: ViolationKind) -> bool {
        self.reports.insert(self.keys.hash_one((path, kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_news_once() {
        let mut reported = Reported::default();
        assert!(reported.insert(Path::new("/a"), ViolationKind::Created));
        assert!(
            reported.insert(Path::new("/a"), ViolationKind::Removed)
                && reported.insert(Path::new("/b"), ViolationKind::Created)
        );
        assert!(!reported.insert(Path::new("/a"), ViolationKind::Created));
    }
}
