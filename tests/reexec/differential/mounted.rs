//! What a plan mounts: where one mount ends and the next begins, and what is not there at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stockade::backend::namespaces::{MountPlan, Step};

/// What the last step at a path made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Shown,
    Masked,
    /// Nothing of the host.
    Own,
}

/// The mounts of one plan.
#[derive(Debug)]
pub(crate) struct Mounted {
    points: BTreeMap<PathBuf, Made>,
    links: Vec<PathBuf>,
}

impl Mounted {
    pub(crate) fn of(plan: &MountPlan) -> Self {
        let (mut points, mut links) = (BTreeMap::new(), Vec::new());
        for step in &plan.steps {
            let (path, made) = match step {
                Step::Bind { path, .. } | Step::Copy { path, .. } => (path, Made::Shown),
                Step::MaskDirectory { path } | Step::MaskFile { path } => (path, Made::Masked),
                Step::Proc { path } | Step::Dev { path } | Step::Tmp { path, .. } => (path, Made::Own),
                Step::Symlink { path, .. } => {
                    links.push(path.into());
                    continue;
                }
                Step::Directory { .. } | Step::Freeze { .. } => continue,
            };
            points.insert(path.into(), made);
        }
        Self { points, links }
    }

    /// The deepest mount at the path or above it.
    fn around(&self, path: &Path) -> Option<(&PathBuf, Made)> {
        path.ancestors()
            .find_map(|at| self.points.get_key_value(at))
            .map(|(at, made)| (at, *made))
    }

    /// Whether a mask is on the path or above it.
    pub(crate) fn is_masked(&self, path: &Path) -> bool {
        self.around(path).is_some_and(|(_, made)| made == Made::Masked)
    }

    /// Whether there is anything at the path that is there on the host.
    pub(crate) fn is_there(&self, path: &Path) -> bool {
        match self.around(path) {
            Some((_, Made::Shown | Made::Masked)) => true,
            Some((_, Made::Own)) | None => {
                let leads_to_a_mount = self.points.keys().any(|point| point.starts_with(path));
                leads_to_a_mount || self.links.iter().any(|link| link.starts_with(path))
            }
        }
    }

    /// Whether something is mounted right there.
    pub(crate) fn is_point(&self, path: &Path) -> bool {
        self.points.contains_key(path)
    }

    /// Whether the two lie on one mount.
    pub(crate) fn are_together(&self, one: &Path, other: &Path) -> bool {
        let of = |path| self.around(path).map(|(at, _)| at);
        of(one) == of(other)
    }
}
