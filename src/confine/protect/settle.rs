//! Comparing with the snapshot and undoing the difference, until nothing differs.
//!
//! A round goes: directories that were moved away come back first, because what they hold cannot be had
//! from the journal (a git directory's objects); then what was there is compared; then what was not there
//! is inspected. Each round ends in another walk, so what a restored or quarantined thing uncovered
//! is seen; a tree that is still not at rest after [`ROUNDS`] is an error, and its journal stays.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::RenameFlags;

use super::at::{self, Identity, is_within, split};
use super::inspect::{Surroundings, may_stay};
use super::journal::{Kept, Record, abandoned};
use super::names::is_dot_git;
use super::others::Gate;
use super::place::{Patterns, Role};
use super::quarantine::Quarantine;
use super::restore::{make_way, put, rename, set_mode};
use super::roots::{Root, open_roots};
use super::sight::{Found, Holder, Sight, born};
use super::state::{Seen, State, glance};
use super::walk::walk;
use super::{ProtectError, Violation, What, gitconfig, shown};

/// Rounds of undoing before the tree counts as restless.
const ROUNDS: usize = 8;
/// Passes of bringing moved directories back, each of which brings at least one.
const MOVES: usize = 256;

/// Restores what commands left behind whose process died before it could; for every start.
///
/// Leaves alone the journals of commands that are still running. A root that is gone, or that is
/// another directory now, has nothing to be restored in.
pub fn recover(store: &Path) -> Result<Vec<Violation>, ProtectError> {
    let _gate = Gate::enter(store)?;
    let mut violations = Vec::new();
    for (journal, mut record) in abandoned(store)? {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let extra: Vec<PathBuf> = record.extra.iter().map(|bytes| path(bytes)).collect();
        let mut patterns = Patterns::new();
        let mut roots = Vec::new();
        let mut numbers = BTreeMap::new();
        for ((bytes, identity), number) in record.roots.iter().zip(0_u16..) {
            let opened = match open_roots(&[path(bytes)], &extra, &mut patterns) {
                Ok(opened) => opened,
                Err(ProtectError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for root in opened {
                if root.identity == *identity
                    && let Ok(now) = u16::try_from(roots.len())
                {
                    numbers.insert(number, now);
                    roots.push(root);
                }
            }
        }
        record.entries.retain_mut(|kept| renumber(&mut kept.root, &numbers));
        record.holders.retain_mut(|holder| renumber(&mut holder.root, &numbers));
        violations.extend(settle(&roots, &patterns, &record, None, store)?.0);
        journal.remove()?;
    }
    Ok(violations)
}

fn renumber(root: &mut u16, numbers: &BTreeMap<u16, u16>) -> bool {
    numbers.get(root).map(|&number| *root = number).is_some()
}

/// Undoes every difference between the record and the roots; the violations and the last walk.
pub(super) fn settle(
    roots: &[Root],
    patterns: &Patterns,
    record: &Record,
    earlier: Option<&Sight>,
    store: &Path,
) -> Result<(Vec<Violation>, Sight), ProtectError> {
    let mut work = Settling {
        roots,
        record,
        quarantine: Quarantine::new(store),
        violations: Vec::new(),
    };
    for _ in 0..ROUNDS {
        let before = work.violations.len();
        let sight = work.bring_back(patterns, earlier)?;
        work.compare()?;
        // What was put back is not what the walk saw; the next round judges the new.
        if work.violations.len() == before {
            work.inspect(&sight)?;
        }
        if work.violations.len() == before {
            return Ok((work.violations, sight));
        }
    }
    let path = work.violations.last().map(|violation| violation.path.clone());
    Err(ProtectError::Restless(path.unwrap_or_default()))
}

struct Settling<'a> {
    roots: &'a [Root],
    record: &'a Record,
    quarantine: Quarantine,
    violations: Vec<Violation>,
}

impl Settling<'_> {
    fn root(&self, number: u16) -> &Root {
        &self.roots[usize::from(number)]
    }

    fn report(&mut self, root: u16, path: &[u8], what: What, quarantined: Option<PathBuf>) {
        let path = shown(self.root(root), path);
        self.violations.push(Violation {
            path,
            what,
            quarantined,
        });
    }

    /// Moves holders that are elsewhere now back to where they were; the walk that found none moved.
    fn bring_back(&mut self, patterns: &Patterns, earlier: Option<&Sight>) -> Result<Sight, ProtectError> {
        let wanted: HashSet<Identity> = self.record.holders.iter().map(|holder| holder.identity).collect();
        let mut last = PathBuf::new();
        for _ in 0..MOVES {
            let sight = walk(self.roots, patterns, earlier)?;
            let places = sight.locate(&wanted);
            let mut touched: Vec<(u16, Vec<u8>)> = Vec::new();
            for holder in &self.record.holders {
                let Some((root, path)) = places.get(&holder.identity) else {
                    continue;
                };
                if (*root, path) == (holder.root, &holder.path) {
                    continue;
                }
                let clear = |root: u16, path: &[u8]| {
                    touched
                        .iter()
                        .all(|(r, p)| *r != root || !(is_within(path, p) || is_within(p, path)))
                };
                // What this pass has moved is not where the walk saw it: left to the next pass.
                if !clear(*root, path) || !clear(holder.root, &holder.path) {
                    continue;
                }
                if holder.born.is_none() || born(self.root(*root), path) != holder.born {
                    continue;
                }
                last = shown(self.root(holder.root), &holder.path);
                self.move_back(holder, *root, path)?;
                touched.push((*root, path.clone()));
                touched.push((holder.root, holder.path.clone()));
            }
            if touched.is_empty() {
                return Ok(sight);
            }
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
            let occupant = Identity::of(&occupant);
            let is_holder = self.record.holders.iter().any(|other| other.identity == occupant);
            // What took the place of a git directory is an intruder. What took that of an ordinary directory
            // may be a person's work: it goes where the directory was, and is inspected there.
            if is_holder || !is_dot_git(name) {
                how = RenameFlags::RENAME_EXCHANGE;
            } else {
                quarantined = Some(self.quarantine.take(home, &holder.path, What::Changed)?);
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
        self.report(holder.root, &holder.path, What::Removed, quarantined);
        Ok(())
    }

    /// Puts back what was there and is not, or not as it was.
    fn compare(&mut self) -> Result<(), ProtectError> {
        // What is below a reported entry went with it; but what is kept aside is told of.
        let mut reported: BTreeSet<(u16, &[u8])> = BTreeSet::new();
        for kept in &self.record.entries {
            let Some((what, quarantined)) = self.undo(kept)? else {
                continue;
            };
            let mut above = kept.path.as_slice();
            let mut news = true;
            while !above.is_empty() {
                above = split(above).0;
                news &= !reported.contains(&(kept.root, above));
            }
            reported.insert((kept.root, &kept.path));
            if news || quarantined.is_some() {
                self.report(kept.root, &kept.path, what, quarantined);
            }
        }
        Ok(())
    }

    fn undo(&mut self, kept: &Kept) -> Result<Option<(What, Option<PathBuf>)>, ProtectError> {
        let root = &self.roots[usize::from(kept.root)];
        let limit = match &kept.state {
            // A config may have been added to.
            State::File { content, .. } if kept.role == Role::GitConfig => (content.len() as u64).max(1 << 20),
            State::File { content, .. } => content.len() as u64,
            State::Symlink { .. } | State::Directory { .. } | State::Special { .. } => 0,
        };
        let seen = glance(&root.fd, &kept.path, limit);
        match (&kept.state, &seen) {
            (old, Seen::Present(new)) if old == new => return Ok(None),
            (State::Directory { mode }, Seen::Present(State::Directory { .. })) => {
                set_mode(root, &kept.path, *mode)?;
                return Ok(Some((What::Changed, None)));
            }
            (
                State::File { mode, content: old, .. },
                Seen::Present(State::File {
                    mode: now,
                    content: new,
                    ..
                }),
            ) => {
                if old == new {
                    set_mode(root, &kept.path, *mode)?;
                    return Ok(Some((What::Changed, None)));
                }
                if kept.role == Role::GitConfig && mode == now && gitconfig::is_harmless_change(old, new) {
                    return Ok(None);
                }
            }
            (_, Seen::Absent) => {
                // Only where it is certain that nothing is there: anything else is put right.
                if matches!(at::stat(&root.fd, &kept.anchor), Err(Errno::ENOENT)) && !self.is_blocked(kept) {
                    return Ok(None);
                }
            }
            (_, Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_)) => {}
        }
        let (what, quarantined) = match seen {
            Seen::Absent => (What::Removed, None),
            Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_) => (
                What::Changed,
                Some(self.quarantine.take(root, &kept.path, What::Changed)?),
            ),
        };
        let in_the_way = put(root, &kept.path, &kept.state, &mut self.quarantine)?;
        Ok(Some((what, quarantined.or(in_the_way))))
    }

    /// Whether something that is not a directory stands where the way to an entry was.
    fn is_blocked(&self, kept: &Kept) -> bool {
        let root = self.root(kept.root);
        let mut above = split(&kept.path).0;
        while !above.is_empty() {
            match at::stat(&root.fd, above) {
                Ok(found) => return at::kind(&found) != libc::S_IFDIR,
                Err(Errno::ENOENT) => above = split(above).0,
                Err(_) => return true,
            }
        }
        false
    }

    /// Quarantines what was not there and may not stay.
    fn inspect(&mut self, sight: &Sight) -> Result<(), ProtectError> {
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
        let new_git: Vec<&Found> = new.iter().filter(|found| found.role == Role::GitDirectory).collect();
        let mut intruders: BTreeSet<(u16, &[u8])> = BTreeSet::new();
        for found in &new {
            let root = self.root(found.root);
            let seen = glance(&root.fd, &found.path, 1 << 20);
            if may_stay(found, &seen, &around) {
                continue;
            }
            // A new `.git` goes as one, with whatever in it does not pass.
            let whole = new_git
                .iter()
                .find(|git| git.root == found.root && is_within(&found.path, &git.path));
            intruders.insert((
                found.root,
                whole.map_or(found.path.as_slice(), |git| git.path.as_slice()),
            ));
        }
        // Sorted by bytes, an entry comes before what it holds.
        let mut taken: Vec<(u16, &[u8])> = Vec::new();
        for (root, path) in intruders {
            if taken.iter().any(|(r, above)| *r == root && is_within(path, above)) {
                continue;
            }
            let place = self
                .quarantine
                .take(&self.roots[usize::from(root)], path, What::Created)?;
            self.report(root, path, What::Created, Some(place));
            taken.push((root, path));
        }
        Ok(())
    }
}
