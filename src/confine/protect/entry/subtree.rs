//! Copying and removing whole subtrees: what a rename cannot do between file systems.
//!
//! Neither lets depth or size cost more than it should: a copy has a budget, and the removal moves directories
//! up while it goes, so that no path in it is long. Nothing follows a link.

use std::cell::Cell;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, openat, readlinkat, renameat, renameat2};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use super::super::roots::Root;
use super::nofollow::{self, join, split};
use crate::confine::sys;

/// What one settlement may still copy.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Bytes, by length: a sparse file becomes a full one.
    bytes: u64,
    entries: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            bytes: 64 * 1024 * 1024,
            entries: 10_000,
        }
    }
}

/// Bytes of paths listed at once.
const MAX_PATHS: usize = 32 * 1024 * 1024;

/// Everything at and below `path`, at most `most`, parents first, each with whether it is a directory.
pub(crate) fn list(root: &Root, path: &[u8], most: usize) -> nix::Result<Vec<(Vec<u8>, bool)>> {
    let found = nofollow::as_owner(&root.fd, split(path).0, None, || nofollow::stat(&root.fd, path))?;
    let is_directory = nofollow::kind(&found) == libc::S_IFDIR;
    let mut all = vec![(path.to_vec(), is_directory)];
    let mut index = 0;
    // Every entry is held by its whole path, which long names far down would make many gigabytes.
    let mut left = MAX_PATHS;
    while let Some((path, is_directory)) = all.get(index).cloned() {
        index += 1;
        if !is_directory {
            continue;
        }
        for (name, is_directory) in nofollow::as_owner(&root.fd, &path, None, || children(root, &path, most))? {
            let below = join(&path, &name);
            left = left.checked_sub(below.len()).ok_or(Errno::E2BIG)?;
            all.push((below, is_directory));
        }
        if all.len() > most {
            return Err(Errno::E2BIG);
        }
    }
    Ok(all)
}

/// What the directory holds, each with whether it is a directory.
fn children(root: &Root, path: &[u8], most: usize) -> nix::Result<Vec<(Vec<u8>, bool)>> {
    let fd = nofollow::open_directory(&root.fd, path)?;
    let (mut buffer, mut all) = (vec![0; 64 * 1024], Vec::new());
    loop {
        let read = sys::getdents(&fd, &mut buffer)?;
        if read == 0 {
            return Ok(all);
        }
        for name in sys::names(&buffer[..read]) {
            let found = fstatat(&fd, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
            all.push((name.to_vec(), nofollow::kind(&found) == libc::S_IFDIR));
        }
        if all.len() > most {
            return Err(Errno::E2BIG);
        }
    }
}

/// Gives the owner all rights on a directory that will be removed.
fn grant_owner(root: &Root, path: &[u8]) -> nix::Result<()> {
    let (parent, name) = split(path);
    let parent = nofollow::open_path(&root.fd, parent)?;
    let found = fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    let mode = nofollow::permissions(&found);
    if nofollow::kind(&found) == libc::S_IFDIR && mode & 0o700 != 0o700 {
        let open = Mode::from_bits_truncate(mode) | Mode::S_IRWXU;
        fchmodat(&parent, name, open, FchmodatFlags::NoFollowSymlink)?;
    }
    Ok(())
}

/// Removes the entry `path` with everything below it.
pub(crate) fn remove(root: &Root, path: &[u8]) -> nix::Result<()> {
    let (directory, name) = split(path);
    nofollow::as_owner(&root.fd, directory, None, || {
        let parent = nofollow::open_path(&root.fd, directory)?;
        if nofollow::kind(&fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?) != libc::S_IFDIR {
            return unlinkat(&parent, name, UnlinkatFlags::NoRemoveDir);
        }
        grant_owner(root, path)?;
        empty(&nofollow::open_directory(&root.fd, path)?)?;
        unlinkat(&parent, name, UnlinkatFlags::RemoveDir)
    })
}

/// Empties a directory: what its directories hold of directories is moved up into it until there are none.
fn empty(top: &OwnedFd) -> nix::Result<()> {
    let mut count = 0_u64;
    loop {
        let names = names(&nofollow::open_directory(top, b"")?)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            let Some(directory) = unlink_or_open(top, &name)? else {
                continue;
            };
            for child in self::names(&directory)? {
                if unlink_or_open(&directory, &child)?.is_none() {
                    continue;
                }
                loop {
                    count += 1;
                    let free = format!(".stockade-{count}");
                    match renameat2(
                        &directory,
                        child.as_slice(),
                        top,
                        free.as_str(),
                        RenameFlags::RENAME_NOREPLACE,
                    ) {
                        Ok(()) => break,
                        Err(Errno::EEXIST) => {}
                        // A file system without RENAME_NOREPLACE: at worst an empty directory is replaced.
                        Err(Errno::EINVAL) => {
                            renameat(&directory, child.as_slice(), top, free.as_str())?;
                            break;
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            unlinkat(top, name.as_slice(), UnlinkatFlags::RemoveDir)?;
        }
    }
}

/// Unlinks the entry unless it is a directory, which is opened instead, with the owner let in.
fn unlink_or_open(parent: &OwnedFd, name: &[u8]) -> nix::Result<Option<OwnedFd>> {
    let found = match fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Err(Errno::ENOENT) => return Ok(None),
        found => found?,
    };
    if nofollow::kind(&found) != libc::S_IFDIR {
        return unlinkat(parent, name, UnlinkatFlags::NoRemoveDir).map(|()| None);
    }
    let mode = nofollow::permissions(&found);
    if mode & 0o700 != 0o700 {
        let open = Mode::from_bits_truncate(mode) | Mode::S_IRWXU;
        fchmodat(parent, name, open, FchmodatFlags::NoFollowSymlink)?;
    }
    nofollow::open_directory(parent, name).map(Some)
}

/// The names in an open directory.
pub(crate) fn names(directory: &OwnedFd) -> nix::Result<Vec<Vec<u8>>> {
    let mut buffer = vec![0; 64 * 1024];
    let mut all = Vec::new();
    loop {
        let read = sys::getdents(directory, &mut buffer)?;
        if read == 0 {
            return Ok(all);
        }
        all.extend(sys::names(&buffer[..read]).map(<[u8]>::to_vec));
    }
}

/// Copies the entry `path` with everything below it to `item` in the open directory, without its modes. A pipe, a socket, a
/// device and what the budget does not hold are errors.
pub(crate) fn copy(
    root: &Root,
    path: &[u8],
    target: BorrowedFd<'_>,
    item: &[u8],
    budget: &mut Budget,
) -> nix::Result<()> {
    // List first: what cannot be listed fails before anything is created.
    let all = list(root, path, budget.entries)?;
    budget.entries = budget.entries.saturating_sub(all.len());
    let bytes = Cell::new(budget.bytes);
    let copied = copy_listed(root, path, &all, target, item, &bytes);
    budget.bytes = bytes.get();
    copied
}

fn copy_listed(
    root: &Root,
    path: &[u8],
    all: &[(Vec<u8>, bool)],
    target: BorrowedFd<'_>,
    item: &[u8],
    left: &Cell<u64>,
) -> nix::Result<()> {
    for (from, is_directory) in all {
        let to = join(item, from[path.len()..].strip_prefix(b"/").unwrap_or_default());
        let (target_directory, target_name) = split(&to);
        let target_directory = nofollow::open_path(target, target_directory)?;
        if *is_directory {
            mkdirat(&target_directory, target_name, Mode::S_IRWXU)?;
            continue;
        }
        let (directory, name) = split(from);
        nofollow::as_owner(&root.fd, directory, Some(name), || {
            let directory = nofollow::open_path(&root.fd, directory)?;
            match nofollow::kind(&fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?) {
                libc::S_IFLNK => {
                    let link = readlinkat(&directory, name)?;
                    symlinkat(link.as_os_str(), &target_directory, target_name)
                }
                libc::S_IFREG => {
                    let to = target_directory.as_fd();
                    let copied = copy_file(directory.as_fd(), name, to, target_name, left.get())?;
                    left.set(left.get().saturating_sub(copied));
                    Ok(())
                }
                _ => Err(Errno::EOPNOTSUPP),
            }
        })?;
    }
    Ok(())
}

fn copy_file(from: BorrowedFd<'_>, name: &[u8], to: BorrowedFd<'_>, target: &[u8], limit: u64) -> nix::Result<u64> {
    let read = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let write = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let source = match openat(from, name, read, Mode::empty()) {
        // Not readable even to its owner.
        Err(Errno::EACCES) => {
            let found = fstatat(from, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
            let set = |mode| fchmodat(from, name, mode, FchmodatFlags::NoFollowSymlink);
            set(Mode::S_IRUSR)?;
            let opened = openat(from, name, read, Mode::empty());
            set(Mode::from_bits_truncate(nofollow::permissions(&found)))?;
            opened?
        }
        opened => opened?,
    };
    // Before anything is written: a length is made at no cost.
    if u64::try_from(fstat(&source)?.st_size).is_ok_and(|length| length > limit) {
        return Err(Errno::EFBIG);
    }
    let source = std::fs::File::from(source);
    let mut sink = std::fs::File::from(openat(to, target, write, Mode::S_IRUSR | Mode::S_IWUSR)?);
    let copied = std::io::copy(&mut source.take(limit + 1), &mut sink).map_err(nofollow::errno)?;
    sink.flush().map_err(nofollow::errno)?;
    if copied > limit { Err(Errno::EFBIG) } else { Ok(copied) }
}
