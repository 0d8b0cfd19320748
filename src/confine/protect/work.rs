//! The work of one settling: what it is done with, and what came of it so far.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::at::Identity;
use super::change::Changes;
use super::journal::Record;
use super::quarantine::Quarantine;
use super::roots::Root;
use super::said::Said;
use super::tracked::{Tips, Tracked};
use super::{Named, ProtectError, Violation, What, shown};

/// What settling came to.
#[derive(Debug, Default)]
pub struct Settled {
    /// What was put back.
    pub violations: Vec<Violation>,
    /// What could not be put back; empty when everything is as it was.
    pub errors: Vec<ProtectError>,
    /// What was undone and a person could still want.
    pub(super) changes: Changes,
}

/// A settling under way.
pub(super) struct Work<'a> {
    pub(super) roots: &'a [Root],
    pub(super) record: &'a Record,
    pub(super) holders: HashSet<Identity>,
    pub(super) quarantine: Quarantine,
    said: Said,
    pub(super) tracked: Tracked<'a>,
    /// Changes made to the tree.
    pub(super) changes: usize,
    pub(super) settled: Settled,
}

impl<'a> Work<'a> {
    pub(super) fn new(roots: &'a [Root], record: &'a Record, store: &Path, tips: Option<&'a Tips>) -> Self {
        Self {
            roots,
            record,
            holders: record.holders.iter().map(|holder| holder.identity).collect(),
            quarantine: Quarantine::new(store),
            said: Said::default(),
            tracked: Tracked::new(roots, record, tips),
            changes: 0,
            settled: Settled::default(),
        }
    }

    pub(super) fn root(&self, number: u16) -> &'a Root {
        &self.roots[usize::from(number)]
    }

    pub(super) fn report(&mut self, root: u16, path: &[u8], what: What, quarantined: Option<PathBuf>, named: Named) {
        let is_other_in_head = self.tracked.is_other_in_head(root, path);
        let path = shown(self.root(root), path);
        if self.said.is_news(&path, what) || quarantined.is_some() {
            self.settled.violations.push(Violation {
                path,
                what,
                quarantined,
                named,
                is_other_in_head,
            });
        }
    }
}
