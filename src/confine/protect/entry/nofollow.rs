//! Files by descriptor and relative path, never through a symlink.
//!
//! The agent owns the tree, so no path in it is trusted to lead where it led before: every path is
//! resolved from the descriptor of a root with `RESOLVE_NO_SYMLINKS`, and nothing here blocks on what
//! it opens. Paths are bytes relative to the root, without a leading slash; empty is the root itself.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, fchmodat, fstat, fstatat};

/// Longest path given to the kernel in one piece, well below `PATH_MAX`.
pub(crate) const MAX_PIECE: usize = 3500;

/// The number of an error of the standard library.
#[expect(clippy::needless_pass_by_value, reason = "what `map_err` hands on")]
pub(crate) fn errno(error: std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

/// A path's directory and its last component.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&b| b == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// `directory` and `name` as one path.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    path.extend_from_slice(directory);
    if !directory.is_empty() && !name.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// The path, after the directories above it; the outermost comes first, and the root itself does not count.
pub(crate) fn prefixes(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(end, _)| end);
    ends.chain([path.len()]).map(|end| &path[..end])
}

/// Whether `path` is `ancestor` or lies below it.
pub(crate) fn is_within(path: &[u8], ancestor: &[u8]) -> bool {
    ancestor.is_empty()
        || path == ancestor
        || (path.len() > ancestor.len() && path.starts_with(ancestor) && path[ancestor.len()] == b'/')
}

/// Opens the directory `path` for reading its entries or for work relative to it.
pub(crate) fn open_directory(root: impl AsFd, path: &[u8]) -> nix::Result<OwnedFd> {
    open(root.as_fd(), path, OFlag::O_RDONLY | OFlag::O_DIRECTORY)
}

/// Opens the directory `path` as a mere place: needs no right to read it.
pub(crate) fn open_path(root: impl AsFd, path: &[u8]) -> nix::Result<OwnedFd> {
    open(root.as_fd(), path, OFlag::O_PATH | OFlag::O_DIRECTORY)
}

/// Opens the regular file `path` for reading; anything else is `EINVAL`, and is not waited for.
pub(crate) fn open_file(root: impl AsFd, path: &[u8]) -> nix::Result<OwnedFd> {
    // A device would do something when it is opened.
    if kind(&stat(&root, path)?) != libc::S_IFREG {
        return Err(Errno::EINVAL);
    }
    let file = open(
        root.as_fd(),
        path,
        OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY,
    )?;
    if kind(&fstat(&file)?) == libc::S_IFREG {
        Ok(file)
    } else {
        Err(Errno::EINVAL)
    }
}

fn open(root: BorrowedFd<'_>, path: &[u8], flags: OFlag) -> nix::Result<OwnedFd> {
    let mut at: Option<OwnedFd> = None;
    let mut rest = path;
    while rest.len() > MAX_PIECE {
        let cut = rest[..MAX_PIECE]
            .iter()
            .rposition(|&b| b == b'/')
            .ok_or(Errno::ENAMETOOLONG)?;
        let from = at.as_ref().map_or(root, AsFd::as_fd);
        at = Some(open_piece(from, &rest[..cut], OFlag::O_PATH | OFlag::O_DIRECTORY)?);
        rest = &rest[cut + 1..];
    }
    open_piece(at.as_ref().map_or(root, AsFd::as_fd), rest, flags)
}

fn open_piece(from: BorrowedFd<'_>, path: &[u8], flags: OFlag) -> nix::Result<OwnedFd> {
    let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let name: &[u8] = if path.is_empty() { b"." } else { path };
    let how = OpenHow::new()
        .flags(flags)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_BENEATH);
    loop {
        match openat2(from, name, how) {
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            // An outer filter that does not know the call: component by component comes to the same.
            Err(Errno::ENOSYS) => return open_by_component(from, name, flags),
            result => return result,
        }
    }
}

fn open_by_component(from: BorrowedFd<'_>, path: &[u8], flags: OFlag) -> nix::Result<OwnedFd> {
    let intermediate = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut at = openat(from, ".", intermediate, Mode::empty())?;
    let (directory, last) = split(path);
    for name in directory.split(|&b| b == b'/').filter(|n| !n.is_empty()) {
        at = openat(&at, name, intermediate, Mode::empty())?;
    }
    openat(&at, last, flags, Mode::empty())
}

/// What is at `path`, itself and not what it points to.
pub(crate) fn stat(root: impl AsFd, path: &[u8]) -> nix::Result<FileStat> {
    if path.is_empty() {
        return fstat(root);
    }
    let (directory, name) = split(path);
    fstatat(open_path(root, directory)?, name, AtFlags::AT_SYMLINK_NOFOLLOW)
}

/// Whether what lies in the directory `path` may be reached by its name. Only where it is certain that it cannot, it is not.
pub(crate) fn can_be_searched(root: impl AsFd, path: &[u8]) -> bool {
    let found = open_path(root, path).and_then(|fd| fstatat(fd, ".", AtFlags::AT_SYMLINK_NOFOLLOW));
    !matches!(
        found,
        Err(Errno::EACCES | Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP)
    )
}

/// Inode and device of a file: what it is, wherever it has been moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl Identity {
    pub(crate) fn of(stat: &FileStat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// The kind bits of a mode.
pub(crate) fn kind(stat: &FileStat) -> u32 {
    stat.st_mode & libc::S_IFMT
}

/// The permission bits of a mode.
pub(crate) fn permissions(stat: &FileStat) -> u32 {
    stat.st_mode & 0o7777
}

/// Runs `work`; if `directory`, one above it or `entry` in it forbids that and is our own, opens it up for the
/// length of a second try and sets its mode back.
///
/// An agent that makes a directory unreadable or unwritable must not thereby hide what it put there.
pub(crate) fn as_owner<T>(
    root: impl AsFd,
    directory: &[u8],
    entry: Option<&[u8]>,
    work: impl Fn() -> nix::Result<T>,
) -> nix::Result<T> {
    let first = match work() {
        Err(error @ (Errno::EACCES | Errno::EPERM)) => error,
        result => return result,
    };
    let root = root.as_fd();
    let mut opened = Vec::new();
    let full = entry.map_or_else(|| directory.to_vec(), |name| join(directory, name));
    // From the outermost: one that may not be searched hides all below it.
    for path in prefixes(&full).filter(|path| !path.is_empty()) {
        let (parent, name) = split(path);
        let parent = open_path(root, parent)?;
        let stat = fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        if kind(&stat) == libc::S_IFDIR && permissions(&stat) & 0o700 != 0o700 {
            let mode = Mode::from_bits_truncate(permissions(&stat));
            fchmodat(&parent, name, mode | Mode::S_IRWXU, FchmodatFlags::NoFollowSymlink).map_err(|_| first)?;
            opened.push((Identity::of(&stat), path, mode));
        }
    }
    if opened.is_empty() {
        return Err(first);
    }
    let result = work();
    for (identity, path, mode) in opened.into_iter().rev() {
        let (parent, name) = split(path);
        // The entry may be what `work` moved away; then its mode is no longer at this path, nor matters.
        if let Ok(parent) = open_path(root, parent)
            && fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok_and(|stat| Identity::of(&stat) == identity)
        {
            fchmodat(&parent, name, mode, FchmodatFlags::NoFollowSymlink)?;
        }
    }
    result
}

/// The outermost of these, by root and path, at or above the path.
pub(crate) fn outermost<'a>(set: &HashSet<(u16, &[u8])>, root: u16, path: &'a [u8]) -> Option<&'a [u8]> {
    prefixes(path).find(|above| set.contains(&(root, *above)))
}
