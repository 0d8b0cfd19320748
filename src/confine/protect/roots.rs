//! The writable roots, each held open from before the command starts.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};

use super::ProtectError;
use super::at::Identity;
use super::place::{Context, Patterns};

/// A writable root.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    pub(super) fd: OwnedFd,
    pub(super) identity: Identity,
    pub(super) context: Context,
}

/// Opens the roots; one inside another is covered by it, and one that is not a directory can hold no names.
///
/// Each file of `extra` that lies in a root is added to the patterns.
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
            // What O_NOFOLLOW says of a symlink too, which must not pass for a file.
            Err(Errno::ENOTDIR) if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) => continue,
            Err(error) => return Err(ProtectError::io("open", path.to_owned(), error)),
        };
        let stat = fstat(&fd).map_err(|error| ProtectError::io("look at", path.to_owned(), error))?;
        let node = patterns.root();
        for file in extra {
            if let Ok(below) = file.strip_prefix(path)
                && !below.as_os_str().is_empty()
            {
                patterns.protect(node, below.as_os_str().as_bytes());
            }
        }
        roots.push(Root {
            path: path.to_owned(),
            fd,
            identity: Identity::of(&stat),
            context: patterns.start(node, path.as_os_str().as_bytes()),
        });
    }
    Ok(roots)
}
