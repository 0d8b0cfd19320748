//! The records of the trust store, in their form on disk.

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::loaded::{Loaded, NamedFile};
use crate::policy::{BasePath, Origin, Root, Scope};

/// A path as UTF-8 text, or as bytes if it is not UTF-8; compared by its bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum StoredPath {
    Text(String),
    Bytes(Vec<u8>),
}

impl PartialEq for StoredPath {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for StoredPath {}

impl PartialOrd for StoredPath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for StoredPath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl StoredPath {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The stored form of a path.
    pub(crate) fn new(path: &Path) -> Self {
        let bytes = path.as_os_str().as_bytes();
        std::str::from_utf8(bytes).map_or_else(|_| Self::Bytes(bytes.to_owned()), |text| Self::Text(text.to_owned()))
    }

    /// The path.
    pub(crate) fn to_path(&self) -> PathBuf {
        match self {
            Self::Text(text) => PathBuf::from(text),
            Self::Bytes(bytes) => PathBuf::from(std::ffi::OsString::from_vec(bytes.clone())),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredFile {
    pub(crate) path: StoredPath,
    pub(crate) sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredRoot {
    pub(crate) name: String,
    pub(crate) path: StoredPath,
    /// Both `None` where the directory was yet to be made.
    pub(crate) device: Option<u64>,
    pub(crate) inode: Option<u64>,
}

/// A base path of the config's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredBase {
    pub(crate) path: StoredPath,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) rights: String,
    /// `tree`, `file` or `names`.
    pub(crate) scope: String,
}

/// A file with the hash of the bytes that were read.
pub(crate) fn stored_file(file: &NamedFile) -> StoredFile {
    StoredFile {
        path: StoredPath::new(&file.path),
        sha256: file.hex(),
    }
}

/// The roots with their inodes.
pub(crate) fn stored_roots(loaded: &Loaded) -> Vec<StoredRoot> {
    let one = |root: &Root| {
        let there = !loaded.missing.iter().any(|missing| missing.name == root.name);
        StoredRoot {
            name: root.name.clone(),
            path: StoredPath::new(root.path.as_path()),
            device: there.then_some(root.identity.device),
            inode: there.then_some(root.identity.inode),
        }
    };
    loaded.policy.roots.iter().map(one).collect()
}

/// The base paths that the config itself names, not its presets.
pub fn own_base(loaded: &Loaded) -> impl Iterator<Item = &BasePath> {
    let own = |base: &&BasePath| match base.grant.origin {
        Origin::File { .. } => true,
        Origin::Preset { .. } | Origin::Flag(_) | Origin::Builtin(_) => false,
    };
    loaded.policy.base.iter().filter(own)
}

/// Those base paths with their inodes.
pub(crate) fn stored_base(loaded: &Loaded) -> Vec<StoredBase> {
    let one = |base: &BasePath| StoredBase {
        path: StoredPath::new(base.grant.path.as_path()),
        device: base.identity.device,
        inode: base.identity.inode,
        rights: base.grant.rights.to_string(),
        scope: match base.grant.scope {
            Scope::Tree => "tree",
            Scope::File => "file",
            Scope::Names => "names",
        }
        .to_owned(),
    };
    own_base(loaded).map(one).collect()
}
