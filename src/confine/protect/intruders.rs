//! What was not there and may not stay: taken away, and of a git config only that part of it. What stays is restricted to
//! those who may use what is new there.

use std::collections::{BTreeMap, HashSet};

use super::access::{self, Access};
use super::at::{outermost, split};
use super::error::ProtectError;
use super::inspect::{Judged, Surroundings, judge};
use super::place::Role;
use super::restore::replace;
use super::sight::{Found, Sight};
use super::state::{MAX_TOTAL, Names, Seen, State, glance};
use super::violation::{Named, What};
use super::work::Work;

/// What becomes of a new entry.
enum Fate {
    /// It goes to quarantine.
    Taken(Named),
    /// This is left of it.
    Tamed(State, Named),
    /// It stays; with this access where it came there as it was.
    Stays(Option<Access>),
}

impl Work<'_> {
    /// Quarantines what was not there and may not stay, and restricts who may use the rest.
    pub(super) fn inspect(&mut self, sight: &Sight, earlier: Option<&Sight>) {
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
        self.tracked.meet(&new, &around);
        let in_a_git_directory = new.iter().filter(|found| found.role == Role::Unlisted);
        let above: HashSet<(u16, &[u8])> = in_a_git_directory
            .map(|found| (found.root, split(&found.path).0))
            .collect();
        let was_plain = earlier.map(|earlier| earlier.plain(&above)).unwrap_or_default();
        let kept: u64 = self.record.entries.iter().map(|kept| kept.state.length()).sum();
        let mut spare = (MAX_TOTAL / 2).saturating_sub(kept);
        let mut fates: BTreeMap<(u16, &[u8]), Fate> = BTreeMap::new();
        for found in &new {
            // What lay in a directory that has become a git directory is somebody's work.
            if found.role == Role::Unlisted && was_plain.contains(&(found.root, split(&found.path).0.to_vec())) {
                continue;
            }
            let seen = glance(&self.root(found.root).fd, &found.path, 1 << 20);
            // What stays is in the next snapshot, which must not be made impossible by what each command adds.
            let length = seen.length();
            // Through another name a later command, which reaches only that, could write to it.
            let shared = matches!(&seen, Seen::Present(state) if state.names().have_grown_from(Names::default()));
            let moved = self.came_along(found, &seen).filter(|_| !shared);
            let moved = moved.map(|kept| kept.access.clone());
            let fate = match (judge(found, &seen, &around), moved) {
                (Judged::Goes(_), Some(access)) => {
                    spare = spare.saturating_sub(length);
                    Fate::Stays(access)
                }
                _ if shared || length > spare => Fate::Taken(Named::default()),
                (Judged::Stays, _) => {
                    spare -= length;
                    Fate::Stays(None)
                }
                // It was not longer before.
                (Judged::Tamed(state, named), _) => {
                    spare -= length;
                    Fate::Tamed(state, named)
                }
                (Judged::Goes(named), None) => {
                    let all = new.iter().map(|one| (one.root, one.path.as_slice(), one.role));
                    if self
                        .tracked
                        .may_stay_new(found.root, &found.path, found.role, &seen, all)
                    {
                        spare -= length;
                        Fate::Stays(None)
                    } else {
                        Fate::Taken(named)
                    }
                }
            };
            fates.insert((found.root, &found.path), fate);
        }
        self.carry_out(fates);
    }

    fn carry_out(&mut self, fates: BTreeMap<(u16, &[u8]), Fate>) {
        // Sorted by bytes, an entry comes before what it holds.
        let mut taken: HashSet<(u16, &[u8])> = HashSet::new();
        let mut narrowed: HashSet<(u16, &[u8])> = HashSet::new();
        for ((root, path), fate) in fates {
            if outermost(&taken, root, path).is_some() {
                continue;
            }
            if let Fate::Stays(access) = fate {
                match self.narrow(root, path, access.as_ref()) {
                    Ok(false) => {}
                    Ok(true) => {
                        self.changes += 1;
                        // It says the same of what is in it.
                        if outermost(&narrowed, root, path).is_none() {
                            self.report(root, path, What::Access, None, Named::default());
                        }
                        narrowed.insert((root, path));
                    }
                    Err(error) => self.settled.errors.push(error),
                }
                continue;
            }
            match self.undo_new(root, path, fate) {
                Ok(true) => {
                    taken.insert((root, path));
                }
                Ok(false) => {}
                Err(error) => self.settled.errors.push(error),
            }
        }
    }

    /// Has only those use a new entry that stays who may use what is new there, or what moved there; whether others could.
    fn narrow(&self, root: u16, path: &[u8], access: Option<&Access>) -> Result<bool, ProtectError> {
        match access {
            Some(access) => access.restore(self.root(root), path),
            None => access::narrow(self.root(root), path),
        }
    }

    /// Undoes what of a new entry may not stay; whether it is gone.
    fn undo_new(&mut self, root: u16, path: &[u8], fate: Fate) -> Result<bool, ProtectError> {
        let holder = self.root(root);
        let change = self.settled.changes.note_new(holder, root, path);
        let named = match fate {
            Fate::Tamed(state, named) => {
                if let Ok(place) = replace(holder, path, &state, What::Created, &mut self.quarantine) {
                    self.changes += 1;
                    self.settled.changes.keep(change.map(|change| change.leaving(state)));
                    self.report(root, path, What::Created, place, named);
                    return Ok(false);
                }
                named
            }
            Fate::Taken(named) => named,
            Fate::Stays(_) => return Ok(false),
        };
        // Where nothing could be written in its place, it goes all the same.
        let place = self.quarantine.take(holder, path, What::Created)?;
        self.changes += 1;
        self.settled.changes.keep(change);
        self.report(root, path, What::Created, place, named);
        Ok(true)
    }
}
