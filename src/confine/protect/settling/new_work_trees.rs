//! Work trees and git directories that a command made or moved: a relative `core.hooksPath` leads git to hooks there as well.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::entry::nofollow::split;
use super::super::naming::class::Role;
use super::super::naming::markers::metadata_if_present;
use super::super::naming::patterns::Patterns;
use super::super::referenced::hooks::hooks_in_work_tree;
use super::super::referenced::repository::repository;
use super::super::referenced::targets::with_access_to;
use super::super::roots::{absolute, root_number};
use super::super::tree::inventory::{Ancestor, FoundEntry, Inventory, creation_time};
use super::settlement::Settlement;

impl Settlement<'_> {
    /// The patterns, and the hooks in work trees and git directories that were not there; `None` where there are none.
    pub(crate) fn with_new_work_trees(
        &mut self,
        patterns: &Patterns,
        inventory: &Inventory,
        earlier: Option<&Inventory>,
    ) -> Option<Patterns> {
        if self.record.hooks.is_empty() {
            return None;
        }
        let before = self.git_directories(earlier);
        let entries = inventory.found().filter(|found| match found.role {
            Role::GitDirectory => !before.contains(&(found.root, found.path.clone())),
            Role::GitLink => {
                self.work_trees.saved(found.root, &found.path).is_none()
                    || self.names_other_git_directory(&before, found)
            }
            _ => false,
        });
        let mut locations: Vec<PathBuf> = entries
            .map(|found| absolute(self.root(found.root), split(&found.path).0))
            .collect();
        // Git runs some hooks in the git directory itself.
        let directories = inventory.git_directories().into_iter();
        let new = directories.filter(|git| !before.contains(git));
        locations.extend(new.map(|(root, git)| absolute(self.root(root), &git)));
        let (mut more, mut hooks) = (None, Vec::new());
        let values = self.record.hooks.iter().map(|path| Path::new(OsStr::from_bytes(path)));
        for path in values.flat_map(|value| {
            locations
                .iter()
                .flat_map(move |location| hooks_in_work_tree(location, value))
        }) {
            let Some((root, below)) = root_number(self.roots, &path) else {
                continue;
            };
            let (context, below) = (self.root(root).context, below.as_os_str().as_bytes());
            // In a directory that a command shut there may be something.
            if !matches!(metadata_if_present(&path), Ok(None)) && !patterns.covers(context, below) {
                more.get_or_insert_with(|| patterns.clone())
                    .protect(context.path, below);
                hooks.push((root, below.to_vec()));
            }
        }
        self.tracked.note_hooks(hooks);
        more
    }

    /// Whether a `.git` that was there leads to a git directory that was not. It may have led nowhere, or to one that was removed.
    fn names_other_git_directory(&self, before: &HashSet<(u16, Vec<u8>)>, link: &FoundEntry) -> bool {
        let root = self.root(link.root);
        let entry = absolute(root, &link.path);
        match with_access_to(root, split(&link.path).0, || repository(&entry)) {
            Ok(Some(linked)) => linked.directories().any(|git| {
                root_number(self.roots, git)
                    .is_some_and(|(root, below)| !before.contains(&(root, below.as_os_str().as_bytes().to_vec())))
            }),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// The git directories that were there before the command and still are: a path alone would not tell one that was made again.
    fn git_directories(&self, earlier: Option<&Inventory>) -> HashSet<(u16, Vec<u8>)> {
        let recorded = || {
            let roles = [Role::GitConfig, Role::GitCommon, Role::GitBacklink, Role::GitHook];
            let entries = self.record.entries.iter().filter(|kept| roles.contains(&kept.role));
            entries.map(|kept| (kept.root, split(&kept.path).0.to_vec())).collect()
        };
        let mut before = earlier.map_or_else(recorded, Inventory::git_directories);
        let ancestors: HashMap<(u16, &[u8]), &Ancestor> = self
            .record
            .ancestors
            .iter()
            .map(|ancestor| ((ancestor.root, ancestor.path.as_slice()), ancestor))
            .collect();
        before.retain(|(root, path)| {
            let root_dir = self.root(*root);
            let is_same = |ancestor: &&Ancestor| {
                ancestor.is_in_place(root_dir)
                    && (ancestor.created.is_none() || ancestor.created == creation_time(root_dir, path))
            };
            path.is_empty() || ancestors.get(&(*root, path.as_slice())).is_some_and(is_same)
        });
        before
    }
}
