//! Work trees that a command made or moved: a relative `core.hooksPath` leads git into them as well.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::at::split;
use super::hooks::in_work_tree;
use super::patterns::Patterns;
use super::place::Role;
use super::roots::{inside, shown};
use super::sight::Sight;
use super::work::Work;

impl Work<'_> {
    /// The patterns, and the hooks in work trees that were not there; `None` where there are none.
    pub(super) fn with_new_work_trees(&self, patterns: &Patterns, sight: &Sight) -> Option<Patterns> {
        let hooks: Vec<&Path> = self
            .record
            .hooks
            .iter()
            .map(|path| Path::new(OsStr::from_bytes(path)))
            .collect();
        if hooks.is_empty() {
            return None;
        }
        let is_new_git = |role, root, path: &[u8]| {
            matches!(role, Role::GitLink | Role::GitDirectory) && self.kept(root, path).is_none()
        };
        let new = sight
            .found()
            .filter(|found| is_new_git(found.role, found.root, &found.path));
        let places: Vec<PathBuf> = new
            .map(|found| shown(self.root(found.root), split(&found.path).0))
            .collect();
        let mut more = None;
        for path in places
            .iter()
            .flat_map(|place| hooks.iter().flat_map(|value| in_work_tree(place, value)))
        {
            let Some((root, below)) = inside(self.roots, &path) else {
                continue;
            };
            let below = below.as_os_str().as_bytes();
            if path.symlink_metadata().is_ok() && !patterns.covers(root.context, below) {
                more.get_or_insert_with(|| patterns.clone())
                    .protect(root.context.path, below);
            }
        }
        more
    }
}
