//! What the trust store holds, in the form it has on disk.

use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::load::NamedFile;
use crate::policy::Root;

/// A path as text where it is text, as bytes where it is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum StoredPath {
    Text(String),
    Bytes(Vec<u8>),
}

impl StoredPath {
    /// The path, in the form that loses nothing.
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
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// A file with the hash of the bytes that were read.
pub(crate) fn stored_file(file: &NamedFile) -> StoredFile {
    let mut sha256 = String::with_capacity(64);
    for byte in file.sha256 {
        // Writing to a String cannot fail.
        let _infallible = write!(sha256, "{byte:02x}");
    }
    StoredFile {
        path: StoredPath::new(&file.path),
        sha256,
    }
}

/// A root with the inode it leads to.
pub(crate) fn stored_root(root: &Root) -> StoredRoot {
    StoredRoot {
        name: root.name.clone(),
        path: StoredPath::new(root.path.as_path()),
        device: root.identity.device,
        inode: root.identity.inode,
    }
}
