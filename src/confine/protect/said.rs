//! What has been reported, in little memory: a command chooses how many names there are, and how long they are.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use super::violation::What;

/// What has been reported: a second try at an entry is no second violation.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Nobody outside knows them, so nobody makes two reports look like one.
    keys: RandomState,
    reports: HashSet<u64>,
}

impl Said {
    /// Whether this has not been reported yet.
    pub(super) fn is_news(&mut self, path: &Path, what: What) -> bool {
        self.reports.insert(self.keys.hash_one((path, what)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_news_once() {
        let mut said = Said::default();
        assert!(said.is_news(Path::new("/a"), What::Created));
        assert!(said.is_news(Path::new("/a"), What::Removed) && said.is_news(Path::new("/b"), What::Created));
        assert!(!said.is_news(Path::new("/a"), What::Created));
    }
}
