//! What was not there and may not stay: taken away, and of a git config only that part of it. What stays is restricted to
//! those who may use what is new there.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::super::entry::access::{self, Access};
use super::super::entry::nofollow::{self, outermost, split};
use super::super::entry::restore::replace;
use super::super::entry::state::{Found, LinkCount, MAX_TOTAL, State, observe};
use super::super::error::ProtectError;
use super::super::naming::class::Role;
use super::super::roots::{Root, absolute};
use super::super::tree::inventory::{FoundEntry, Inventory};
use super::super::tree::stamp::Stamp;
use super::super::violation::{Effect, Keys};
use super::inspect::{KnownGits, NewEntryVerdict, judge_new_entry};
use super::settlement::Settlement;

/// What to do with a new entry.
enum Action {
    /// Move it to quarantine.
    Quarantine(Keys),
    /// Write this in its place.
    Filtered(State, Keys),
    /// Keep it; with this access where it was moved there unchanged.
    Stays(Option<Access>),
}

impl Settlement<'_> {
    /// Quarantines what was not there and may not stay, and restricts who may use the rest.
    pub(crate) fn judge_new_entries(&mut self, inventory: &Inventory, earlier: Option<&Inventory>) {
        let known: HashSet<(u16, &[u8])> = self
            .record
            .entries
            .iter()
            .map(|k| (k.root, k.path.as_slice()))
            .collect();
        let new: Vec<FoundEntry> = inventory
            .found()
            .filter(|f| !known.contains(&(f.root, f.path.as_slice())))
            .collect();
        let known_gits = KnownGits {
            roots: self.roots,
            git_directories: if new.is_empty() {
                HashSet::new()
            } else {
                inventory.git_directories()
            },
        };
        self.tracked.note_new_links(&new, &known_gits);
        let in_a_git_directory = new.iter().filter(|found| found.role == Role::Unlisted);
        let above: HashSet<(u16, &[u8])> = in_a_git_directory
            .map(|found| (found.root, split(&found.path).0))
            .collect();
        let was_plain = earlier
            .map(|earlier| earlier.plain_directories(&above))
            .unwrap_or_default();
        let kept: u64 = self.record.entries.iter().map(|kept| kept.state.length()).sum();
        let mut space_left = (MAX_TOTAL / 2).saturating_sub(kept);
        let mut actions: BTreeMap<(u16, &[u8]), Action> = BTreeMap::new();
        for found in &new {
            // Where it could not be moved out of the root, it bears a name that no tool reads.
            if self
                .quarantine
                .is_set_aside(&absolute(self.root(found.root), &found.path))
            {
                continue;
            }
            // What lay in a directory before it became a git directory is ordinary work.
            if found.role == Role::Unlisted && was_plain.contains(&(found.root, split(&found.path).0.to_vec())) {
                continue;
            }
            let observed = observe(&self.root(found.root).fd, &found.path, 1 << 20);
            // What stays is in the next snapshot, which must not be made impossible by what each command adds.
            let length = observed.length();
            // A later command could write to it through its other name.
            let shared = matches!(&observed, Found::Present(state) if state.links().exceeds(LinkCount::default()));
            let moved = self.work_trees.entry_before_move(found, &observed).filter(|_| !shared);
            let moved = moved.map(|kept| kept.access.clone());
            let action = match (judge_new_entry(found, &observed, &known_gits), moved) {
                (NewEntryVerdict::Removed(_), Some(access)) => {
                    space_left = space_left.saturating_sub(length);
                    Action::Stays(access)
                }
                _ if shared || length > space_left => Action::Quarantine(Keys::default()),
                (NewEntryVerdict::Stays, _) => {
                    space_left -= length;
                    Action::Stays(None)
                }
                // It cannot have grown.
                (NewEntryVerdict::Filtered(state, named), _) => {
                    space_left -= length;
                    Action::Filtered(state, named)
                }
                (NewEntryVerdict::Removed(named), None) => {
                    let all = new.iter().map(|one| (one.root, one.path.as_slice(), one.role));
                    if self
                        .tracked
                        .may_stay_new(found.root, &found.path, found.role, &observed, all)
                    {
                        space_left -= length;
                        Action::Stays(None)
                    } else {
                        Action::Quarantine(named)
                    }
                }
            };
            actions.insert((found.root, &found.path), action);
        }
        self.apply_actions(actions);
    }

    fn apply_actions(&mut self, actions: BTreeMap<(u16, &[u8]), Action>) {
        // Sorted by bytes, an entry comes before what it holds.
        let mut quarantined: HashSet<(u16, &[u8])> = HashSet::new();
        let mut restricted: HashSet<(u16, &[u8])> = HashSet::new();
        for ((root, path), action) in actions {
            if outermost(&quarantined, root, path).is_some() {
                continue;
            }
            if let Action::Stays(access) = action {
                match self.restrict(root, path, access.as_ref()) {
                    Ok(false) => {}
                    Ok(true) => {
                        self.changes += 1;
                        // The report covers what is in it.
                        if outermost(&restricted, root, path).is_none() {
                            self.report(root, path, Effect::Access, None);
                        }
                        restricted.insert((root, path));
                    }
                    Err(error) => self.settled.errors.push(error),
                }
                continue;
            }
            match self.remove_or_filter(root, path, action) {
                Ok(true) => {
                    quarantined.insert((root, path));
                }
                Ok(false) => {}
                Err(error) => self.settled.errors.push(error),
            }
        }
    }

    /// Has only those use a new entry that stays who may use what is new there, or what moved there; whether others could.
    fn restrict(&self, root: u16, path: &[u8], access: Option<&Access>) -> Result<bool, ProtectError> {
        match access {
            Some(access) => access.restore(self.root(root), path),
            None => access::restrict(self.root(root), path),
        }
    }

    /// Removes a new entry, or the part that may not stay; returns whether it is removed.
    fn remove_or_filter(&mut self, root: u16, path: &[u8], action: Action) -> Result<bool, ProtectError> {
        let root_dir = self.root(root);
        let change = self.settled.changes.record_new(root_dir, root, path);
        let named = match action {
            Action::Filtered(state, named) => {
                if let Ok(quarantined) = replace(root_dir, path, &state, Effect::Created, &mut self.quarantine) {
                    self.changes += 1;
                    self.settled
                        .changes
                        .keep(change.map(|change| change.with_result(state)));
                    self.report_keys(root, path, Effect::Created, quarantined, named);
                    return Ok(false);
                }
                named
            }
            Action::Quarantine(named) => named,
            Action::Stays(_) => return Ok(false),
        };
        let kind = self.kind_of_new(root_dir, path);
        // Where nothing could be written in its place, it goes all the same.
        let quarantined = self.quarantine.take(root_dir, path, kind)?;
        self.changes += 1;
        self.settled.changes.keep(change);
        self.report_keys(root, path, kind, quarantined, named);
        Ok(true)
    }

    /// What the command did to a new entry: of a hook in a new work tree perhaps nothing.
    fn kind_of_new(&self, root: &Root, path: &[u8]) -> Effect {
        let changed = || {
            let found = nofollow::stat(&root.fd, path).ok()?;
            let (seconds, nanoseconds) = Stamp::of(&found).changed;
            Some(Duration::new(seconds.try_into().ok()?, nanoseconds.try_into().ok()?))
        };
        match (self.since, changed()) {
            (Some(since), Some(changed)) if self.are_hooks_new && changed < since => Effect::Adopted,
            _ => Effect::Created,
        }
    }
}
