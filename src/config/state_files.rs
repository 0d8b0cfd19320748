//! Files of Stockade's own in the user's state directory: read only if nobody else can have written them, replaced all
//! at once.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::context::Context;
use crate::policy::AbsPath;

/// No link is followed, and nothing that is no file keeps us waiting.
const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;

/// The directory of Stockade's own state; `None` for a user without a passwd entry.
pub fn state_dir(context: &Context) -> Option<AbsPath> {
    let home = context.home.as_ref()?;
    [".local", "state", "stockade"]
        .iter()
        .try_fold(home.clone(), |dir, name| dir.child(name))
}

/// The content of such a file, up to a bound.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(FLAGS).open(path)?;
    let found = file.metadata()?;
    verify_private(found.is_file(), found.uid(), found.mode() & 0o077)?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts these bytes in the place of the file's content. Its directory must be [`create_directory`].
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // tempfile makes it 0600, under a name of its own, following nothing.
    let mut temporary = tempfile::NamedTempFile::new_in(dir)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    File::open(dir)?.sync_all()
}

/// The same through a file of this name beside it, which whoever holds the turn to write has for themselves: nothing else is
/// left behind by one who is killed. That the new one is found after a power cut is for the caller to see to.
pub(crate) fn replace_via(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.custom_flags(FLAGS).open(temporary)?;
    let found = file.metadata()?;
    verify_private(found.is_file(), found.uid(), found.mode() & 0o077)?;
    file.set_len(0)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(temporary, path)
}

/// Makes the directory where it is missing, with all above it, and looks whether it is ours.
pub(crate) fn create_directory(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    verify_own_directory(dir)
}

/// The same in a directory that is there.
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

/// A file that records are added to, made where it is missing.
pub(crate) fn open_or_create_to_append(path: &Path) -> io::Result<File> {
    open_append(path, OpenOptions::new().create(true).mode(0o600))
}

/// The same where it is there already.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    open_append(path, &mut OpenOptions::new())
}

fn open_append(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.read(true).append(true).custom_flags(FLAGS).open(path)?;
    let found = file.metadata()?;
    verify_private(found.is_file(), found.uid(), found.mode() & 0o077)?;
    if found.nlink() != 1 {
        let message = "it has another name as well, by which it could be written";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(file)
}

/// A file to be looked at, whoever wrote it.
pub(crate) fn open_to_read(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(FLAGS).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
}

/// A file to be locked, made where it is missing.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.custom_flags(FLAGS).open(path)?;
    let found = file.metadata()?;
    verify_private(found.is_file(), found.uid(), found.mode() & 0o077)?;
    Ok(file)
}

/// Whether an open file is what the path leads to now.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    let there = std::fs::symlink_metadata(path);
    let ours = file.metadata();
    there.is_ok_and(|there| ours.is_ok_and(|ours| there.dev() == ours.dev() && there.ino() == ours.ino()))
}

/// What somebody else could have written says nothing.
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
