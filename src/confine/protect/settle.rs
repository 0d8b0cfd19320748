//! Comparing with the snapshot and undoing the difference, until nothing differs.
//!
//! A round goes: directories that were moved away come back first, because what they hold cannot be had from the journal (a
//! git directory's objects); then what was there is compared; then what was not there is inspected. Each round ends in
//! another walk, so what a restored or quarantined thing uncovered is seen; a tree that is still not at rest after
//! [`ROUNDS`] is an error, and its journal stays.

use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::RenameFlags;

use super::at::{self, Identity, split};
use super::covers::Covers;
use super::error::ProtectError;
use super::names::is_dot_git;
use super::patterns::Patterns;
use super::record::{Kept, Record};
use super::restore::{make_way, rename, set_mode};
use super::roots::{Root, shown};
use super::sight::{Holder, Sight, born};
use super::touched::Touched;
use super::tracked::Tips;
use super::violation::{Named, Violation, What};
use super::walk::walk_through;
use super::work::{Settled, Work};

/// Rounds of undoing before the tree counts as restless.
const ROUNDS: usize = 1000;
/// Passes of bringing moved directories back, each of which brings at least one.
const MOVES: usize = 256;

/// Undoes every difference between the record and the roots; with it the last walk, if one came through. An entry that
/// cannot be put back does not keep the others from it.
pub(super) fn settle(
    roots: &[Root],
    patterns: &Patterns,
    record: &Record,
    earlier: Option<&Sight>,
    covers: Option<&Covers>,
    store: &Path,
    tips: Option<&Tips>,
) -> (Settled, Option<Sight>) {
    let mut work = Work::new(roots, record, store, tips);
    let unlocked: Vec<&Root> = roots.iter().filter(|root| root.open_up()).collect();
    let copied = covers.map(|covers| work.settle_copies(covers)).unwrap_or_default();
    let sight = work.come_to_rest(patterns, earlier, earlier);
    let more = match &sight {
        Some(sight) => work.with_new_work_trees(patterns, sight, earlier),
        None => None,
    };
    if let Some(more) = more {
        // No walk before has looked at what these name.
        work.come_to_rest(&more, None, earlier);
    }
    if let Some(program) = &record.program {
        match program.restore(roots, store, &mut work.quarantine) {
            Ok(Some(done)) => work.report(
                done.place.0,
                &done.place.1,
                done.what,
                done.quarantined,
                Named::default(),
            ),
            Ok(None) => {}
            Err(error) => work.settled.errors.push(error),
        }
    }
    work.quarantine.close();
    work.tell_failures();
    // The last round has cleared what errors came before.
    work.restore_modes();
    if let Some(sight) = &sight {
        work.let_in(sight, earlier);
    }
    work.settled.errors.extend(copied);
    for root in unlocked {
        work.settled.errors.extend(root.shut().err());
    }
    (work.settled, sight)
}

/// Takes these entries away while a command may still run; what was there is put back when it is dead. What cannot be taken
/// now is undone then as well.
pub(super) fn take_away(roots: &[Root], record: &Record, store: &Path, hostile: Vec<(u16, Vec<u8>)>) -> Vec<Violation> {
    let mut work = Work::new(roots, record, store, None);
    for (root, path) in hostile {
        let was_there = |kept: &Kept| kept.root == root && kept.path == path;
        let what = if record.entries.iter().any(was_there) {
            What::Changed
        } else {
            What::Created
        };
        if let Ok(place) = work.quarantine.take(work.root(root), &path, what) {
            work.report(root, &path, what, place, Named::default());
        }
    }
    work.quarantine.close();
    work.settled.violations
}

impl<'a> Work<'a> {
    /// Rounds until one finds nothing to change; the last walk. `known` is what may be relied on of a walk before.
    fn come_to_rest(&mut self, patterns: &Patterns, known: Option<&Sight>, earlier: Option<&Sight>) -> Option<Sight> {
        let mut last: Option<Sight> = None;
        for _ in 0..ROUNDS {
            // What failed may come right once other things are out of the way: the last round's errors count.
            self.settled.errors.clear();
            self.failed.clear();
            let before = self.changes;
            let sight = match self.bring_back(patterns, last.as_ref().or(known)) {
                Ok(sight) => Some(sight),
                Err(error) => {
                    self.settled.errors.push(error);
                    None
                }
            };
            self.compare();
            // What was put back is not what the walk saw; the next round judges the new.
            if self.changes == before
                && let Some(sight) = &sight
            {
                self.inspect(sight, earlier);
            }
            if self.changes == before {
                return sight;
            }
            last = sight.or(last);
        }
        let path = self.settled.violations.last().map(|violation| violation.path.clone());
        self.settled
            .errors
            .push(ProtectError::Restless(path.unwrap_or_default()));
        None
    }

    /// Moves holders that are elsewhere now back to where they were; the walk that found none moved.
    fn bring_back(&mut self, patterns: &Patterns, earlier: Option<&Sight>) -> Result<Sight, ProtectError> {
        let mut last = PathBuf::new();
        for _ in 0..MOVES {
            let mut errors = Vec::new();
            let sight = walk_through(self.roots, patterns, earlier, &mut errors)?;
            let places = sight.locate(&self.holders);
            let mut touched = Touched::default();
            self.moved.clear();
            let record = self.record;
            for holder in &record.holders {
                let Some((root, path)) = places.get(&holder.identity) else {
                    self.note_gone(holder);
                    continue;
                };
                // A mount may show it a second time.
                if (*root, path) == (holder.root, &holder.path) || holder.is_at_home(self.root(holder.root)) {
                    continue;
                }
                // What this pass has moved is not where the walk saw it: left to the next pass.
                if !touched.is_clear(*root, path) || !touched.is_clear(holder.root, &holder.path) {
                    continue;
                }
                if holder.born.is_none() || born(self.root(*root), path) != holder.born {
                    self.note_gone(holder);
                    continue;
                }
                if self.has_moved_along(holder, *root, path) {
                    continue;
                }
                if let Err(error) = self.move_back(holder, *root, path) {
                    errors.push(error);
                    continue;
                }
                last = shown(self.root(holder.root), &holder.path);
                touched.add(*root, path);
                touched.add(holder.root, &holder.path);
            }
            if touched.is_empty() {
                self.settled.errors.append(&mut errors);
                return Ok(sight);
            }
            self.changes += 1;
        }
        Err(ProtectError::Restless(last))
    }

    /// Keeps the mode of a directory that is no more, for the case that it is made again for what it held.
    fn note_gone(&mut self, holder: &'a Holder) {
        let there = at::stat(&self.root(holder.root).fd, &holder.path);
        if let Some(mode) = holder.mode
            && !there.is_ok_and(|there| at::kind(&there) == libc::S_IFDIR)
        {
            self.gone.insert((holder.root, &holder.path), mode);
        }
    }

    /// Gives the directories that were made again the modes they had, inner ones first.
    fn restore_modes(&mut self) {
        for ((root, path), mode) in std::mem::take(&mut self.gone).into_iter().rev() {
            let root = self.root(root);
            let there = at::stat(&root.fd, path);
            if there.is_ok_and(|there| at::kind(&there) == libc::S_IFDIR && at::permissions(&there) != mode) {
                self.settled.errors.extend(set_mode(root, path, mode).err());
            }
        }
    }

    fn move_back(&mut self, holder: &Holder, root: u16, path: &[u8]) -> Result<(), ProtectError> {
        let home = &self.roots[usize::from(holder.root)];
        let now = &self.roots[usize::from(root)];
        let fail = |error| ProtectError::io("move back", shown(home, &holder.path), error);
        let (directory, name) = split(&holder.path);
        let mut quarantined = make_way(home, directory, &mut self.quarantine)?;
        let mut how = RenameFlags::RENAME_NOREPLACE;
        if let Ok(occupant) = at::stat(&home.fd, &holder.path) {
            let is_holder = self.holders.contains(&Identity::of(&occupant));
            // What took the place of a git directory is an intruder. What took that of an ordinary directory
            // may be a person's work: it goes where the directory was, and is inspected there.
            if is_holder || !is_dot_git(name) {
                how = RenameFlags::RENAME_EXCHANGE;
            } else {
                quarantined = self.quarantine.take(home, &holder.path, What::Changed)?;
            }
        }
        match rename((now, path), (home, &holder.path), how) {
            Ok(()) => {}
            // One of the two is inside the other: out of it first, home in the next pass.
            Err(Errno::EINVAL) if how == RenameFlags::RENAME_EXCHANGE => {
                let aside = format!(".stockade-restore-{}", super::store::unique_name());
                rename((now, path), (now, aside.as_bytes()), RenameFlags::RENAME_NOREPLACE).map_err(fail)?;
            }
            Err(error) => return Err(fail(error)),
        }
        self.report(holder.root, &holder.path, What::Removed, quarantined, Named::default());
        Ok(())
    }
}
