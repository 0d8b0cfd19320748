//! The way from each `.git`, and each git directory, to the directories that git obeys there.
//!
//! Where a way is not what it was before a command, git may find other hooks at its end: those that a relative `core.hooksPath` names.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::super::entry::nofollow::{Identity, split};
use super::super::error::ProtectError;
use super::super::roots::{Root, absolute};
use super::super::tree::inventory::Inventory;
use super::repository::{is_out_of_reach, repository, shared_by};
use super::targets::with_access_to;

/// The git directory and the one that it shares; none where git finds none.
pub(crate) type Way = Vec<ObeyedDirectory>;

/// The ways by the path where each begins: a `.git` or a git directory. `None` where one cannot be told.
pub(crate) type Ways = BTreeMap<Vec<u8>, Option<Way>>;

/// A directory that git obeys. A path alone would not tell one that was made again, nor the number of an inode.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct ObeyedDirectory {
    path: Vec<u8>,
    identity: Identity,
    created: Option<(u64, u32)>,
}

impl ObeyedDirectory {
    fn of(path: PathBuf) -> Option<Self> {
        let found = std::fs::metadata(&path).ok()?;
        let created = found.created().ok();
        let created = created.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Some(Self {
            path: path.into_os_string().into_encoded_bytes(),
            identity: Identity {
                device: found.dev(),
                inode: found.ino(),
            },
            created: created.map(|time| (time.as_secs(), time.subsec_nanos())),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }
}

/// The ways of everything in the roots, and of each `.git` above them.
pub(crate) fn ways(roots: &[Root], inventory: &Inventory) -> Ways {
    let mut found = Ways::new();
    let mut add = |begins: &Path, directories: Result<Vec<PathBuf>, ProtectError>| {
        let way = directories
            .ok()
            .and_then(|all| all.into_iter().map(ObeyedDirectory::of).collect());
        found.insert(begins.as_os_str().as_bytes().to_vec(), way);
    };
    let of_entry = |entry: &Path| Ok(repository(entry)?.map(|known| known.directories).unwrap_or_default());
    for (number, git) in inventory.git_directories() {
        let Some(root) = roots.get(usize::from(number)) else {
            continue;
        };
        let path = absolute(root, &git);
        let shared = with_access_to(root, &git, || shared_by(&path));
        add(
            &path,
            shared.map(|shared| std::iter::once(path.clone()).chain(shared).collect()),
        );
    }
    for (number, link) in inventory.git_links() {
        let Some(root) = roots.get(usize::from(number)) else {
            continue;
        };
        let entry = root.path.join(OsStr::from_bytes(&link));
        add(&entry, with_access_to(root, split(&link).0, || of_entry(&entry)));
    }
    for above in roots.iter().flat_map(|root| root.path.ancestors().skip(1)) {
        let entry = above.join(".git");
        match of_entry(&entry) {
            Err(error) if is_out_of_reach(&error) => {}
            directories => add(&entry, directories),
        }
    }
    found
}
