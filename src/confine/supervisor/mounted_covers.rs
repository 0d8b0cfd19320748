//! The covers of recorded protected names: mounts of private copies, or read-only ones.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::backend::namespaces::MOST_PROTECTED;
use crate::confine::protect::{Covers, Guard, ProtectError, Watch, closed_directory};
use crate::confine::wire::protocol::{CoverScope, Covered, ProtectSetup};

/// The covers of protected names in this session.
#[derive(Debug, Default)]
pub(crate) struct MountedCovers {
    copies: Option<Covers>,
    /// Whether commands run behind mounts.
    is_mounted: bool,
    /// Why covering failed.
    failed: Option<String>,
}

impl MountedCovers {
    /// The names to cover; copies are made of those that commands may change.
    pub(crate) fn cover(&mut self, setup: Option<&ProtectSetup>, guard: Option<&Guard>) -> Vec<Covered> {
        let (Some(setup), Some(guard)) = (setup, guard) else {
            return Vec::new();
        };
        self.is_mounted = true;
        let covered = |path: PathBuf, copy: Option<OsString>| Covered {
            path: path.into_os_string(),
            copy,
        };
        let all: Vec<Covered> = match setup.cover {
            CoverScope::Everything => {
                let present = guard.present(MOST_PROTECTED).into_iter();
                present.map(|path| covered(path, None)).collect()
            }
            CoverScope::RunAtOnce => {
                let to_cover = guard.to_cover(MOST_PROTECTED);
                match Covers::create(guard.record(), to_cover, setup.store.as_ref()) {
                    Ok(copies) => {
                        let pairs = copies.pairs(guard.roots());
                        let pairs = pairs.map(|(path, copy)| covered(path, Some(copy.into_os_string())));
                        let pairs = pairs.collect();
                        self.copies = Some(copies);
                        pairs
                    }
                    Err(error) => return self.fail(error.to_string()),
                }
            }
        };
        // A command could make the directory accessible, and write where nothing covers.
        match all
            .iter()
            .find_map(|covered| closed_directory(Path::new(&covered.path)))
        {
            Some(error) => self.fail(error.to_string()),
            None => all,
        }
    }

    /// Records that covering failed, so that no command runs.
    pub(crate) fn fail(&mut self, why: String) -> Vec<Covered> {
        self.failed = Some(why);
        Vec::new()
    }

    /// Why no command may run.
    pub(crate) fn failed(&self) -> Option<String> {
        let why = self.failed.as_ref()?;
        Some(format!(
            "protected names could not be covered when the session began: {why}"
        ))
    }

    /// Resets the copies to what was recorded for the next command, which must not start if this fails.
    pub(crate) fn lay(&self, guard: &Guard) -> Result<(), ProtectError> {
        self.copies()
            .map_or(Ok(()), |copies| copies.lay(guard.record(), guard.roots()))
    }

    /// Whether all that is to be covered now has a copy: more may have been made since the mounts.
    pub(crate) fn covers_all_of(&self, guard: &Guard) -> bool {
        self.copies()
            .is_none_or(|copies| copies.include_all(&guard.to_cover(MOST_PROTECTED), MOST_PROTECTED))
    }

    /// Watches what no mount can cover, where mounts cover the rest. If this fails the command must not start.
    pub(crate) fn watch(&self, guard: &Guard) -> Result<Option<Watch>, ProtectError> {
        if self.is_mounted {
            Watch::set(guard, self.copies()).map(Some)
        } else {
            Ok(None)
        }
    }

    pub(crate) fn copies(&self) -> Option<&Covers> {
        self.copies.as_ref()
    }
}
