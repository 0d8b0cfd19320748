//! Stockade's own files in the user's state directory: read only if nobody else can have written them, and replaced
//! atomically.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::context::Context;
use crate::policy::AbsPath;

/// Follows no link, and does not block on a FIFO.
const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;

/// The directory of Stockade's own state; `None` for a user without a passwd entry.
pub fn state_dir(context: &Context) -> Option<AbsPath> {
    let home = context.home.as_ref()?;
    [".local", "state", "stockade"]
        .iter()
        .try_fold(home.clone(), |dir, name| dir.child(name))
}

/// Reads such a file, up to a bound.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_private(path, OpenOptions::new().read(true))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces a file atomically. Its directory must be made by [`create_directory`].
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // tempfile makes it 0600, under a name of its own, following nothing.
    let mut temporary = tempfile::NamedTempFile::new_in(dir)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    File::open(dir)?.sync_all()
}

/// Replaces a file by renaming `temporary`, which the caller must hold a lock for: a killed process leaves nothing else behind.
/// The caller syncs the directory.
pub(crate) fn replace_via(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open_lock(temporary)?;
    file.set_len(0)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(temporary, path)
}

/// Creates a directory with its parents if it is missing, and verifies that it is private.
pub(crate) fn create_directory(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    verify_own_directory(dir)
}

/// Creates a directory in an existing one if it is missing, and verifies that it is private.
pub(crate) fn create_subdirectory(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => verify_own_directory(dir),
    }
}

fn verify_own_directory(dir: &Path) -> io::Result<()> {
    let found = std::fs::symlink_metadata(dir)?;
    verify_private(found.is_dir(), found.uid(), found.mode() & 0o022)
}

/// Opens a file to append to it, and creates it if it is missing.
pub(crate) fn open_or_create_to_append(path: &Path) -> io::Result<File> {
    open_append(path, OpenOptions::new().create(true).mode(0o600))
}

/// Opens an existing file to append to it.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    open_append(path, &mut OpenOptions::new())
}

fn open_append(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = open_private(path, options.read(true).append(true))?;
    if file.metadata()?.nlink() != 1 {
        let message = "it has another name as well, by which it could be written";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(file)
}

/// Opens a file to read it, whoever wrote it.
pub(crate) fn open_to_read(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(FLAGS).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
}

/// Opens a file to lock it, and creates it if it is missing.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    open_private(path, options.write(true).create(true).truncate(false).mode(0o600))
}

/// Whether an open file is what the path leads to now.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    let there = std::fs::symlink_metadata(path);
    let ours = file.metadata();
    there.is_ok_and(|there| ours.is_ok_and(|ours| there.dev() == ours.dev() && there.ino() == ours.ino()))
}

fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.custom_flags(FLAGS).open(path)?;
    let found = file.metadata()?;
    verify_private(found.is_file(), found.uid(), found.mode() & 0o077)?;
    Ok(file)
}

/// Refuses what somebody else could have written.
fn verify_private(right_kind: bool, owner: u32, open_to_others: u32) -> io::Result<()> {
    let message = if !right_kind {
        "it is not what stockade made"
    } else if owner != nix::unistd::Uid::effective().as_raw() {
        "it belongs to another user"
    } else if open_to_others != 0 {
        "others can reach it: its mode must be 0600, its directory's 0700"
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}
