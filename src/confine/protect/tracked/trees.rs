//! Which work trees are whose: by the `.git` that was there before the command, or that git made for a further one.

use std::collections::BTreeMap;

use super::super::entry::nofollow::split;
use super::super::entry::state::{Found, State, observe};
use super::super::naming::class::Role;
use super::super::record::SavedEntry;
use super::super::settling::inspect::{KnownGits, NewEntryVerdict, judge_new_entry};
use super::super::tree::inventory::FoundEntry;
use super::Tracked;

impl Tracked<'_> {
    /// A `.git` file of before the command, or that of a further work tree that it made.
    pub(super) fn link(&self, root: u16, entry: &[u8]) -> Option<&State> {
        let mut entries = self.record.entries.iter();
        let kept = entries.find(|kept| kept.root == root && kept.path == entry);
        kept.map(|kept| &kept.state)
            .or_else(|| self.new_links.get(&(root, entry.to_vec())))
    }

    /// Takes note of the new `.git` files of further work trees and submodules, and of what leads on from there, which may stay.
    pub(in super::super) fn note_new_links(&mut self, new: &[FoundEntry], known_gits: &KnownGits<'_>) {
        let mut new_links = BTreeMap::new();
        for found in new
            .iter()
            .filter(|found| matches!(found.role, Role::GitLink | Role::GitCommon))
        {
            let Some(root_dir) = self.roots.get(usize::from(found.root)) else {
                continue;
            };
            let observed = observe(&root_dir.fd, &found.path, 1 << 13);
            let is_further = |state: &State| {
                let git_directory_named_by = self.git_directory_named_by(found.root, split(&found.path).0, state);
                let is_below = |git: &[u8]| {
                    git.split(|&b| b == b'/')
                        .any(|name| matches!(name, b"worktrees" | b"modules"))
                };
                found.role == Role::GitCommon || git_directory_named_by.is_some_and(|(_, git)| is_below(&git))
            };
            if matches!(judge_new_entry(found, &observed, known_gits), NewEntryVerdict::Stays)
                && let Found::Present(state @ State::File { .. }) = observed
                && is_further(&state)
            {
                new_links.insert((found.root, found.path.clone()), state);
            }
        }
        if new_links != self.new_links {
            // What was proven of paths may not be any more.
            self.known.clear();
            self.new_links = new_links;
        }
    }

    /// The repository that a `.git` of before the command is of, if it is known.
    fn owner(&self, kept: &SavedEntry) -> Option<(u16, Vec<u8>)> {
        let (number, git) = match &kept.state {
            State::Directory { .. } => (kept.root, kept.path.clone()),
            link => self.git_directory_named_by(kept.root, split(&kept.path).0, link)?,
        };
        let common = self.common(number, &git).map(|(common, _)| common);
        let location = (number, common.unwrap_or(git));
        let mut known = self.tips?.repositories.iter();
        known
            .any(|one| one.location.as_ref() == Some(&location))
            .then_some(location)
    }

    /// Whether it is known: not after a crash, nor where a command was killed for where it led git.
    pub(in super::super) fn has_tips(&self) -> bool {
        self.tips.is_some()
    }

    /// Whether a `.git` of before the command is of a repository that no command made.
    pub(in super::super) fn is_made_by_host(&self, kept: &SavedEntry) -> bool {
        let owner = self.owner(kept).zip(self.tips);
        owner.is_some_and(|((root, git), tips)| !tips.is_made_by_command(root, &git))
    }

    /// Whether an entry of before the command is of a repository that a command made: by what it names, or by what holds it.
    pub(in super::super) fn is_made_by_commands(&self, kept: &SavedEntry) -> bool {
        let Some(tips) = self.tips else { return false };
        if matches!(kept.role, Role::GitLink | Role::GitDirectory) {
            return self
                .owner(kept)
                .is_some_and(|(root, git)| tips.is_made_by_command(root, &git));
        }
        let mut above = split(&kept.path).0;
        while !above.is_empty() {
            if tips.is_made_by_command(kept.root, above) {
                return true;
            }
            above = split(above).0;
        }
        false
    }
}
