//! Changes to private copies: the harmless part is applied to the host's files, the rest is reported.

use super::super::entry::nofollow::{is_within, split};
use super::super::entry::restore::{overwrite, recreate};
use super::super::entry::state::{Found, MAX_FILE, State, observe};
use super::super::error::ProtectError;
use super::super::gitconfig::judge::{self, Verdict};
use super::super::gitconfig::scope::Scope;
use super::super::live::covers::{Covers, Difference};
use super::super::naming::class::Role;
use super::super::record::SavedEntry;
use super::super::roots::absolute;
use super::super::violation::{Effect, Keys};
use super::inspect::MAX_NEW;
use super::settlement::Settlement;

/// What commands made of the covers, and the settlement that it goes to.
struct CoverChanges<'s, 'a> {
    settlement: &'s mut Settlement<'a>,
    covers: &'s Covers,
}

/// Settles each difference between the copies and what was recorded; returns what failed.
pub(crate) fn settle_covers(settlement: &mut Settlement<'_>, covers: &Covers) -> Vec<ProtectError> {
    CoverChanges { settlement, covers }.settle()
}

impl CoverChanges<'_, '_> {
    fn settle(&mut self) -> Vec<ProtectError> {
        let mut errors = Vec::new();
        // Directories that are kept whole, with all that is in them.
        let mut whole: Vec<(u16, Vec<u8>)> = Vec::new();
        for difference in self.covers.differences(self.settlement.record) {
            let is_new = difference.before.is_none();
            let (root, path) = (difference.root, &difference.path);
            if is_new
                && whole
                    .iter()
                    .any(|(other, above)| *other == root && is_within(path, above))
            {
                continue;
            }
            if became_directory(&difference) {
                whole.push((root, path.clone()));
            }
            match self.harmless_part(&difference) {
                Some((kept, text, named)) if self.is_unchanged(kept) => match self.apply(kept, text) {
                    // Some rejected parts have no name, such as an odd header.
                    Ok(now) if !has_everything(&difference, &now) => {
                        errors.extend(self.report_difference(&difference, Some(&now), named));
                    }
                    Ok(_) => {}
                    Err(error) => {
                        errors.push(not_applied(error));
                        errors.extend(self.report_difference(&difference, Some(&kept.state), Keys::default()));
                    }
                },
                // A change that the host made meanwhile wins.
                Some(_) | None => {
                    let before = difference.before.map(|kept| &kept.state);
                    errors.extend(self.report_difference(&difference, before, Keys::default()));
                }
            }
        }
        errors
    }

    /// The harmless part of a changed config, and what was rejected; `None` where it is no config or not understood.
    fn harmless_part<'d>(&self, difference: &Difference<'d>) -> Option<(&'d SavedEntry, Vec<u8>, Keys)> {
        let kept = difference.before.filter(|kept| kept.role == Role::GitConfig)?;
        let (State::File { content: old, .. }, Found::Present(State::File { content: new, .. })) =
            (&kept.state, &difference.after)
        else {
            return None;
        };
        if new.len() > old.len().max(MAX_NEW) {
            return None;
        }
        let may_set_work_tree = |path: Option<&[u8]>| {
            self.settlement
                .work_trees
                .may_set_work_tree(kept.root, &kept.path, path)
        };
        match judge::judge_change(Scope::of(split(&kept.path).1), old, new, &may_set_work_tree) {
            // A mode that a command gave its copy is the copy's alone.
            Verdict::Harmless => Some((kept, new.clone(), Keys::default())),
            Verdict::Filtered(text, named) => Some((kept, text, named)),
            Verdict::Unclear => None,
        }
    }

    fn is_unchanged(&self, kept: &SavedEntry) -> bool {
        let now = observe(&self.settlement.root(kept.root).fd, &kept.path, MAX_FILE);
        matches!(now, Found::Present(state) if state == kept.state)
    }

    /// Writes this text to the host's config and returns the new state.
    fn apply(&mut self, kept: &SavedEntry, text: Vec<u8>) -> Result<State, ProtectError> {
        let unchanged = matches!(&kept.state, State::File { content, .. } if *content == text);
        let state = kept.state.with_content(text).filter(|_| !unchanged);
        let Some(state) = state else {
            return Ok(kept.state.clone());
        };
        // In place: a new file would detach the mounts of other commands.
        let root = self.settlement.root(kept.root);
        match overwrite(root, &kept.path, &state) {
            Ok(()) => {}
            // A file that its owner cannot write is replaced.
            Err(_) => drop(recreate(root, &kept.path, &state, &mut self.settlement.quarantine)?),
        }
        Ok(state)
    }

    /// Reports the rejected part, keeps it in quarantine, and offers it to a person. Returns what could not be kept.
    fn report_difference(
        &mut self,
        difference: &Difference<'_>,
        now: Option<&State>,
        named: Keys,
    ) -> Option<ProtectError> {
        let Difference {
            root,
            path,
            before,
            after,
        } = difference;
        let kind = match (before, after) {
            (None, _) => Effect::Created,
            (Some(_), Found::Absent) => Effect::Removed,
            (Some(_), Found::Present(_) | Found::TooLong { .. } | Found::Unreadable(_)) => Effect::Changed,
        };
        let origin = absolute(self.settlement.root(*root), path);
        let quarantine = &mut self.settlement.quarantine;
        let kept = match after {
            Found::Absent => Ok(None),
            Found::Present(State::Directory { .. }) if !became_directory(difference) => Ok(None),
            // A copy costs no new mounts.
            Found::Present(state) => match quarantine.keep(&origin, kind, state) {
                Some(place) => Ok(Some(place)),
                None => self.covers.keep(*root, path, kind, &origin, quarantine),
            },
            Found::TooLong { .. } | Found::Unreadable(_) => self.covers.keep(*root, path, kind, &origin, quarantine),
        };
        let (quarantined, failed) = match kept {
            Ok(quarantined) => (quarantined, None),
            Err(error) => (None, Some(error)),
        };
        self.settlement.report_keys(*root, path, kind, quarantined, named);
        // A person is shown files.
        let after = match after {
            Found::Absent => None,
            Found::Present(state @ State::File { .. }) => Some(state),
            Found::Present(
                State::Symlink { .. } | State::Directory { .. } | State::Special { .. } | State::Ignored,
            )
            | Found::TooLong { .. }
            | Found::Unreadable(_) => return failed,
        };
        match now {
            None | Some(State::File { .. } | State::Symlink { .. }) => {
                self.settlement.settled.changes.keep_copied(*root, path, now, after);
            }
            Some(State::Directory { .. } | State::Special { .. } | State::Ignored) => {}
        }
        failed
    }
}

/// The error of a harmless change that could not be done to the host's file, which is as it was.
fn not_applied(error: ProtectError) -> ProtectError {
    match error {
        ProtectError::Io { path, source, .. } => ProtectError::Io {
            step: "take over what a command changed in",
            path,
            source,
        },
        other => other,
    }
}

/// Whether there is a directory where none was: it is kept whole. One that was there has only another mode; what is new in it is kept by
/// itself.
fn became_directory(difference: &Difference<'_>) -> bool {
    let was_directory = difference
        .before
        .is_some_and(|kept| matches!(kept.state, State::Directory { .. }));
    !was_directory && matches!(difference.after, Found::Present(State::Directory { .. }))
}

/// Whether the host's file has all that the command wrote.
fn has_everything(difference: &Difference<'_>, now: &State) -> bool {
    match (&difference.after, now) {
        (Found::Present(State::File { content: wanted, .. }), State::File { content, .. }) => wanted == content,
        (Found::Absent | Found::Present(_) | Found::TooLong { .. } | Found::Unreadable(_), _) => false,
    }
}
