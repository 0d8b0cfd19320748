//! Which work trees are whose: by the `.git` that was there before the command, or that git made for a further one.

use std::collections::BTreeMap;

use super::super::at::split;
use super::super::inspect::{Judged, Surroundings, judge};
use super::super::place::Role;
use super::super::record::Kept;
use super::super::sight::Found;
use super::super::state::{Seen, State, glance};
use super::Tracked;

impl Tracked<'_> {
    /// A `.git` file of before the command, or that of a further work tree that it made.
    pub(super) fn link(&self, root: u16, entry: &[u8]) -> Option<&State> {
        let mut entries = self.record.entries.iter();
        let kept = entries.find(|kept| kept.root == root && kept.path == entry);
        kept.map(|kept| &kept.state)
            .or_else(|| self.met.get(&(root, entry.to_vec())))
    }

    /// Takes note of the new `.git` files of further work trees and submodules, and of what leads on from there, which may stay.
    pub(in super::super) fn meet(&mut self, new: &[Found], around: &Surroundings<'_>) {
        let mut met = BTreeMap::new();
        for found in new
            .iter()
            .filter(|found| matches!(found.role, Role::GitLink | Role::GitCommon))
        {
            let Some(holder) = self.roots.get(usize::from(found.root)) else {
                continue;
            };
            let seen = glance(&holder.fd, &found.path, 1 << 13);
            let is_further = |state: &State| {
                let named = self.named(found.root, split(&found.path).0, state);
                let is_below = |git: &[u8]| {
                    git.split(|&b| b == b'/')
                        .any(|name| matches!(name, b"worktrees" | b"modules"))
                };
                found.role == Role::GitCommon || named.is_some_and(|(_, git)| is_below(&git))
            };
            if matches!(judge(found, &seen, around), Judged::Stays)
                && let Seen::Present(state @ State::File { .. }) = seen
                && is_further(&state)
            {
                met.insert((found.root, found.path.clone()), state);
            }
        }
        if met != self.met {
            // What was proven of paths may not be any more.
            self.known.clear();
            self.met = met;
        }
    }

    /// The repository that a `.git` of before the command is of, if it is known.
    fn owner(&self, kept: &Kept) -> Option<(u16, Vec<u8>)> {
        let (number, git) = match &kept.state {
            State::Directory { .. } => (kept.root, kept.path.clone()),
            link => self.named(kept.root, split(&kept.path).0, link)?,
        };
        let common = self.common(number, &git).map(|(common, _)| common);
        let place = (number, common.unwrap_or(git));
        let mut known = self.tips?.repositories.iter();
        known.any(|one| one.place.as_ref() == Some(&place)).then_some(place)
    }

    /// Whether it is known: not after a crash, nor where a command was killed for where it led git.
    pub(in super::super) fn knows_who_made_what(&self) -> bool {
        self.tips.is_some()
    }

    /// Whether a `.git` of before the command is of a repository that no command made.
    pub(in super::super) fn is_of_host(&self, kept: &Kept) -> bool {
        let owner = self.owner(kept).zip(self.tips);
        owner.is_some_and(|((root, git), tips)| !tips.are_made(root, &git))
    }

    /// Whether an entry of before the command is of a repository that a command made: by what it names, or by what holds it.
    pub(in super::super) fn is_of_commands(&self, kept: &Kept) -> bool {
        let Some(tips) = self.tips else { return false };
        if matches!(kept.role, Role::GitLink | Role::GitDirectory) {
            return self.owner(kept).is_some_and(|(root, git)| tips.are_made(root, &git));
        }
        let mut above = split(&kept.path).0;
        while !above.is_empty() {
            if tips.are_made(kept.root, above) {
                return true;
            }
            above = split(above).0;
        }
        false
    }
}
