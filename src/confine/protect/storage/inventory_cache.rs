//! Inventories of earlier walks, kept in the store so that a start reads only what has changed.
//!
//! Looking at a directory costs a tenth of reading it. The file is no authority on what is protected or
//! unchanged: it only says which change time each directory had when it was read, and [`super::super::tree::walk`]
//! compares that with the directory's own. It lies outside every root, as the journal does, which an agent
//! that could write there would rather forge. One that is missing, of another version, or damaged is
//! as if there were none.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::entry::nofollow::Identity;
use super::super::error::ProtectError;
use super::super::naming::names::{Names, THIRD_PARTY};
use super::super::tree::inventory::Inventory;
use super::store::{folder, remove_oldest};
use crate::policy::hex::hex;

/// Changes with the format of the file.
const FORMAT: &str = "stockade known directories 6";

/// How many sets of roots are remembered.
const MAX_INVENTORIES: usize = 64;

/// The inventory of a settled guard.
#[derive(Debug)]
pub struct CachedInventory {
    pub(crate) roots: Vec<(Vec<u8>, Identity)>,
    pub(crate) extra: Vec<PathBuf>,
    pub(crate) names: Names,
    pub(crate) inventory: Inventory,
}

impl CachedInventory {
    /// Writes it down for the next process where that spares enough reading.
    pub(crate) fn save_if_worth(&mut self, store: &Path) {
        // A failure only costs the next start some reading.
        let save = || save(store, &self.roots, &self.extra, &self.names, &self.inventory);
        if self.inventory.is_worth_saving() && save().is_ok() {
            self.inventory.reread = 0;
        }
    }
}

/// What an inventory depends on: nodes of the pattern tree are numbers that mean something only with these.
fn key(roots: &[(Vec<u8>, Identity)], extra: &[PathBuf], names: &Names) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(FORMAT);
    hash.update(env!("CARGO_PKG_VERSION"));
    for name in names.patterns().chain(THIRD_PARTY) {
        hash.update(name);
        hash.update([0]);
    }
    // Serialising to memory fails for no value of these types; a shorter key would only be another key.
    hash.update(postcard::to_stdvec(&(roots, extra)).unwrap_or_default());
    hash.finalize().into()
}

fn path(folder: &Path, key: &[u8; 32]) -> PathBuf {
    folder.join(hex(&key[..16]))
}

/// The last inventory of these roots, if there is an intact one.
pub(crate) fn load(store: &Path, roots: &[(Vec<u8>, Identity)], extra: &[PathBuf], names: &Names) -> Option<Inventory> {
    let key = key(roots, extra, names);
    let bytes = std::fs::read(path(&store.join("known"), &key)).ok()?;
    let (digest, body) = bytes.split_at_checked(32)?;
    if digest != checksum(&key, body) {
        return None;
    }
    postcard::from_bytes(body).ok()
}

/// Saves an inventory for the next start.
pub(crate) fn save(
    store: &Path,
    roots: &[(Vec<u8>, Identity)],
    extra: &[PathBuf],
    names: &Names,
    inventory: &Inventory,
) -> Result<(), ProtectError> {
    let key = key(roots, extra, names);
    let folder = folder(store, "known")?;
    let target = path(&folder, &key);
    let unfinished = folder.join(super::store::unique_name());
    let written = postcard::to_stdvec(inventory)
        .map_err(std::io::Error::other)
        .and_then(|body| {
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(&checksum(&key, &body))?;
            file.write_all(&body)?;
            std::fs::rename(&unfinished, &target)
        });
    remove_oldest(&folder, MAX_INVENTORIES, None);
    written.map_err(ProtectError::failed("write", &target))
}

/// A checksum that exposes a truncated file, or one of another key.
fn checksum(key: &[u8; 32], body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update(body);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_the_newest_inventories_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MAX_INVENTORIES + 5 {
            let file = std::fs::File::create(folder.path().join(number.to_string())).unwrap();
            let age = std::time::Duration::from_secs(1000 - u64::try_from(number).unwrap());
            file.set_modified(SystemTime::now() - age).unwrap();
        }
        remove_oldest(folder.path(), MAX_INVENTORIES, None);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), MAX_INVENTORIES);
        assert!(!folder.path().join("4").exists());
        assert!(folder.path().join("5").exists());
    }
}
