//! Comparison of saved entries with the tree, and their restoration.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use nix::errno::Errno;

use super::super::entry::access;
use super::super::entry::nofollow::{self, split};
use super::super::entry::restore::{can_be_created, is_blocked, recreate, replace, set_mode};
use super::super::entry::state::{Found, State, observe};
use super::super::error::ProtectError;
use super::super::gitconfig::judge::{self, Verdict};
use super::super::gitconfig::scope::Scope;
use super::super::naming::class::Role;
use super::super::naming::vcs;
use super::super::record::SavedEntry;
use super::super::roots::{Root, absolute};
use super::super::tracked;
use super::super::violation::{Effect, Keys};
use super::inspect::MAX_NEW;
use super::settlement::Settlement;

/// What was undone of one entry.
struct Undone {
    /// What the command did to it.
    kind: Effect,
    /// Where the intruder is kept.
    quarantined: Option<PathBuf>,
    /// Why it could not be put back.
    failed: Option<ProtectError>,
    /// The settings that were undone, where they are the reason.
    named: Keys,
}

impl Undone {
    fn of(kind: Effect, failed: Option<ProtectError>) -> Self {
        Self {
            kind,
            quarantined: None,
            failed,
            named: Keys::default(),
        }
    }
}

impl Settlement<'_> {
    /// Restores every saved entry that differs or is absent.
    pub(crate) fn compare(&mut self) {
        // An entry below a reported one is reported only where something went to quarantine.
        let mut reported: BTreeSet<(u16, &[u8])> = BTreeSet::new();
        let removed = self.work_trees.removed(&self.tracked);
        for kept in &self.record.entries {
            let undone = self.undo(kept, &removed);
            let access_restored = match &kept.access {
                Some(access) => access.restore(self.root(kept.root), &kept.path),
                None => Ok(false),
            };
            let undone = match (undone, access_restored) {
                (Ok(None), Ok(false)) => continue,
                (Ok(None), Ok(true)) => Undone::of(Effect::Access, None),
                (Ok(None), Err(error)) => Undone::of(Effect::Access, Some(error)),
                (Ok(Some(undone)), Ok(_)) => undone,
                (Ok(Some(undone)), Err(error)) => {
                    self.settled.errors.push(error);
                    undone
                }
                (Err(error), _) => {
                    self.settled.errors.push(error);
                    continue;
                }
            };
            match undone.failed {
                None => self.changes += 1,
                Some(error) => {
                    // What went to quarantine no longer stands in the way.
                    self.changes += usize::from(undone.quarantined.is_some());
                    let path = absolute(self.root(kept.root), &kept.path);
                    self.failed.insert(path, error.to_string());
                    self.settled.errors.push(error);
                }
            }
            let mut above = kept.path.as_slice();
            let mut is_new = true;
            while !above.is_empty() {
                above = split(above).0;
                is_new &= !reported.contains(&(kept.root, above));
            }
            reported.insert((kept.root, &kept.path));
            if is_new || undone.quarantined.is_some() {
                self.report_keys(kept.root, &kept.path, undone.kind, undone.quarantined, undone.named);
            }
        }
    }

    /// Puts one entry back if it differs: what had become of it, where that is kept, and the error if nothing
    /// could be put in its place.
    fn undo(&mut self, kept: &SavedEntry, removed: &HashSet<(u16, Vec<u8>)>) -> Result<Option<Undone>, ProtectError> {
        let root = self.root(kept.root);
        let limit = match &kept.state {
            // A config may have been added to, and a trusted commit may have a longer one of the others.
            State::File { content, .. } if matches!(kept.role, Role::GitConfig | Role::JudgedText) => {
                (content.len() as u64).max(1 << 20)
            }
            State::File { content, .. } if kept.role == Role::Name => (content.len() as u64).max(tracked::MAX_TRACKED),
            State::File { content, .. } if matches!(kept.role, Role::GitLink | Role::GitBacklink) => {
                (content.len() as u64).max(1 << 13)
            }
            State::File { content, .. } => content.len() as u64,
            State::Directory { .. } if kept.role == Role::GitDirectory => 1 << 13,
            State::Symlink { .. } | State::Directory { .. } | State::Special { .. } => 0,
            State::Ignored => return Ok(None),
        };
        let observed = observe(&root.fd, &kept.path, limit);
        let mut filtered = None;
        match (&kept.state, &observed) {
            (old, Found::Present(new)) if old == new => return Ok(self.break_hard_link(kept, new)),
            _ if self.work_trees.moved_with_work_tree(kept, &observed) => {
                let restricted = access::restrict(root, &kept.path)?;
                return Ok(restricted.then(|| Undone::of(Effect::Access, None)));
            }
            _ if self.tracked.may_stay(kept.root, &kept.path, kept.role, &observed) => {
                return Ok(restricted(root, kept, &observed));
            }
            (State::Directory { mode }, Found::Present(State::Directory { .. })) => {
                return Ok(Some(Undone::of(
                    Effect::Changed,
                    set_mode(root, &kept.path, *mode).err(),
                )));
            }
            (
                State::File { mode, content: old, .. },
                Found::Present(
                    state @ State::File {
                        mode: now,
                        content: new,
                        links,
                        ..
                    },
                ),
            ) => {
                if old == new && !links.exceeds(kept.state.links()) {
                    let change = self.settled.changes.record_change(root, kept, &observed);
                    self.settled.changes.keep(change);
                    let failed = set_mode(root, &kept.path, *mode).err();
                    return Ok(Some(Undone::of(Effect::Changed, failed)));
                }
                if let Some(verdict) = self.verdict(kept, old, new) {
                    match verdict {
                        Verdict::Harmless if mode == now => return Ok(self.break_hard_link(kept, state)),
                        Verdict::Harmless => filtered = Some((new.clone(), Keys::default())),
                        Verdict::Filtered(text, named) => filtered = Some((text, named)),
                        Verdict::Unclear => {}
                    }
                }
            }
            // The operation has ended.
            (_, Found::Absent) if kept.role == Role::JudgedText => return Ok(None),
            (old, Found::Absent) => {
                // Only where it is certain that nothing is there; otherwise the entry is restored.
                if matches!(nofollow::stat(&root.fd, &kept.anchor), Err(Errno::ENOENT)) && !is_blocked(root, &kept.path)
                {
                    return Ok(None);
                }
                if is_in_removed_work_tree(kept, removed) {
                    return Ok(None);
                }
                if !can_be_created(old) {
                    self.report(kept.root, &kept.path, Effect::Lost, None);
                    return Ok(None);
                }
            }
            (_, Found::Present(_) | Found::TooLong { .. } | Found::Unreadable(_)) => {}
        }
        if let Some((text, named)) = filtered
            && let Some(undone) = self.write_filtered(kept, &observed, text, named)
        {
            return Ok(Some(undone));
        }
        self.restore_entry(kept, &observed)
    }

    /// Restores one entry completely.
    fn restore_entry(&mut self, kept: &SavedEntry, observed: &Found) -> Result<Option<Undone>, ProtectError> {
        let root = self.root(kept.root);
        let change = self.settled.changes.record_change(root, kept, observed);
        let (kind, quarantined) = match observed {
            Found::Absent => (Effect::Removed, None),
            Found::Present(_) | Found::TooLong { .. } | Found::Unreadable(_) => (
                Effect::Changed,
                self.quarantine.take(root, &kept.path, Effect::Changed)?,
            ),
        };
        let kind = if can_be_created(&kept.state) {
            kind
        } else {
            Effect::Lost
        };
        let undone = |quarantined, failed| Undone {
            kind,
            quarantined,
            failed,
            named: Keys::default(),
        };
        if !can_be_created(&kept.state) {
            return Ok(Some(undone(quarantined, None)));
        }
        let made = recreate(root, &kept.path, &kept.state, &mut self.quarantine);
        Ok(Some(match made {
            Ok(obstacle) => {
                // Something stood in the way, so this was more than one change and is not offered.
                self.settled.changes.keep(change.filter(|_| obstacle.is_none()));
                undone(quarantined.or(obstacle), None)
            }
            Err(error) => undone(quarantined, Some(error)),
        }))
    }

    /// Judges a changed text; `None` where all of it is restored.
    fn verdict(&self, kept: &SavedEntry, old: &[u8], new: &[u8]) -> Option<Verdict> {
        if new.len() > old.len().max(MAX_NEW) {
            return None;
        }
        let (_, name) = split(&kept.path);
        match kept.role {
            Role::GitConfig => Some(judge::judge_change(Scope::of(name), old, new, &|path| {
                self.work_trees.may_set_work_tree(kept.root, &kept.path, path)
            })),
            Role::JudgedText => Some(vcs::verdict(name, Some(old), new)),
            Role::GitLink | Role::GitBacklink => self
                .work_trees
                .points_where_it_did(kept, old, new)
                .then_some(Verdict::Harmless),
            Role::GitDirectory
            | Role::GitCommon
            | Role::GitHook
            | Role::LinkOnPath
            | Role::Name
            | Role::TooDeep
            | Role::Unlisted => None,
        }
    }

    /// Replaces a file that got another hard link by a copy of its own.
    fn break_hard_link(&mut self, kept: &SavedEntry, now: &State) -> Option<Undone> {
        if !now.links().exceeds(kept.state.links()) {
            return None;
        }
        let made = recreate(self.root(kept.root), &kept.path, now, &mut self.quarantine);
        Some(Undone::of(Effect::Linked, made.err()))
    }

    /// Writes what may stay of a changed config; `None` where that failed.
    fn write_filtered(&mut self, kept: &SavedEntry, observed: &Found, text: Vec<u8>, named: Keys) -> Option<Undone> {
        let root = self.root(kept.root);
        let state = kept.state.with_content(text)?;
        let change = self.settled.changes.record_change(root, kept, observed);
        let quarantined = replace(root, &kept.path, &state, Effect::Changed, &mut self.quarantine).ok()?;
        self.settled
            .changes
            .keep(change.map(|change| change.with_result(state)));
        Some(Undone {
            kind: Effect::Changed,
            quarantined,
            failed: None,
            named,
        })
    }
}

/// Restricts the mode of a tracked entry that stays to what git gives it or what it had.
fn restricted(root: &Root, kept: &SavedEntry, observed: &Found) -> Option<Undone> {
    let Found::Present(now) = observed else { return None };
    let mode = access::mode_of_tracked(&kept.state, now, kept.access.as_ref())?;
    Some(Undone::of(Effect::Access, set_mode(root, &kept.path, mode).err()))
}

/// Whether the entry lay in a work tree of which only the empty directory is left.
fn is_in_removed_work_tree(kept: &SavedEntry, removed: &HashSet<(u16, Vec<u8>)>) -> bool {
    let may_go = matches!(kept.role, Role::GitLink | Role::Name | Role::JudgedText);
    let mut above = kept.path.as_slice();
    while may_go && !removed.is_empty() && !above.is_empty() {
        above = split(above).0;
        if removed.contains(&(kept.root, above.to_vec())) {
            return true;
        }
    }
    false
}
