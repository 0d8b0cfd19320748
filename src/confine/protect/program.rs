//! The program of this session itself, where it lies in a writable root.
//!
//! It is put back like a protected name, also below `target`, and is never a reason to refuse: it may be larger than what a
//! journal holds, so a copy lies in the store, made once for each build. Where none can be made the program is left alone.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use std::io::Read;

use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, fchmod, fstat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use std::os::unix::ffi::OsStrExt;

use super::entry::nofollow::{self, Identity, errno, split};
use super::entry::restore::{create_parents, set_mode};
use super::error::ProtectError;
use super::roots::{Root, RootPath, root_number, root_of};
use super::storage::quarantine::Quarantine;
use super::storage::store::{folder, remove_oldest, temporary_name, unique_name};
use super::violation::Effect;

/// The folder of copies in the store.
const COPIES: &str = "programs";
/// How many copies are kept.
const MAX_COPIES: usize = 3;

/// The program as it was.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Program {
    /// Where it was, from `/` on.
    path: PathBuf,
    stamp: Stamp,
    mode: u32,
}

/// What tells one build from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Stamp {
    identity: Identity,
    length: i64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(stat: &FileStat) -> Self {
        Self {
            identity: Identity::of(stat),
            length: stat.st_size,
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

impl Program {
    /// Has a copy of the program, where it lies in a root and one can be made.
    pub(super) fn save(path: &Path, roots: &[Root], store: &Path) -> Option<Self> {
        let (root, below) = root_of(roots, path)?;
        let file = nofollow::open_file(&root.fd, below.as_os_str().as_bytes()).ok()?;
        let found = fstat(&file).ok()?;
        let program = Self {
            path: path.to_owned(),
            stamp: Stamp::of(&found),
            mode: nofollow::permissions(&found),
        };
        let copies = folder(store, COPIES).ok()?;
        let copy = program.copy(store);
        if !copy.exists() {
            make_copy(File::from(file), &copies, &copy).ok()?;
            remove_oldest(&copies, MAX_COPIES, Some(&copy));
        }
        Some(program)
    }

    /// Whether it is the same file as another session has.
    pub(super) fn is_same_path(&self, other: &Self) -> bool {
        self.path == other.path
    }

    fn copy(&self, store: &Path) -> PathBuf {
        let Stamp {
            identity,
            length,
            changed,
        } = self.stamp;
        let name = format!(
            "{:x}-{:x}-{length:x}-{:x}-{:x}",
            identity.device, identity.inode, changed.0, changed.1
        );
        store.join(COPIES).join(name)
    }
}

/// An undone change to the program.
pub(super) struct Restored {
    /// Where it is.
    pub(super) location: RootPath,
    pub(super) kind: Effect,
    /// Where what lay there is kept.
    pub(super) quarantined: Option<PathBuf>,
}

impl Program {
    /// Restores the program where a command changed it, and returns what was undone.
    pub(super) fn restore(
        &self,
        roots: &[Root],
        store: &Path,
        quarantine: &mut Quarantine,
    ) -> Result<Option<Restored>, ProtectError> {
        let Some((root_number, below)) = root_number(roots, &self.path) else {
            return Ok(None);
        };
        let (root, path) = (&roots[usize::from(root_number)], below.as_os_str().as_bytes());
        let now = nofollow::stat(&root.fd, path);
        if now.as_ref().is_ok_and(|now| Stamp::of(now) == self.stamp) {
            return Ok(None);
        }
        // Without a copy it cannot be restored, which is no reason to refuse work.
        let Ok(copy) = File::open(self.copy(store)) else {
            return Ok(None);
        };
        let fail = |step| move |error| ProtectError::io(step, self.path.clone(), error);
        let is_same = has_content_of(root, path, self, &copy);
        if is_same && now.as_ref().is_ok_and(|now| nofollow::permissions(now) == self.mode) {
            return Ok(None);
        }
        let kind = if now.is_ok() { Effect::Changed } else { Effect::Removed };
        let mut quarantined = None;
        if is_same {
            set_mode(root, path, self.mode)?;
        } else {
            if kind == Effect::Changed {
                quarantined = quarantine.take(root, path, kind)?;
            }
            create_parents(root, split(path).0, quarantine)?;
            write_program(root, path, self.mode, &copy).map_err(fail("restore"))?;
        }
        let location = (root_number, path.to_vec());
        Ok(Some(Restored {
            location,
            kind,
            quarantined,
        }))
    }
}

/// Whether the content is the same; a build may hard-link it, which changes its stamp.
fn has_content_of(root: &Root, path: &[u8], program: &Program, copy: &File) -> bool {
    let same = || -> nix::Result<bool> {
        let file = nofollow::open_file(&root.fd, path)?;
        let found = fstat(&file)?;
        if found.st_size != program.stamp.length {
            return Ok(false);
        }
        let (mut one, mut other) = (File::from(file), copy.try_clone().map_err(errno)?);
        let mut buffers = [vec![0; 1 << 20], vec![0; 1 << 20]];
        loop {
            let [ours, theirs] = &mut buffers;
            let read = one.read(ours).map_err(errno)?;
            if read == 0 {
                return Ok(true);
            }
            other.read_exact(&mut theirs[..read]).map_err(errno)?;
            if ours[..read] != theirs[..read] {
                return Ok(false);
            }
        }
    };
    same().unwrap_or(false)
}

/// Writes the copy beside the place and renames it there.
fn write_program(root: &Root, path: &[u8], mode: u32, copy: &File) -> nix::Result<()> {
    let (directory, name) = split(path);
    nofollow::as_owner(&root.fd, directory, None, || {
        let parent = nofollow::open_path(&root.fd, directory)?;
        let temporary = temporary_name();
        let done = write_temporary(&parent, &temporary, mode, copy)
            .and_then(|()| renameat(&parent, temporary.as_str(), &parent, name));
        if done.is_err() {
            // Nothing may stay behind in the tree; the first error is the one that counts.
            let _gone = unlinkat(&parent, temporary.as_str(), UnlinkatFlags::NoRemoveDir);
        }
        done
    })
}

fn write_temporary(parent: &OwnedFd, temporary: &str, mode: u32, copy: &File) -> nix::Result<()> {
    use std::io::{Seek as _, SeekFrom};
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(parent, temporary, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    let mut from = copy.try_clone().map_err(errno)?;
    from.seek(SeekFrom::Start(0)).map_err(errno)?;
    std::io::copy(&mut from, &mut file).map_err(errno)?;
    fchmod(&file, Mode::from_bits_truncate(mode))
}

fn make_copy(mut from: File, copies: &Path, copy: &Path) -> std::io::Result<()> {
    let temporary = copies.join(unique_name());
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    let made = options.open(&temporary).and_then(|mut file| {
        std::io::copy(&mut from, &mut file)?;
        file.set_permissions(PermissionsExt::from_mode(0o400))?;
        std::fs::rename(&temporary, copy)
    });
    if made.is_err() {
        // A full disk is no place for half a copy.
        let _gone = std::fs::remove_file(&temporary);
    }
    made
}
