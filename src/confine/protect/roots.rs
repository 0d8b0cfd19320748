//! The writable roots, each held open from before the command starts.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fchmod, fstat};

use super::entry::nofollow::{self, Identity};
use super::error::ProtectError;
use super::naming::class::Context;
use super::naming::patterns::Patterns;

/// A path in a root: the number of the root and the path below it.
pub(super) type RootPath = (u16, Vec<u8>);

/// A writable root.
#[derive(Debug)]
pub(in crate::confine) struct Root {
    pub(super) path: PathBuf,
    pub(super) fd: OwnedFd,
    pub(super) identity: Identity,
    /// Its permission bits before the command.
    pub(super) mode: u32,
    pub(super) context: Context,
}

impl Root {
    /// Gives the owner all rights on the root, which a command may have taken; returns whether any were missing.
    pub(super) fn grant_owner(&self) -> bool {
        let Ok(found) = fstat(&self.fd) else { return false };
        let now = nofollow::permissions(&found);
        // Where it is not ours to change, the work itself will say what fails.
        now & 0o700 != 0o700 && fchmod(&self.fd, Mode::from_bits_truncate(now | 0o700)).is_ok()
    }

    /// Restores the mode if a running command has closed the root to us.
    pub(super) fn restore_mode_if_closed(&self) {
        let now = fstat(&self.fd).map(|found| nofollow::permissions(&found));
        // Where that fails, what cannot be looked at is not trusted.
        if now.is_ok_and(|now| now & 0o700 != 0o700 && now != self.mode) {
            let _shut = self.restore_mode();
        }
    }

    /// Restores the mode that it had before the command.
    pub(super) fn restore_mode(&self) -> Result<(), ProtectError> {
        fchmod(&self.fd, Mode::from_bits_truncate(self.mode))
            .map_err(|error| ProtectError::io("restore the mode of", self.path.clone(), error))
    }
}

/// The absolute path of an entry of a root.
pub(super) fn absolute(root: &Root, path: &[u8]) -> PathBuf {
    if path.is_empty() {
        root.path.clone()
    } else {
        root.path.join(OsStr::from_bytes(path))
    }
}

/// Gives the owner his rights on a root that cannot be opened for want of them, if it is still that directory;
/// whether it did.
pub(super) fn unlock(path: &Path, identity: Identity) -> bool {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let Ok(fd) = open(path, flags, Mode::empty()) else {
        return false;
    };
    let Ok(found) = fstat(&fd) else { return false };
    let mode = nofollow::permissions(&found);
    if Identity::of(&found) != identity || mode & 0o700 == 0o700 {
        return false;
    }
    // A mere place cannot be changed by its descriptor, only by the descriptor's name.
    let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode | 0o700);
    std::fs::set_permissions(name, mode).is_ok()
}

/// Opens the roots; one inside another is covered by it, and one that is not a directory can hold no names.
///
/// Each file of `extra` that lies in a root is added to the patterns; a root that lies in one is protected whole.
pub(super) fn open_roots(
    paths: &[PathBuf],
    extra: &[PathBuf],
    patterns: &mut Patterns,
) -> Result<Vec<Root>, ProtectError> {
    let mut sorted: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    sorted.sort();
    sorted.dedup();
    let mut roots: Vec<Root> = Vec::new();
    for path in sorted {
        if roots.iter().any(|root| path.starts_with(&root.path)) {
            continue;
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = match open(path, flags, Mode::empty()) {
            Ok(fd) => fd,
            // O_NOFOLLOW gives the same error for a symlink, which must not pass for a file.
            Err(Errno::ENOTDIR) if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) => continue,
            Err(error) => return Err(ProtectError::io("open", path.to_owned(), error)),
        };
        let stat = fstat(&fd).map_err(|error| ProtectError::io("look at", path.to_owned(), error))?;
        let node = patterns.add_root();
        let mut context = patterns.root_context(node, path);
        for file in extra {
            if path.starts_with(file) {
                context = context.protected();
            } else if let Ok(below) = file.strip_prefix(path) {
                patterns.protect(node, below.as_os_str().as_bytes());
            }
        }
        roots.push(Root {
            path: path.to_owned(),
            fd,
            identity: Identity::of(&stat),
            mode: nofollow::permissions(&stat),
            context,
        });
    }
    Ok(roots)
}

/// The root a path lies in, and its path there.
pub(super) fn root_of<'a>(roots: &'a [Root], path: &'a Path) -> Option<(&'a Root, &'a Path)> {
    let (number, below) = root_number(roots, path)?;
    Some((&roots[usize::from(number)], below))
}

/// The number of the root a path lies in, and its path there.
pub(super) fn root_number<'a>(roots: &[Root], path: &'a Path) -> Option<(u16, &'a Path)> {
    (0..).zip(roots).find_map(|(root_number, root)| {
        let below = path.strip_prefix(&root.path).ok()?;
        (!below.as_os_str().is_empty()).then_some((root_number, below))
    })
}
