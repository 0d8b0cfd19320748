//! A cache of resolved paths for one load.
//!
//! Presets list many entries of few directories, and each is compared with the same system and home
//! paths. Without a cache a load could also see two states of one path.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use foldhash::fast::RandomState;

use super::paths::{self, PathError, Walked};
use crate::policy::{AbsPath, Identity};

/// Resolved paths and identities. Valid for one load only.
#[derive(Debug, Default)]
pub(crate) struct PathCache {
    /// Each directory, resolved; also parents that are missing or no directory.
    directories: RefCell<HashMap<PathBuf, Walked, RandomState>>,
    /// Each path that is compared with others, resolved.
    real: RefCell<HashMap<AbsPath, AbsPath, RandomState>>,
    /// The identity of each such path.
    identities: RefCell<HashMap<AbsPath, Option<Identity>, RandomState>>,
}

impl PathCache {
    /// Resolves an absolute path. Each directory is resolved once in a load.
    pub(crate) fn walk(&self, path: &Path) -> Result<Walked, PathError> {
        if let Some(known) = self.directories.borrow().get(path) {
            return Ok(known.clone());
        }
        let walked = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => {
                let start = self.walk(parent)?;
                // More entries of it may be resolved.
                if start.found.as_ref().is_none_or(|found| !found.is_dir()) {
                    self.remember(parent, &start);
                }
                paths::walk_on(start, Path::new(name))?
            }
            (None, _) | (_, None) => paths::walk(path)?,
        };
        if walked.found.as_ref().is_some_and(Metadata::is_dir) {
            self.remember(path, &walked);
        }
        Ok(walked)
    }

    fn remember(&self, path: &Path, walked: &Walked) {
        self.directories.borrow_mut().insert(path.to_owned(), walked.clone());
    }

    /// The path with its links resolved; unchanged if it cannot be resolved.
    pub(crate) fn real(&self, path: &AbsPath) -> AbsPath {
        if let Some(known) = self.real.borrow().get(path) {
            return known.clone();
        }
        let real = self
            .walk(path.as_path())
            .map_or_else(|_| path.clone(), |walked| walked.path);
        self.real.borrow_mut().insert(path.clone(), real.clone());
        real
    }

    /// Device and inode of what stands at a path, a link itself included.
    pub(crate) fn identity(&self, path: &AbsPath) -> Option<Identity> {
        if let Some(known) = self.identities.borrow().get(path) {
            return *known;
        }
        let found = self.walked_to(path).or_else(|| {
            let found = std::fs::symlink_metadata(path).ok()?;
            Some(paths::identity(&found))
        });
        self.identities.borrow_mut().insert(path.clone(), found);
        found
    }

    /// The identity of a path that a walk resolved without a link.
    fn walked_to(&self, path: &AbsPath) -> Option<Identity> {
        let directories = self.directories.borrow();
        let walked = directories.get(path.as_path())?;
        walked.identity().filter(|_| walked.path == *path)
    }

    /// Whether `inner` is `outer` or lies below it, by path or by identity.
    pub(crate) fn holds(&self, outer: &AbsPath, inner: &AbsPath) -> bool {
        if inner.is_within(outer) {
            return true;
        }
        let Some(outer) = self.identity(outer) else {
            return false;
        };
        inner.ancestors().any(|above| self.identity(&above) == Some(outer))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_walk_leads_where_one_that_remembers_nothing_leads() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("real/below")).unwrap();
        std::fs::write(at("real/below/file"), "x").unwrap();
        symlink("real/below", at("link")).unwrap();
        symlink("../link/file", at("real/back")).unwrap();
        symlink("loop", at("loop")).unwrap();
        let cache = PathCache::default();
        let texts = [
            "",
            "link/file",
            "link/../back",
            "real/back",
            "real/back/..",
            "link/file/below",
            "missing/a/b",
            "missing/../real",
            "loop",
            "loop/x",
            ".",
            "real/./below/",
            "../../..",
        ];
        // Twice, so that what is remembered is asked as well.
        for text in texts.into_iter().chain(texts) {
            let path = at(text);
            let shown = |walked: Result<Walked, PathError>| match walked {
                Ok(walked) => format!("{:?} {:?} {:?}", walked.path, walked.identity(), walked.links),
                Err(error) => error.to_string(),
            };
            assert_eq!(shown(cache.walk(&path)), shown(paths::walk(&path)), "{text}");
        }
        assert_eq!(cache.walk(Path::new("/")).unwrap().path, AbsPath::root());
    }

    #[test]
    fn what_stands_at_a_path_is_the_same_whether_or_not_it_was_walked_to() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| AbsPath::new(dir.path().canonicalize().unwrap().join(name)).unwrap();
        std::fs::create_dir_all(at("real/below")).unwrap();
        symlink("real", at("link")).unwrap();
        let cache = PathCache::default();
        for name in ["real", "real/below", "link", "link/below", "missing"] {
            // One of these is the entry itself, the other where it leads.
            cache.walk(at(name).as_path()).unwrap();
            assert_eq!(
                cache.identity(&at(name)),
                PathCache::default().identity(&at(name)),
                "{name}"
            );
        }
        assert_ne!(cache.identity(&at("link")), cache.identity(&at("real")));
    }
}
