//! Work trees and git directories that a command made or moved: a relative `core.hooksPath` leads git to hooks there as well.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::at::split;
use super::hooks::in_work_tree;
use super::markers::there;
use super::patterns::Patterns;
use super::place::Role;
use super::roots::{number, shown};
use super::sight::Sight;
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
        let is_new_git = |role, root, path: &[u8]| {
            matches!(role, Role::GitLink | Role::GitDirectory) && self.kept(root, path).is_none()
        };
        let new = sight
            .found()
            .filter(|found| is_new_git(found.role, found.root, &found.path));
        let mut places: Vec<PathBuf> = new
            .map(|found| shown(self.root(found.root), split(&found.path).0))
            .collect();
        // Git runs some hooks in the git directory itself.
        let before = earlier.map(Sight::git_directories).unwrap_or_default();
        let directories = sight.git_directories().into_iter().filter(|git| !before.contains(git));
        places.extend(directories.map(|(root, git)| shown(self.root(root), &git)));
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
}
