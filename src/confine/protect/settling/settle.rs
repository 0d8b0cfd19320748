//! Comparing with the snapshot and undoing the difference, until nothing differs.
//!
//! A round goes: directories that were moved away come back first, because what they hold cannot be had from the journal (a
//! git directory's objects); then what was there is compared; then what was not there is inspected. Each round ends in
//! another walk, so what a restored or quarantined thing uncovered is seen; a tree that is still not at rest after
//! [`ROUNDS`] is an error, and its journal stays.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::RenameFlags;

use super::super::entry::nofollow::{self, Identity, split};
use super::super::entry::restore::{create_parents, rename, set_mode};
use super::super::error::ProtectError;
use super::super::live::covers::Covers;
use super::super::naming::names::is_dot_git;
use super::super::naming::patterns::Patterns;
use super::super::record::{Record, SavedEntry};
use super::super::roots::{Root, absolute};
use super::super::storage::store::temporary_name;
use super::super::tracked::Tips;
use super::super::tree::inventory::{Ancestor, Inventory, creation_time};
use super::super::tree::walk::walk_through;
use super::super::violation::{Effect, Violation};
use super::cover_changes::settle_covers;
use super::settlement::{Settlement, SettlementReport};
use super::touched::Touched;

/// Rounds of undoing before the tree counts as restless.
const ROUNDS: usize = 1000;
/// Passes of bringing moved directories back, each of which brings at least one.
const MOVES: usize = 256;

/// Undoes every difference between the record and the roots; with it the last walk, if one came through. An entry that
/// cannot be put back does not keep the others from it. `earlier` is what was seen before the
/// command, and when that began.
pub(crate) fn settle(
    roots: &[Root],
    patterns: &Patterns,
    record: &Record,
    earlier: Option<(&Inventory, Duration)>,
    covers: Option<&Covers>,
    store: &Path,
    tips: Option<&Tips>,
) -> (SettlementReport, Option<Inventory>) {
    let mut work = Settlement::new(roots, record, store, tips);
    let (earlier, since) = earlier.unzip();
    work.since = since;
    let unlocked: Vec<&Root> = roots.iter().filter(|root| root.grant_owner()).collect();
    let copied = covers
        .map(|covers| settle_covers(&mut work, covers))
        .unwrap_or_default();
    let mut inventory = work.restore_until_stable(patterns, earlier, earlier);
    let mut with_hooks = None;
    if let Some(seen) = &inventory {
        let new = work.new_places(patterns, seen);
        with_hooks = work.take_new_hooks(patterns, &new, earlier);
    }
    if with_hooks.is_some() {
        let mut unseen = Vec::new();
        let walked = walk_through(roots, patterns, inventory.as_ref(), &mut unseen);
        inventory = walked.ok().filter(|_| unseen.is_empty());
    }
    if let Some(program) = &record.program {
        match program.restore(roots, store, &mut work.quarantine) {
            Ok(Some(done)) => work.report(done.location.0, &done.location.1, done.kind, done.quarantined),
            Ok(None) => {}
            Err(error) => work.settled.errors.push(error),
        }
    }
    work.quarantine.close();
    if let Some(covers) = covers {
        covers.settled();
    }
    work.mark_failures();
    // Each round clears earlier errors, so these come after the last one.
    work.restore_modes();
    for inventory in inventory.iter().chain(&with_hooks) {
        work.reopen_directories(inventory, earlier);
    }
    work.settled.errors.extend(copied);
    for root in unlocked {
        work.settled.errors.extend(root.restore_mode().err());
    }
    (work.settled, inventory)
}

/// Takes these entries away while a command may still run; what was there is put back when it is dead. What cannot be taken
/// now is undone then as well.
pub(crate) fn take_away(roots: &[Root], record: &Record, store: &Path, entries: Vec<(u16, Vec<u8>)>) -> Vec<Violation> {
    let mut work = Settlement::new(roots, record, store, None);
    for (root, path) in entries {
        let was_recorded = |kept: &SavedEntry| kept.root == root && kept.path == path;
        let kind = if record.entries.iter().any(was_recorded) {
            Effect::Changed
        } else {
            Effect::Created
        };
        if let Ok(quarantined) = work.quarantine.take(work.root(root), &path, kind) {
            work.report(root, &path, kind, quarantined);
        }
    }
    work.quarantine.close();
    work.settled.violations
}

impl<'a> Settlement<'a> {
    /// Rounds until one finds nothing to change; the last walk. `known` is what may be relied on of a walk before.
    pub(crate) fn restore_until_stable(
        &mut self,
        patterns: &Patterns,
        known: Option<&Inventory>,
        earlier: Option<&Inventory>,
    ) -> Option<Inventory> {
        let mut last: Option<Inventory> = None;
        for _ in 0..ROUNDS {
            // An error may vanish once an obstacle is removed, so only the last round's errors count.
            self.settled.errors.clear();
            self.failed.clear();
            let before = self.changes;
            let inventory = match self.move_directories_back(patterns, last.as_ref().or(known)) {
                Ok(inventory) => Some(inventory),
                Err(error) => {
                    self.settled.errors.push(error);
                    None
                }
            };
            self.compare();
            // The walk is outdated where something was restored; the next round judges what is new.
            if self.changes == before
                && let Some(inventory) = &inventory
            {
                self.judge_new_entries(inventory, earlier);
            }
            if self.changes == before {
                return inventory;
            }
            last = inventory.or(last);
        }
        let path = self.settled.violations.last().map(|violation| violation.path.clone());
        self.settled
            .errors
            .push(ProtectError::Restless(path.unwrap_or_default()));
        None
    }

    /// Moves directories back to where they were, and returns the first inventory in which none is moved.
    fn move_directories_back(
        &mut self,
        patterns: &Patterns,
        earlier: Option<&Inventory>,
    ) -> Result<Inventory, ProtectError> {
        let mut last = PathBuf::new();
        for _ in 0..MOVES {
            let mut errors = Vec::new();
            let inventory = walk_through(self.roots, patterns, earlier, &mut errors)?;
            let locations = inventory.locate(&self.ancestors);
            let mut touched = Touched::default();
            self.work_trees.forget_moves();
            let record = self.record;
            for ancestor in &record.ancestors {
                let Some((root, path)) = locations.get(&ancestor.identity) else {
                    self.note_removed(ancestor);
                    continue;
                };
                // A mount may show it a second time.
                if (*root, path) == (ancestor.root, &ancestor.path) || ancestor.is_in_place(self.root(ancestor.root)) {
                    continue;
                }
                // The walk is outdated for what this pass has moved: left to the next pass.
                if !touched.is_clear(*root, path) || !touched.is_clear(ancestor.root, &ancestor.path) {
                    continue;
                }
                if ancestor.created.is_none() || creation_time(self.root(*root), path) != ancestor.created {
                    self.note_removed(ancestor);
                    continue;
                }
                if self
                    .work_trees
                    .moves_with_work_tree(&self.tracked, ancestor, *root, path)
                {
                    continue;
                }
                if let Err(error) = self.move_back(ancestor, *root, path) {
                    errors.push(error);
                    continue;
                }
                last = absolute(self.root(ancestor.root), &ancestor.path);
                touched.add(*root, path);
                touched.add(ancestor.root, &ancestor.path);
            }
            if touched.is_empty() {
                self.settled.errors.append(&mut errors);
                return Ok(inventory);
            }
            self.changes += 1;
        }
        Err(ProtectError::Restless(last))
    }

    /// Keeps the mode of a removed directory, in case it is created again.
    fn note_removed(&mut self, ancestor: &'a Ancestor) {
        let current = nofollow::stat(&self.root(ancestor.root).fd, &ancestor.path);
        if let Some(mode) = ancestor.mode
            && !current.is_ok_and(|current| nofollow::kind(&current) == libc::S_IFDIR)
        {
            self.removed_directories.insert((ancestor.root, &ancestor.path), mode);
        }
    }

    /// Restores the modes of directories that were created again, inner ones first.
    fn restore_modes(&mut self) {
        for ((root, path), mode) in std::mem::take(&mut self.removed_directories).into_iter().rev() {
            let root = self.root(root);
            let current = nofollow::stat(&root.fd, path);
            if current.is_ok_and(|current| {
                nofollow::kind(&current) == libc::S_IFDIR && nofollow::permissions(&current) != mode
            }) {
                self.settled.errors.extend(set_mode(root, path, mode).err());
            }
        }
    }

    fn move_back(&mut self, ancestor: &Ancestor, root: u16, path: &[u8]) -> Result<(), ProtectError> {
        let home = &self.roots[usize::from(ancestor.root)];
        let now = &self.roots[usize::from(root)];
        let fail = |error| ProtectError::io("move back", absolute(home, &ancestor.path), error);
        let (directory, name) = split(&ancestor.path);
        let mut quarantined = create_parents(home, directory, &mut self.quarantine)?;
        let mut how = RenameFlags::RENAME_NOREPLACE;
        if let Ok(occupant) = nofollow::stat(&home.fd, &ancestor.path) {
            let is_ancestor = self.ancestors.contains(&Identity::of(&occupant));
            // What took the place of a git directory is an intruder. What took that of an ordinary directory
            // may be a person's work: it goes where the directory was, and is inspected there.
            if is_ancestor || !is_dot_git(name) {
                how = RenameFlags::RENAME_EXCHANGE;
            } else {
                quarantined = self.quarantine.take(home, &ancestor.path, Effect::Changed)?;
            }
        }
        match rename((now, path), (home, &ancestor.path), how) {
            Ok(()) => {}
            // One is inside the other: this pass moves it out, the next one moves it back.
            Err(Errno::EINVAL) if how == RenameFlags::RENAME_EXCHANGE => {
                let temporary = temporary_name();
                rename((now, path), (now, temporary.as_bytes()), RenameFlags::RENAME_NOREPLACE).map_err(fail)?;
            }
            Err(error) => return Err(fail(error)),
        }
        self.report(ancestor.root, &ancestor.path, Effect::Removed, quarantined);
        Ok(())
    }
}
