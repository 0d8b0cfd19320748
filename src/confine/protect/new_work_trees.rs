//! Work trees and git directories that a command made or moved: a relative `core.hooksPath` leads git to hooks there as well.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::at::split;
use super::hooks::in_work_tree;
use super::markers::there;
use super::patterns::Patterns;
use super::place::Role;
use super::repository::repository;
use super::roots::{number, shown};
use super::sight::{Found, Holder, Sight, born};
use super::targets::reaching;
use super::work::Work;

impl Work<'_> {
    /// The patterns, and the hooks in work trees and git directories that were not there; `None` where there are none.
    pub(super) fn with_new_work_trees(
        &mut self,
        patterns: &Patterns,
        sight: &Sight,
        earlier: Option<&Sight>,
    ) -> Option<Patterns> {
        if self.record.hooks.is_empty() {
            return None;
        }
        let before = self.git_directories(earlier);
        let entries = sight.found().filter(|found| match found.role {
            Role::GitDirectory => !before.contains(&(found.root, found.path.clone())),
            Role::GitLink => self.kept(found.root, &found.path).is_none() || self.leads_beyond(&before, found),
            _ => false,
        });
        let mut places: Vec<PathBuf> = entries
            .map(|found| shown(self.root(found.root), split(&found.path).0))
            .collect();
        // Git runs some hooks in the git directory itself.
        let directories = sight.git_directories().into_iter();
        let new = directories.filter(|git| !before.contains(git));
        places.extend(new.map(|(root, git)| shown(self.root(root), &git)));
        let (mut more, mut hooks) = (None, Vec::new());
        let values = self.record.hooks.iter().map(|path| Path::new(OsStr::from_bytes(path)));
        for path in values.flat_map(|value| places.iter().flat_map(move |place| in_work_tree(place, value))) {
            let Some((root, below)) = number(self.roots, &path) else {
                continue;
            };
            let (context, below) = (self.root(root).context, below.as_os_str().as_bytes());
            // In a directory that a command shut there may be something.
            if !matches!(there(&path), Ok(None)) && !patterns.covers(context, below) {
                more.get_or_insert_with(|| patterns.clone())
                    .protect(context.path, below);
                hooks.push((root, below.to_vec()));
            }
        }
        self.tracked.note_hooks(hooks);
        more
    }

    /// Whether a `.git` that was there leads to a git directory that was not. It may have led nowhere, or to one that was removed.
    fn leads_beyond(&self, before: &HashSet<(u16, Vec<u8>)>, link: &Found) -> bool {
        let root = self.root(link.root);
        let entry = shown(root, &link.path);
        match reaching(root, split(&link.path).0, || repository(&entry)) {
            Ok(Some(led)) => led.directories().any(|git| {
                number(self.roots, git)
                    .is_some_and(|(root, below)| !before.contains(&(root, below.as_os_str().as_bytes().to_vec())))
            }),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// The git directories that were there before the command and still are: a path alone would not tell one that was made again.
    fn git_directories(&self, earlier: Option<&Sight>) -> HashSet<(u16, Vec<u8>)> {
        let recorded = || {
            let roles = [Role::GitConfig, Role::GitCommon, Role::GitBack, Role::GitHook];
            let entries = self.record.entries.iter().filter(|kept| roles.contains(&kept.role));
            entries.map(|kept| (kept.root, split(&kept.path).0.to_vec())).collect()
        };
        let mut before = earlier.map_or_else(recorded, Sight::git_directories);
        let holders: HashMap<(u16, &[u8]), &Holder> = self
            .record
            .holders
            .iter()
            .map(|holder| ((holder.root, holder.path.as_slice()), holder))
            .collect();
        before.retain(|(root, path)| {
            let there = self.root(*root);
            let is_same = |holder: &&Holder| {
                holder.is_at_home(there) && (holder.born.is_none() || holder.born == born(there, path))
            };
            path.is_empty() || holders.get(&(*root, path.as_slice())).is_some_and(is_same)
        });
        before
    }
}
