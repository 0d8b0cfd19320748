//! The state of one settlement.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::change::Changes;
use super::super::entry::nofollow::Identity;
use super::super::error::ProtectError;
use super::super::record::Record;
use super::super::roots::{Root, absolute};
use super::super::storage::quarantine::Quarantine;
use super::super::tracked::{Tips, Tracked};
use super::super::violation::{Effect, Keys, Violation};
use super::reported::Reported;
use super::worktrees::WorkTrees;

/// The result of a settlement.
#[derive(Debug, Default)]
pub struct SettlementReport {
    /// What was put back.
    pub violations: Vec<Violation>,
    /// What could not be put back; empty when everything is as it was.
    pub errors: Vec<ProtectError>,
    /// What was undone and a person could still want.
    pub(crate) changes: Changes,
}

/// A settlement in progress.
pub(crate) struct Settlement<'a> {
    pub(crate) roots: &'a [Root],
    pub(crate) record: &'a Record,
    pub(crate) ancestors: HashSet<Identity>,
    pub(crate) quarantine: Quarantine,
    reported: Reported,
    pub(crate) tracked: Tracked<'a>,
    pub(crate) work_trees: WorkTrees<'a>,
    /// The directories that were not there when settling began, with the modes they had.
    pub(crate) removed_directories: BTreeMap<(u16, &'a [u8]), u32>,
    /// Changes made to the tree.
    pub(crate) changes: usize,
    pub(crate) settled: SettlementReport,
    /// When the command began.
    pub(crate) since: Option<Duration>,
    /// Whether only a work tree that a command made has the new entries be hooks.
    pub(crate) are_hooks_new: bool,
    /// What this round could not put back, and why.
    pub(crate) failed: BTreeMap<PathBuf, String>,
}

impl<'a> Settlement<'a> {
    pub(crate) fn new(roots: &'a [Root], record: &'a Record, store: &Path, tips: Option<&'a Tips>) -> Self {
        Self {
            roots,
            record,
            ancestors: record.ancestors.iter().map(|ancestor| ancestor.identity).collect(),
            quarantine: Quarantine::new(store),
            reported: Reported::default(),
            tracked: Tracked::new(roots, record, tips),
            work_trees: WorkTrees::new(roots, record),
            removed_directories: BTreeMap::new(),
            changes: 0,
            settled: SettlementReport::default(),
            since: None,
            are_hooks_new: false,
            failed: BTreeMap::new(),
        }
    }

    pub(crate) fn root(&self, number: u16) -> &'a Root {
        &self.roots[usize::from(number)]
    }

    pub(crate) fn report(&mut self, root: u16, path: &[u8], kind: Effect, quarantined: Option<PathBuf>) {
        self.report_keys(root, path, kind, quarantined, Keys::default());
    }

    pub(crate) fn report_keys(
        &mut self,
        root: u16,
        path: &[u8],
        kind: Effect,
        quarantined: Option<PathBuf>,
        settings: Keys,
    ) {
        let is_other_in_head =
            !matches!(kind, Effect::Access | Effect::Closed) && self.tracked.is_other_in_head(root, path);
        let path = absolute(self.root(root), path);
        if self.reported.insert(&path, kind) || quarantined.is_some() {
            self.settled.violations.push(Violation {
                path,
                kind,
                quarantined,
                settings,
                is_other_in_head,
                failed: None,
            });
        }
    }

    /// Marks the violations whose path, or something below it, could not be restored.
    pub(crate) fn mark_failures(&mut self) {
        for violation in &mut self.settled.violations {
            // A path comes right before what is below it.
            let next = self.failed.range(violation.path.clone()..).next();
            let below = next.filter(|(path, _)| path.starts_with(&violation.path));
            violation.failed = below.map(|(_, why)| why.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_not_be_put_back_or_one_below_it_is_told_as_such_and_no_other() {
        let record = Record::default();
        let mut work = Settlement::new(&[], &record, Path::new("/nowhere"), None);
        let violation = |path: &str| Violation {
            path: path.into(),
            kind: Effect::Changed,
            quarantined: None,
            settings: Keys::default(),
            is_other_in_head: false,
            failed: None,
        };
        work.settled.violations = ["/w/.git", "/w/.gita", "/w/.envrc"].map(violation).into();
        work.failed.insert("/w/.git/config".into(), "no room".to_owned());
        work.failed.insert("/w/.envrc".into(), "no".to_owned());
        work.mark_failures();
        let marked = work
            .settled
            .violations
            .iter()
            .map(|violation| violation.failed.as_deref());
        assert_eq!(marked.collect::<Vec<_>>(), [Some("no room"), None, Some("no")]);
    }
}
