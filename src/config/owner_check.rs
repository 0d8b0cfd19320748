//! Whether a file may be trusted: who could have written or replaced it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use super::paths::Walked;
use crate::policy::AbsPath;

const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// The trusted owners, and where the check starts.
#[derive(Debug)]
pub(crate) struct OwnerCheck {
    /// The trusted owners.
    pub(crate) owners: Vec<u32>,
    /// Directories above this one are not checked.
    pub(crate) from: AbsPath,
}

impl OwnerCheck {
    /// Why the file at `named` is not trusted. Checks every directory and link on the way.
    pub(crate) fn objection(&self, named: &AbsPath, walked: &Walked) -> Option<String> {
        let Some(found) = &walked.found else {
            return Some(format!(
                "a symlink on the way leads to {}, and nothing is there",
                walked.path
            ));
        };
        if !found.is_file() {
            return Some(format!("{} is not a regular file", walked.path));
        }
        let paths = walked.links.iter().chain([named, &walked.path]);
        let mut directories: Vec<AbsPath> = paths
            .flat_map(|path| path.ancestors().skip(1).collect::<Vec<_>>())
            .filter(|directory| !self.from.is_below(directory))
            .collect();
        directories.sort();
        directories.dedup();
        let of_directories = directories.iter().find_map(|directory| self.check_entry(directory));
        let of_links = || walked.links.iter().find_map(|link| self.check_entry(link));
        of_directories
            .or_else(of_links)
            .or_else(|| self.check_owner(&walked.path, found))
    }

    fn check_entry(&self, path: &AbsPath) -> Option<String> {
        match std::fs::symlink_metadata(path) {
            Ok(found) => self.check_owner(path, &found),
            Err(error) => Some(format!("{path} cannot be looked at: {error}")),
        }
    }

    fn check_owner(&self, path: &AbsPath, found: &Metadata) -> Option<String> {
        if !self.owners.contains(&found.uid()) {
            return Some(format!("{path} belongs to another user (uid {})", found.uid()));
        }
        // The mode of a link says nothing; in a sticky directory only owners replace what is there.
        let open = found.mode() & WRITABLE_BY_OTHERS != 0 && !found.is_symlink();
        let sticky = found.is_dir() && found.mode() & STICKY != 0;
        (open && !sticky).then(|| format!("others can write {path}: `chmod go-w` it"))
    }
}
