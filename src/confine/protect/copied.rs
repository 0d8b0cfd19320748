//! What a command made of the private copies: the harmless part is done to the host's files, the rest is reported.

use super::at::split;
use super::covers::{Covers, Difference};
use super::error::ProtectError;
use super::gitconfig::{self, Verdict};
use super::gitscope::Scope;
use super::inspect::MAX_NEW;
use super::place::Role;
use super::record::Kept;
use super::restore::{put, write_over};
use super::state::{MAX_FILE, Seen, State, glance};
use super::violation::{Named, What};
use super::work::Work;

impl Work<'_> {
    /// Settles each difference between the copies and what was recorded; what could not be.
    pub(super) fn settle_copies(&mut self, covers: &Covers) -> Vec<ProtectError> {
        let mut errors = Vec::new();
        for difference in covers.differences(self.record) {
            match self.may_stay_of(&difference) {
                Some((kept, text, named)) if self.is_as_it_was(kept) => match self.apply(kept, text) {
                    // Also what has no name that could be told, such as an odd header.
                    Ok(now) if !is_what_was_written(&difference, &now) => {
                        self.tell(covers, &difference, Some(&now), named);
                    }
                    Ok(_) => {}
                    Err(error) => errors.push(error),
                },
                // Whoever changed the host's file meanwhile meant it.
                Some(_) | None => self.tell(
                    covers,
                    &difference,
                    difference.before.map(|kept| &kept.state),
                    Named::default(),
                ),
            }
        }
        errors
    }

    /// What of a changed config may stay, and what may not; none where it is no config, or not understood.
    fn may_stay_of<'d>(&self, difference: &Difference<'d>) -> Option<(&'d Kept, Vec<u8>, Named)> {
        let kept = difference.before.filter(|kept| kept.role == Role::GitConfig)?;
        let (State::File { content: old, .. }, Seen::Present(State::File { content: new, .. })) =
            (&kept.state, &difference.after)
        else {
            return None;
        };
        if new.len() > old.len().max(MAX_NEW) {
            return None;
        }
        let may_work = |place: Option<&[u8]>| self.may_work(kept.root, &kept.path, place);
        match gitconfig::of_change(Scope::of(split(&kept.path).1), old, new, &may_work) {
            // A mode that a command gave its copy is the copy's alone.
            Verdict::Harmless => Some((kept, new.clone(), Named::default())),
            Verdict::Tamed(text, named) => Some((kept, text, named)),
            Verdict::Unclear => None,
        }
    }

    fn is_as_it_was(&self, kept: &Kept) -> bool {
        let now = glance(&self.root(kept.root).fd, &kept.path, MAX_FILE);
        matches!(now, Seen::Present(state) if state == kept.state)
    }

    /// Has the host's config be this; gives back what it is now.
    fn apply(&mut self, kept: &Kept, text: Vec<u8>) -> Result<State, ProtectError> {
        let unchanged = matches!(&kept.state, State::File { content, .. } if *content == text);
        let state = kept.state.with_content(text).filter(|_| !unchanged);
        let Some(state) = state else {
            return Ok(kept.state.clone());
        };
        // In its place: a new file under its name would take the copies away that other commands have of it.
        let root = self.root(kept.root);
        match write_over(root, &kept.path, &state) {
            Ok(()) => {}
            // One that its owner may not write is replaced.
            Err(_) => drop(put(root, &kept.path, &state, &mut self.quarantine)?),
        }
        Ok(state)
    }

    /// Reports what the host does not get, keeps it, and has it offered to a person.
    fn tell(&mut self, covers: &Covers, difference: &Difference<'_>, now: Option<&State>, named: Named) {
        let Difference {
            root,
            path,
            before,
            after,
        } = difference;
        let what = match (before, after) {
            (None, _) => What::Created,
            (Some(_), Seen::Absent) => What::Removed,
            (Some(_), Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_)) => What::Changed,
        };
        let holder = self.root(*root);
        let quarantined = match after {
            Seen::Present(state) => self.quarantine.keep(holder, path, what, state),
            Seen::Absent => None,
            Seen::Long { .. } | Seen::Unreadable(_) => covers.keep(*root, path, what, holder, &mut self.quarantine),
        };
        self.report(*root, path, what, quarantined, named);
        // A person is shown files.
        let after = match after {
            Seen::Absent => None,
            Seen::Present(state @ State::File { .. }) => Some(state),
            Seen::Present(State::Symlink { .. } | State::Directory { .. } | State::Special { .. } | State::Left)
            | Seen::Long { .. }
            | Seen::Unreadable(_) => return,
        };
        match now {
            None | Some(State::File { .. } | State::Symlink { .. }) => {
                self.settled.changes.keep_copied(*root, path, now, after);
            }
            Some(State::Directory { .. } | State::Special { .. } | State::Left) => {}
        }
    }
}

/// Whether the host has got all that a command wrote.
fn is_what_was_written(difference: &Difference<'_>, now: &State) -> bool {
    match (&difference.after, now) {
        (Seen::Present(State::File { content: wanted, .. }), State::File { content, .. }) => wanted == content,
        (Seen::Absent | Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_), _) => false,
    }
}
