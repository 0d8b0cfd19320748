//! The file of a config: opened and read once, and hashed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::error::ConfigError;
use super::loaded::NamedFile;
use super::paths;
use crate::policy::{AbsPath, Identity};

/// Larger than any config a person writes.
const MAX_BYTES: u64 = 1 << 20;

/// What to do when the config itself is a symlink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// A person named the file: follow.
    Follow,
    /// It was found lying there: refuse.
    Refuse,
}

/// The bytes of a config, read once, with their hash.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) file: NamedFile,
    pub(crate) bytes: Vec<u8>,
    pub(crate) identity: Identity,
}

/// Reads a config once.
pub(crate) fn read(path: &Path, links: Links) -> Result<ConfigFile, ConfigError> {
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let file = open(path, links).map_err(|source| match (links, source.raw_os_error()) {
        (Links::Refuse, Some(libc::ELOOP)) => ConfigError::Link(path.to_owned()),
        (Links::Refuse | Links::Follow, _) => failed(source),
    })?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(ConfigError::NotAFile(path.to_owned()));
    }
    let identity = paths::identity(&metadata);
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    let sha256 = hash(path, &bytes)?;
    let path = std::path::absolute(path).map_err(failed)?;
    Ok(ConfigFile {
        file: NamedFile { path, sha256 },
        bytes,
        identity,
    })
}

/// The hash of a config's bytes, unless they are too many.
pub(crate) fn hash(path: &Path, bytes: &[u8]) -> Result<[u8; 32], ConfigError> {
    if u64::try_from(bytes.len()).is_ok_and(|len| len > MAX_BYTES) {
        return Err(ConfigError::TooLarge(path.to_owned()));
    }
    Ok(Sha256::digest(bytes).into())
}

fn open(path: &Path, links: Links) -> io::Result<File> {
    // A FIFO must not hang the start, a terminal must not become ours.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let flags = match links {
        Links::Follow => flags,
        Links::Refuse => flags | libc::O_NOFOLLOW,
    };
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// A directory that must exist, without links.
pub(crate) fn canonical(path: &Path) -> Result<AbsPath, ConfigError> {
    let failed = |source| ConfigError::Read {
        path: path.to_owned(),
        source,
    };
    let real = std::fs::canonicalize(path).map_err(failed)?;
    AbsPath::new(real).map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidInput, error)))
}
