//! Copying a thing out of the tree and removing it there: what a rename cannot do between file systems.
//!
//! Both list the tree below the thing breadth first, so depth costs nothing, and open everything from the
//! root without following links.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};

use super::at::{self, join, split};
use super::roots::Root;
use crate::confine::sys;

/// Bytes copied of one thing; the rest is lost with it.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Entries copied or removed of one thing.
const MAX_ENTRIES: usize = 4_000_000;

/// Everything at and below `path`, holders first, each with whether it is a directory.
fn list(root: &Root, path: &[u8]) -> nix::Result<Vec<(Vec<u8>, bool)>> {
    let is_directory = at::kind(&at::stat(&root.fd, path)?) == libc::S_IFDIR;
    let mut all = vec![(path.to_vec(), is_directory)];
    let mut buffer = vec![0; 64 * 1024];
    let mut index = 0;
    while let Some((path, is_directory)) = all.get(index).cloned() {
        index += 1;
        if !is_directory {
            continue;
        }
        open_up(root, &path)?;
        let fd = at::open_directory(&root.fd, &path)?;
        loop {
            let read = sys::getdents(&fd, &mut buffer)?;
            if read == 0 {
                break;
            }
            for name in sys::names(&buffer[..read]) {
                let found = fstatat(&fd, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
                all.push((join(&path, name), at::kind(&found) == libc::S_IFDIR));
            }
            if all.len() > MAX_ENTRIES {
                return Err(Errno::E2BIG);
            }
        }
    }
    Ok(all)
}

/// Lets the owner into a directory that is on its way out; its mode goes with it.
fn open_up(root: &Root, path: &[u8]) -> nix::Result<()> {
    let (parent, name) = split(path);
    let parent = at::open_place(&root.fd, parent)?;
    let found = fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    let mode = at::permissions(&found);
    if at::kind(&found) == libc::S_IFDIR && mode & 0o700 != 0o700 {
        let open = Mode::from_bits_truncate(mode) | Mode::S_IRWXU;
        fchmodat(&parent, name, open, FchmodatFlags::NoFollowSymlink)?;
    }
    Ok(())
}

/// Removes the entry `path` with everything below it.
pub(super) fn remove(root: &Root, path: &[u8]) -> nix::Result<()> {
    at::insisting(&root.fd, path, None, || {
        for (path, is_directory) in list(root, path)?.into_iter().rev() {
            let (directory, name) = split(&path);
            let flag = if is_directory {
                UnlinkatFlags::RemoveDir
            } else {
                UnlinkatFlags::NoRemoveDir
            };
            unlinkat(at::open_place(&root.fd, directory)?, name, flag)?;
        }
        Ok(())
    })
}

/// Copies the entry `path` with everything below it to `item` in the open directory; sockets and devices
/// are not copied, nor is a mode beyond the owner's.
pub(super) fn copy(root: &Root, path: &[u8], target: BorrowedFd<'_>, item: &[u8]) -> nix::Result<()> {
    // What could be shut out is shut out of the listing first, before anything is made in the target.
    at::insisting(&root.fd, path, None, || copy_listed(root, path, target, item))
}

fn copy_listed(root: &Root, path: &[u8], target: BorrowedFd<'_>, item: &[u8]) -> nix::Result<()> {
    let mut left = MAX_BYTES;
    for (from, is_directory) in list(root, path)? {
        let to = join(item, from[path.len()..].strip_prefix(b"/").unwrap_or_default());
        let (target_directory, target_name) = split(&to);
        let target_directory = at::open_place(target, target_directory)?;
        if is_directory {
            mkdirat(&target_directory, target_name, Mode::S_IRWXU)?;
            continue;
        }
        let (directory, name) = split(&from);
        let directory = at::open_place(&root.fd, directory)?;
        match at::kind(&fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?) {
            libc::S_IFLNK => {
                let link = readlinkat(&directory, name)?;
                symlinkat(link.as_os_str(), &target_directory, target_name)?;
            }
            libc::S_IFREG => left -= copy_file(directory.as_fd(), name, target_directory.as_fd(), target_name, left)?,
            _ => {}
        }
    }
    Ok(())
}

fn copy_file(from: BorrowedFd<'_>, name: &[u8], to: BorrowedFd<'_>, target: &[u8], limit: u64) -> nix::Result<u64> {
    let read = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let write = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let source = match openat(from, name, read, Mode::empty()) {
        // Not readable even to its owner, so that nobody may see what it was; its mode goes with it.
        Err(Errno::EACCES) => {
            fchmodat(from, name, Mode::S_IRUSR, FchmodatFlags::NoFollowSymlink)?;
            openat(from, name, read, Mode::empty())?
        }
        opened => opened?,
    };
    let source = std::fs::File::from(source);
    let mut sink = std::fs::File::from(openat(to, target, write, Mode::S_IRUSR | Mode::S_IWUSR)?);
    let errno = |error: std::io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO));
    let copied = std::io::copy(&mut source.take(limit + 1), &mut sink).map_err(errno)?;
    sink.flush().map_err(errno)?;
    if copied > limit { Err(Errno::EFBIG) } else { Ok(copied) }
}
