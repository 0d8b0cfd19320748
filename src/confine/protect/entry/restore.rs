//! Putting entries back as they were.
//!
//! Nothing is written through what the agent left: a file is made anew under a name of our own in the
//! directory, reached without links, and renamed into place. So a file that had other hard links gets an
//! inode of its own, and the other links keep what the command wrote to them.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::fcntl::{OFlag, RenameFlags, openat, renameat, renameat2};
use nix::sys::stat::{FchmodatFlags, Mode, fchmod, fchmodat, futimens, mkdirat};
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, mkfifoat, symlinkat, unlinkat};

use super::super::error::ProtectError;
use super::super::roots::{Root, absolute};
use super::super::storage::quarantine::Quarantine;
use super::super::storage::store::temporary_name;
use super::super::violation::Effect;
use super::nofollow::{self, join, split};
use super::state::State;
use super::subtree;

/// Creates the entry `path` and its parents; returns what stood in the way, now in quarantine.
pub(crate) fn recreate(
    root: &Root,
    path: &[u8],
    state: &State,
    quarantine: &mut Quarantine,
) -> Result<Option<PathBuf>, ProtectError> {
    let obstacle = create_parents(root, split(path).0, quarantine)?;
    match create(root, path, state) {
        Ok(()) => Ok(obstacle),
        Err(error) => Err(ProtectError::io("restore", absolute(root, path), error)),
    }
}

/// Replaces the entry `path` by a file, and moves the old one to quarantine.
///
/// In one step where the file system can exchange two names: git never finds less than one of them there.
pub(crate) fn replace(
    root: &Root,
    path: &[u8],
    state: &State,
    kind: Effect,
    quarantine: &mut Quarantine,
) -> Result<Option<PathBuf>, ProtectError> {
    let fail = |error| ProtectError::io("rewrite", absolute(root, path), error);
    let temporary = join(split(path).0, temporary_name().as_bytes());
    create(root, &temporary, state).map_err(fail)?;
    let (source, target) = ((root, temporary.as_slice()), (root, path));
    match rename(source, target, RenameFlags::RENAME_EXCHANGE) {
        Ok(()) => quarantine.take_from(root, &temporary, path, kind),
        Err(Errno::EINVAL | Errno::ENOSYS) => {
            let taken = quarantine.take(root, path, kind).inspect_err(|_| {
                // The first error is the one that counts.
                let _gone = subtree::remove(root, &temporary);
            })?;
            rename(source, target, RenameFlags::empty()).map_err(fail)?;
            Ok(taken)
        }
        Err(error) => {
            // Nothing may stay behind in the tree; the first error is the one that counts.
            let _gone = subtree::remove(root, &temporary);
            Err(fail(error))
        }
    }
}

/// Whether it can be created again: a socket belongs to the process that bound it, and a device needs privileges.
pub(crate) fn can_be_created(state: &State) -> bool {
    match state {
        State::File { .. } | State::Symlink { .. } | State::Directory { .. } => true,
        State::Special { mode, .. } => mode & libc::S_IFMT == libc::S_IFIFO,
        State::Ignored => false,
    }
}

/// Creates the entry `path` in an existing directory.
pub(crate) fn create(root: &Root, path: &[u8], state: &State) -> nix::Result<()> {
    let (directory, name) = split(path);
    nofollow::as_owner(&root.fd, directory, None, || {
        let parent = nofollow::open_path(&root.fd, directory)?;
        match state {
            State::File {
                mode,
                modified,
                content,
                links: _,
            } => {
                let times = TimeSpec::new(modified.seconds, modified.nanoseconds);
                put_file(&parent, name, Mode::from_bits_truncate(*mode), times, content)
            }
            State::Symlink { target } => symlinkat(target.as_slice(), &parent, name),
            State::Directory { mode } => {
                mkdirat(&parent, name, Mode::S_IRWXU)?;
                fchmodat(
                    &parent,
                    name,
                    Mode::from_bits_truncate(*mode),
                    FchmodatFlags::NoFollowSymlink,
                )
            }
            State::Special { mode, .. } if can_be_created(state) => {
                mkfifoat(&parent, name, Mode::from_bits_truncate(mode & 0o7777))
            }
            State::Special { .. } | State::Ignored => Err(Errno::EOPNOTSUPP),
        }
    })
}

fn put_file(parent: &OwnedFd, name: &[u8], mode: Mode, modified: TimeSpec, content: &[u8]) -> nix::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = format!("{}-{count}", temporary_name());
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(
        parent,
        temporary.as_str(),
        flags,
        Mode::S_IRUSR | Mode::S_IWUSR,
    )?);
    let written = file
        .write_all(content)
        .map_err(nofollow::errno)
        .and_then(|()| fchmod(&file, mode))
        .and_then(|()| futimens(&file, &TimeSpec::UTIME_OMIT, &modified))
        .and_then(|()| renameat(parent, temporary.as_str(), parent, name));
    if written.is_err() {
        // Nothing may stay behind in the tree; the first error is the one that counts.
        let _gone = unlinkat(parent, temporary.as_str(), UnlinkatFlags::NoRemoveDir);
    }
    written
}

/// Writes what a file holds anew, in the file that is there. Whoever reads it meanwhile finds the old text or the new one, as far
/// as one write goes.
pub(crate) fn overwrite(root: &Root, path: &[u8], state: &State) -> Result<(), ProtectError> {
    let State::File { content, .. } = state else {
        return Err(ProtectError::io("write", absolute(root, path), Errno::EINVAL));
    };
    let (directory, name) = split(path);
    let written = nofollow::as_owner(&root.fd, directory, Some(name), || {
        let parent = nofollow::open_path(&root.fd, directory)?;
        let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(&parent, name, flags, Mode::empty())?);
        let found = file.metadata().map_err(nofollow::errno)?;
        // Its other hard link may be another file of a person.
        if !found.is_file() || found.nlink() > 1 {
            return Err(Errno::ESTALE);
        }
        let long = usize::try_from(found.len()).map_err(|_| Errno::EFBIG)?;
        // Blank lines behind the shorter text, so that one write makes the one the other. Room for them is had first.
        let blank = vec![b'\n'; content.len().saturating_sub(long)];
        if let Err(error) = file.write_all_at(&blank, found.len()) {
            let _as_it_was = file.set_len(found.len());
            return Err(nofollow::errno(error));
        }
        let mut padded = content.clone();
        padded.resize(content.len().max(long), b'\n');
        file.write_all_at(&padded, 0).map_err(nofollow::errno)?;
        file.set_len(content.len() as u64).map_err(nofollow::errno)
    });
    written.map_err(|error| ProtectError::io("write", absolute(root, path), error))
}

/// Sets the permission bits of the entry `path`, which is otherwise as it was.
pub(crate) fn set_mode(root: &Root, path: &[u8], mode: u32) -> Result<(), ProtectError> {
    let (directory, name) = split(path);
    let set = nofollow::as_owner(&root.fd, directory, None, || {
        let parent = nofollow::open_path(&root.fd, directory)?;
        fchmodat(
            &parent,
            name,
            Mode::from_bits_truncate(mode),
            FchmodatFlags::NoFollowSymlink,
        )
    });
    set.map_err(|error| ProtectError::io("restore the mode of", absolute(root, path), error))
}

/// Creates the directory `path` and its parents; returns what stood in the way, now in quarantine.
pub(crate) fn create_parents(
    root: &Root,
    path: &[u8],
    quarantine: &mut Quarantine,
) -> Result<Option<PathBuf>, ProtectError> {
    let mut obstacle = None;
    if path.is_empty() || nofollow::open_path(&root.fd, path).is_ok() {
        return Ok(obstacle);
    }
    let mut done = Vec::new();
    for name in path.split(|&b| b == b'/') {
        let next = join(&done, name);
        match nofollow::as_owner(&root.fd, &done, None, || nofollow::stat(&root.fd, &next)) {
            Ok(found) if nofollow::kind(&found) == libc::S_IFDIR => {}
            Ok(_) => {
                obstacle = quarantine.take(root, &next, Effect::Created)?;
                make_directory(root, &done, &next)?;
            }
            Err(Errno::ENOENT) => make_directory(root, &done, &next)?,
            Err(error) => return Err(ProtectError::io("look at", absolute(root, &next), error)),
        }
        done = next;
    }
    Ok(obstacle)
}

fn make_directory(root: &Root, parent: &[u8], path: &[u8]) -> Result<(), ProtectError> {
    let made = nofollow::as_owner(&root.fd, parent, None, || {
        let mode = Mode::S_IRWXU | Mode::S_IRGRP | Mode::S_IXGRP | Mode::S_IROTH | Mode::S_IXOTH;
        mkdirat(nofollow::open_path(&root.fd, parent)?, split(path).1, mode)
    });
    made.map_err(|error| ProtectError::io("make", absolute(root, path), error))
}

/// Moves an entry, over nothing or in exchange.
pub(crate) fn rename(from: (&Root, &[u8]), to: (&Root, &[u8]), how: RenameFlags) -> nix::Result<()> {
    let (from_directory, from_name) = split(from.1);
    let (to_directory, to_name) = split(to.1);
    nofollow::as_owner(&from.0.fd, from_directory, Some(from_name), || {
        nofollow::as_owner(&to.0.fd, to_directory, None, || {
            let from_parent = nofollow::open_path(&from.0.fd, from_directory)?;
            let to_parent = nofollow::open_path(&to.0.fd, to_directory)?;
            renameat2(&from_parent, from_name, &to_parent, to_name, how)
        })
    })
}

/// Whether something that is no directory stands above an entry.
pub(crate) fn is_blocked(root: &Root, path: &[u8]) -> bool {
    let mut above = split(path).0;
    while !above.is_empty() {
        match nofollow::stat(&root.fd, above) {
            Ok(found) => return nofollow::kind(&found) != libc::S_IFDIR,
            Err(Errno::ENOENT) => above = split(above).0,
            Err(_) => return true,
        }
    }
    false
}
