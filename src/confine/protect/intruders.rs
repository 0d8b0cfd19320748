//! What was not there and may not stay: taken away, and of a git config only that part of it.

use std::collections::{BTreeMap, HashSet};

use super::at::{outermost, split};
use super::inspect::{Judged, Surroundings, judge};
use super::place::Role;
use super::restore::replace;
use super::sight::{Found, Sight};
use super::state::{Names, Seen, State, glance};
use super::work::Work;
use super::{MAX_TOTAL, Named, ProtectError, What};

/// What becomes of a new entry.
enum Fate {
    /// It goes to quarantine.
    Taken(Named),
    /// This is left of it.
    Tamed(State, Named),
}

impl Work<'_> {
    /// Quarantines what was not there and may not stay.
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
        let mut intruders: BTreeMap<(u16, &[u8]), Fate> = BTreeMap::new();
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
            let fate = match judge(found, &seen, &around) {
                Judged::Goes(_) if self.came_along(found, &seen) && !shared => {
                    spare = spare.saturating_sub(length);
                    continue;
                }
                _ if shared || length > spare => Fate::Taken(Named::default()),
                Judged::Stays => {
                    spare -= length;
                    continue;
                }
                // It was not longer before.
                Judged::Tamed(state, named) => {
                    spare -= length;
                    Fate::Tamed(state, named)
                }
                Judged::Goes(named) => {
                    let all = new.iter().map(|one| (one.root, one.path.as_slice(), one.role));
                    if self
                        .tracked
                        .may_stay_new(found.root, &found.path, found.role, &seen, all)
                    {
                        spare -= length;
                        continue;
                    }
                    Fate::Taken(named)
                }
            };
            intruders.insert((found.root, &found.path), fate);
        }
        // Sorted by bytes, an entry comes before what it holds.
        let mut taken: HashSet<(u16, &[u8])> = HashSet::new();
        for ((root, path), fate) in intruders {
            if outermost(&taken, root, path).is_some() {
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
        };
        // Where nothing could be written in its place, it goes all the same.
        let place = self.quarantine.take(holder, path, What::Created)?;
        self.changes += 1;
        self.settled.changes.keep(change);
        self.report(root, path, What::Created, place, named);
        Ok(true)
    }
}
