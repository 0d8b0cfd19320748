//! Stockade's private folders, outside of every root.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::super::error::ProtectError;

/// Does what needs a private folder of the store; makes that first where it is not there.
pub(crate) fn in_folder<T>(
    store: &Path,
    name: &str,
    work: impl Fn(PathBuf) -> io::Result<T>,
) -> Result<io::Result<T>, ProtectError> {
    match work(store.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(work(folder(store, name)?)),
        done => Ok(done),
    }
}

/// A private folder of the store.
pub(crate) fn folder(store: &Path, name: &str) -> Result<PathBuf, ProtectError> {
    let path = store.join(name);
    let created = DirBuilder::new().recursive(true).mode(0o700).create(&path);
    created.map_err(ProtectError::failed("create", &path))?;
    Ok(path)
}

/// A name for what is built beside a protected entry before it takes its place.
pub(crate) fn temporary_name() -> String {
    format!(".stockade-restore-{}", unique_name())
}

/// Removes the oldest files of a folder, so that `most` stay; `own` stays however old it is. One that cannot be removed only costs room.
pub(crate) fn remove_oldest(folder: &Path, most: usize, own: Option<&Path>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .flatten()
        .filter(|entry| own != Some(entry.path().as_path()))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort();
    let old = files.len().saturating_sub(most - usize::from(own.is_some()));
    for (_, path) in &files[..old] {
        let _stays = std::fs::remove_file(path);
    }
}

/// A name that sorts by time and is this process's own.
pub(crate) fn unique_name() -> String {
    let now = SystemTime::now();
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!(
        "{:012}{:09}-{}",
        since.as_secs(),
        since.subsec_nanos(),
        std::process::id()
    )
}
