//! What earlier walks saw, kept in the store, so that a start reads only what has changed.
//!
//! Looking at a directory costs a tenth of reading it. The file is no authority on what is protected or
//! unchanged: it only says which change time each directory had when it was read, and [`super::walk`]
//! compares that with the directory's own. It lies outside every root, as the journal does, which an agent
//! that could write there would rather forge. One that is missing, of another version, or damaged is
//! as if there were none.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::ProtectError;
use super::at::Identity;
use super::journal::folder;
use super::names::NAMES;
use super::sight::Sight;

/// Changes with the format of the file.
const FORMAT: &str = "stockade known directories 1";

/// What a sight depends on: nodes of the pattern tree are numbers that mean something only with these.
fn key(roots: &[(Vec<u8>, Identity)], extra: &[PathBuf]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(FORMAT);
    hash.update(env!("CARGO_PKG_VERSION"));
    for name in NAMES {
        hash.update(name.pattern);
        hash.update([0]);
    }
    // Serialising to memory fails for no value of these types; a shorter key would only be another key.
    hash.update(postcard::to_stdvec(&(roots, extra)).unwrap_or_default());
    hash.finalize().into()
}

fn path(folder: &Path, key: &[u8; 32]) -> PathBuf {
    use std::fmt::Write as _;
    let mut name = String::new();
    for byte in &key[..16] {
        // Writing to a String cannot fail.
        let _infallible = write!(name, "{byte:02x}");
    }
    folder.join(name)
}

/// What the last guard of these roots saw, if it is there and whole.
pub(super) fn load(store: &Path, roots: &[(Vec<u8>, Identity)], extra: &[PathBuf]) -> Option<Sight> {
    let key = key(roots, extra);
    let bytes = std::fs::read(path(&store.join("known"), &key)).ok()?;
    let (digest, body) = bytes.split_at_checked(32)?;
    if digest != seal(&key, body) {
        return None;
    }
    postcard::from_bytes(body).ok()
}

/// Keeps what a guard saw for the next start.
pub(super) fn save(
    store: &Path,
    roots: &[(Vec<u8>, Identity)],
    extra: &[PathBuf],
    sight: &Sight,
) -> Result<(), ProtectError> {
    let key = key(roots, extra);
    let folder = folder(store, "known")?;
    let target = path(&folder, &key);
    let unfinished = folder.join(super::stamp());
    let written = postcard::to_stdvec(sight)
        .map_err(std::io::Error::other)
        .and_then(|body| {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(&seal(&key, &body))?;
            file.write_all(&body)?;
            std::fs::rename(&unfinished, &target)
        });
    written.map_err(|source| ProtectError::Io {
        step: "write",
        path: target,
        source,
    })
}

/// Tells a file cut short or written for something else.
fn seal(key: &[u8; 32], body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update(body);
    hash.finalize().into()
}
