//! Comparing with the snapshot and undoing the difference, until nothing differs.
//!
//! A round goes: directories that were moved away come back first, because what they hold cannot be had from the journal (a
//! git directory's objects); then what was there is compared; then what was not there is inspected. Each round ends in
//! another walk, so what a restored or quarantined thing uncovered is seen; a tree that is still not at rest after
//! [`ROUNDS`] is an error, and its journal stays.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::RenameFlags;

use super::at::{self, Identity, outermost, split};
use super::change::Changes;
use super::inspect::{MAX_NEW, Surroundings, may_stay, offence};
use super::journal::{Kept, Record};
use super::names::is_dot_git;
use super::place::{Patterns, Role};
use super::quarantine::Quarantine;
use super::restore::{can_be_made, is_blocked, make_way, put, rename, set_mode};
use super::roots::Root;
use super::said::Said;
use super::sight::{Found, Holder, Sight, born};
use super::state::{Names, Seen, State, glance};
use super::touched::Touched;
use super::unchanged::Company;
use super::walk::walk_through;
use super::{MAX_TOTAL, ProtectError, Violation, What, gitconfig, shown};

/// Rounds of undoing before the tree counts as restless.
const ROUNDS: usize = 1000;
/// Passes of bringing moved directories back, each of which brings at least one.
const MOVES: usize = 256;

/// What an entry had become, where that is kept, and why the entry could not be put back.
type Undone = (What, Option<PathBuf>, Option<ProtectError>);
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

/// Undoes every difference between the record and the roots; with it the last walk, if one came through. An entry that
/// cannot be put back does not keep the others from it.
pub(super) fn settle(
    roots: &[Root],
    patterns: &Patterns,
    record: &Record,
    earlier: Option<&Sight>,
    store: &Path,
) -> (Settled, Option<Sight>) {
    let mut work = Settling {
        roots,
        record,
        holders: record.holders.iter().map(|holder| holder.identity).collect(),
        quarantine: Quarantine::new(store),
        said: Said::default(),
        changes: 0,
        settled: Settled::default(),
    };
    let unlocked: Vec<&Root> = roots.iter().filter(|root| root.open_up()).collect();
    let sight = work.come_to_rest(patterns, earlier);
    work.quarantine.write_manifest();
    for root in unlocked {
        work.settled.errors.extend(root.shut().err());
    }
    (work.settled, sight)
}

struct Settling<'a> {
    roots: &'a [Root],
    record: &'a Record,
    holders: HashSet<Identity>,
    quarantine: Quarantine,
    said: Said,
    /// Changes made to the tree.
    changes: usize,
    settled: Settled,
}

impl Settling<'_> {
    fn root(&self, number: u16) -> &Root {
        &self.roots[usize::from(number)]
    }

    fn report(&mut self, root: u16, path: &[u8], what: What, quarantined: Option<PathBuf>, setting: Option<Vec<u8>>) {
        let path = shown(self.root(root), path);
        if self.said.is_news(&path, what) || quarantined.is_some() {
            self.settled.violations.push(Violation {
                path,
                what,
                quarantined,
                setting,
            });
        }
    }

    /// Rounds until one finds nothing to change; the last walk.
    fn come_to_rest(&mut self, patterns: &Patterns, earlier: Option<&Sight>) -> Option<Sight> {
        let mut last: Option<Sight> = None;
        for _ in 0..ROUNDS {
            // What failed may come right once other things are out of the way: the last round's errors count.
            self.settled.errors.clear();
            let before = self.changes;
            let sight = match self.bring_back(patterns, last.as_ref().or(earlier)) {
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
                self.inspect(sight);
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
            let sight = walk_through(self.roots, patterns, earlier, Company::Nobody, &mut errors)?;
            let places = sight.locate(&self.holders);
            let mut touched = Touched::default();
            for holder in &self.record.holders {
                let Some((root, path)) = places.get(&holder.identity) else {
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
                let aside = format!(".stockade-restore-{}", super::stamp());
                rename((now, path), (now, aside.as_bytes()), RenameFlags::RENAME_NOREPLACE).map_err(fail)?;
            }
            Err(error) => return Err(fail(error)),
        }
        self.report(holder.root, &holder.path, What::Removed, quarantined, None);
        Ok(())
    }

    /// Puts back what was there and is not, or not as it was.
    fn compare(&mut self) {
        // What is below a reported entry went with it; but what is kept aside is told of.
        let mut reported: BTreeSet<(u16, &[u8])> = BTreeSet::new();
        for kept in &self.record.entries {
            let (what, quarantined) = match self.undo(kept) {
                Ok(None) => continue,
                Ok(Some((what, quarantined, failed))) => {
                    match failed {
                        None => self.changes += 1,
                        Some(error) => {
                            // What is kept of it shows that there is one thing less in the way.
                            self.changes += usize::from(quarantined.is_some());
                            self.settled.errors.push(error);
                        }
                    }
                    (what, quarantined)
                }
                Err(error) => {
                    self.settled.errors.push(error);
                    continue;
                }
            };
            let mut above = kept.path.as_slice();
            let mut news = true;
            while !above.is_empty() {
                above = split(above).0;
                news &= !reported.contains(&(kept.root, above));
            }
            reported.insert((kept.root, &kept.path));
            if news || quarantined.is_some() {
                self.report(kept.root, &kept.path, what, quarantined, None);
            }
        }
    }

    /// Puts one entry back if it differs: what had become of it, where that is kept, and the error if nothing
    /// could be put in its place.
    fn undo(&mut self, kept: &Kept) -> Result<Option<Undone>, ProtectError> {
        let roots = self.roots;
        let root = &roots[usize::from(kept.root)];
        let limit = match &kept.state {
            // A config may have been added to.
            State::File { content, .. } if kept.role == Role::GitConfig => (content.len() as u64).max(1 << 20),
            State::File { content, .. } => content.len() as u64,
            State::Symlink { .. } | State::Directory { .. } | State::Special { .. } => 0,
        };
        let seen = glance(&root.fd, &kept.path, limit);
        match (&kept.state, &seen) {
            (old, Seen::Present(new)) if old == new => return Ok(self.part(kept, new)),
            (State::Directory { mode }, Seen::Present(State::Directory { .. })) => {
                return Ok(Some((What::Changed, None, set_mode(root, &kept.path, *mode).err())));
            }
            (
                State::File { mode, content: old, .. },
                Seen::Present(
                    state @ State::File {
                        mode: now,
                        content: new,
                        names,
                        ..
                    },
                ),
            ) => {
                if old == new && !names.have_grown_from(kept.state.names()) {
                    let change = self.settled.changes.note(root, kept, &seen);
                    self.settled.changes.keep(change);
                    let failed = set_mode(root, &kept.path, *mode).err();
                    return Ok(Some((What::Changed, None, failed)));
                }
                if kept.role == Role::GitConfig
                    && mode == now
                    && new.len() <= old.len().max(MAX_NEW)
                    && gitconfig::is_harmless_change(old, new)
                {
                    return Ok(self.part(kept, state));
                }
            }
            (old, Seen::Absent) => {
                // Only where it is certain that nothing is there: anything else is put right.
                if matches!(at::stat(&root.fd, &kept.anchor), Err(Errno::ENOENT)) && !is_blocked(root, &kept.path) {
                    return Ok(None);
                }
                if !can_be_made(old) {
                    self.report(kept.root, &kept.path, What::Gone, None, None);
                    return Ok(None);
                }
            }
            (_, Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_)) => {}
        }
        let change = self.settled.changes.note(root, kept, &seen);
        let (what, mut quarantined) = match seen {
            Seen::Absent => (What::Removed, None),
            Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_) => {
                (What::Changed, self.quarantine.take(root, &kept.path, What::Changed)?)
            }
        };
        if !can_be_made(&kept.state) {
            return Ok(Some((what, quarantined, None)));
        }
        let mut made = put(root, &kept.path, &kept.state, &mut self.quarantine);
        // Room for what was there counts for more than a copy of what took its place.
        if made.as_ref().is_err_and(ProtectError::is_for_want_of_room)
            && let Some(place) = &quarantined
            && std::fs::remove_file(place).is_ok()
        {
            quarantined = None;
            made = put(root, &kept.path, &kept.state, &mut self.quarantine);
        }
        Ok(Some(match made {
            Ok(in_the_way) => {
                // Something else stood in its way: that was more than one change.
                self.settled.changes.keep(change.filter(|_| in_the_way.is_none()));
                (what, quarantined.or(in_the_way), None)
            }
            Err(error) => (what, quarantined, Some(error)),
        }))
    }

    /// Makes a file that has been given another name one of its own, with what it holds.
    fn part(&mut self, kept: &Kept, now: &State) -> Option<Undone> {
        if !now.names().have_grown_from(kept.state.names()) {
            return None;
        }
        let root = &self.roots[usize::from(kept.root)];
        let made = put(root, &kept.path, now, &mut self.quarantine);
        Some((What::Linked, None, made.err()))
    }

    /// Quarantines what was not there and may not stay.
    fn inspect(&mut self, sight: &Sight) {
        let known: HashSet<(u16, &[u8])> = self
            .record
            .entries
            .iter()
            .map(|k| (k.root, k.path.as_slice()))
            .collect();
        let new: Vec<Found> = sight
            .found()
            .filter(|f| !known.contains(&(f.root, f.path.as_slice())))
            .collect();
        let around = Surroundings {
            roots: self.roots,
            git_directories: if new.is_empty() {
                HashSet::new()
            } else {
                sight.git_directories()
            },
        };
        let new_git: HashSet<(u16, &[u8])> = new
            .iter()
            .filter(|found| found.role == Role::GitDirectory)
            .map(|found| (found.root, found.path.as_slice()))
            .collect();
        let kept: u64 = self.record.entries.iter().map(|kept| kept.state.length()).sum();
        let mut spare = (MAX_TOTAL / 2).saturating_sub(kept);
        // Each with the setting that is the reason, where one is.
        let mut intruders: BTreeMap<(u16, &[u8]), Option<Vec<u8>>> = BTreeMap::new();
        for found in &new {
            let root = self.root(found.root);
            let seen = glance(&root.fd, &found.path, 1 << 20);
            // What stays is in the next snapshot, which must not be made impossible by what each command adds.
            let length = seen.length();
            // Through another name a later command, which reaches only that, could write to it.
            let shared = matches!(&seen, Seen::Present(state) if state.names().have_grown_from(Names::default()));
            if !shared && may_stay(found, &seen, &around) && length <= spare {
                spare -= length;
                continue;
            }
            // A new `.git` goes as one, with whatever in it does not pass.
            let whole = outermost(&new_git, found.root, &found.path);
            let setting = intruders.entry((found.root, whole.unwrap_or(&found.path))).or_default();
            *setting = setting.take().or_else(|| offence(found, &seen));
        }
        // Sorted by bytes, an entry comes before what it holds.
        let mut taken: HashSet<(u16, &[u8])> = HashSet::new();
        for ((root, path), setting) in intruders {
            if outermost(&taken, root, path).is_some() {
                continue;
            }
            let holder = &self.roots[usize::from(root)];
            let change = self.settled.changes.note_new(holder, root, path);
            match self.quarantine.take(holder, path, What::Created) {
                Ok(place) => {
                    self.changes += 1;
                    self.settled.changes.keep(change);
                    self.report(root, path, What::Created, place, setting);
                    taken.insert((root, path));
                }
                Err(error) => self.settled.errors.push(error),
            }
        }
    }
}
