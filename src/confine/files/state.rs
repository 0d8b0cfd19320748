//! What is at a path, and the content of a file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, readlinkat};
use nix::sys::stat::{FileStat, fstat, fstatat};
use sha2::{Digest as _, Sha256};

use super::failure::{About, Answer, failure};
use super::location::open;
use super::protocol::{FileState, Hash, MAX_LOADED, Special, State, Why};

/// A file with its content.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The file, with the hash of the content.
    pub(super) state: FileState,
    /// Its content.
    pub(super) content: Vec<u8>,
}

/// What is at a path, opened with `O_PATH`: nothing is read by that.
#[derive(Debug)]
pub(super) struct PathHandle {
    fd: OwnedFd,
    stat: FileStat,
}

impl PathHandle {
    /// Opens a path in which nothing is a symlink, but maybe the end.
    pub(super) fn at(path: &OsStr) -> nix::Result<Self> {
        let fd = open(path, OFlag::O_PATH)?;
        let stat = fstat(&fd)?;
        Ok(Self { fd, stat })
    }

    pub(super) fn kind(&self) -> FileKind {
        kind(&self.stat)
    }

    /// Its state, and its content, if it is a file that is small enough and may be read.
    pub(super) fn state(&self, path: &OsStr, hash: Hash) -> Answer<(State, Option<Vec<u8>>)> {
        let state = match self.kind() {
            FileKind::File => match hash {
                Hash::Content => return load_if_readable(path, self),
                Hash::Skip => State::File(file_state(&self.stat, None)),
            },
            FileKind::Directory => State::Directory {
                device: self.stat.st_dev,
                inode: self.stat.st_ino,
            },
            FileKind::Symlink => State::Symlink(readlinkat(&self.fd, OsStr::new("")).about(path)?),
            FileKind::Special(special) => State::Other(special),
        };
        Ok((state, None))
    }

    /// Opens it for reading, at the same path. Only a regular file: opening others can block, or have effects.
    pub(super) fn open(&self, path: &OsStr) -> Answer<(File, FileStat)> {
        match self.kind() {
            FileKind::File => {}
            FileKind::Directory => return Err(failure(path, Why::IsDirectory)),
            FileKind::Symlink => return Err(failure(path, Why::Changed)),
            FileKind::Special(special) => return Err(failure(path, Why::Special(special))),
        }
        let file = open(path, OFlag::O_RDONLY).about(path)?;
        let stat = fstat(&file).about(path)?;
        if kind(&stat) != FileKind::File || (stat.st_dev, stat.st_ino) != (self.stat.st_dev, self.stat.st_ino) {
            return Err(failure(path, Why::Changed));
        }
        Ok((File::from(file), stat))
    }
}

/// What is at a path, itself.
pub(super) fn at(path: &OsStr, hash: Hash) -> Answer<State> {
    state_and_content(path, hash).map(|(state, _)| state)
}

/// What is at a path, itself, and its content, if it is a file that is small enough and may be read.
pub(super) fn with_content(path: &OsStr) -> Answer<(State, Option<Vec<u8>>)> {
    state_and_content(path, Hash::Content)
}

fn state_and_content(path: &OsStr, hash: Hash) -> Answer<(State, Option<Vec<u8>>)> {
    match PathHandle::at(path) {
        Ok(handle) => handle.state(path, hash),
        Err(Errno::ENOENT) => Ok((State::Absent, None)),
        Err(errno) => Err(errno).about(path),
    }
}

/// The file with its content and hash; without, if it is too large or may not be read: it may still be written.
fn load_if_readable(path: &OsStr, handle: &PathHandle) -> Answer<(State, Option<Vec<u8>>)> {
    let without = || Ok((State::File(file_state(&handle.stat, None)), None));
    if size(&handle.stat) > MAX_LOADED {
        return without();
    }
    match load_handle(path, handle) {
        Ok(loaded) => Ok((State::File(loaded.state), Some(loaded.content))),
        Err(failed) if matches!(failed.why, Why::NotPermitted | Why::TooLarge { .. }) => without(),
        Err(failed) => Err(failed),
    }
}

/// Opens a regular file for reading.
pub(super) fn open_file(path: &OsStr) -> Answer<(File, FileStat)> {
    PathHandle::at(path).about(path)?.open(path)
}

/// Loads a file of at most [`MAX_LOADED`] bytes.
pub(super) fn load(path: &OsStr) -> Answer<Loaded> {
    load_handle(path, &PathHandle::at(path).about(path)?)
}

fn load_handle(path: &OsStr, handle: &PathHandle) -> Answer<Loaded> {
    let (file, stat) = handle.open(path)?;
    let limit = MAX_LOADED;
    if size(&stat) > limit {
        return Err(failure(
            path,
            Why::TooLarge {
                size: size(&stat),
                limit,
            },
        ));
    }
    let mut content = Vec::with_capacity(usize::try_from(size(&stat)).unwrap_or(0));
    (&file).take(limit + 1).read_to_end(&mut content).about(path)?;
    let length = content.len() as u64;
    if length > limit {
        return Err(failure(path, Why::TooLarge { size: length, limit }));
    }
    // The state after reading: a later write changes the time.
    let stat = fstat(&file).about(path)?;
    Ok(Loaded {
        state: file_state(&stat, Some(digest(&content))),
        content,
    })
}

/// SHA-256.
pub(super) fn digest(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

fn file_state(stat: &FileStat, digest: Option<[u8; 32]>) -> FileState {
    FileState {
        device: stat.st_dev,
        inode: stat.st_ino,
        size: size(stat),
        mode: stat.st_mode & 0o7777,
        links: stat.st_nlink,
        modified: modified(stat),
        changed: i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec),
        digest,
    }
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    File,
    Directory,
    Symlink,
    Special(Special),
}

pub(super) fn kind(stat: &FileStat) -> FileKind {
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFREG => FileKind::File,
        libc::S_IFDIR => FileKind::Directory,
        libc::S_IFLNK => FileKind::Symlink,
        libc::S_IFIFO => FileKind::Special(Special::Fifo),
        libc::S_IFSOCK => FileKind::Special(Special::Socket),
        _ => FileKind::Special(Special::Device),
    }
}

pub(super) fn size(stat: &FileStat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn modified(stat: &FileStat) -> i128 {
    i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec)
}

/// Whether the state is the expected one. A hash counts where one is expected; the number of links does not.
pub(super) fn is_same(expected: &State, now: &State) -> bool {
    match (expected, now) {
        (State::File(expected), State::File(now)) => {
            (
                expected.device,
                expected.inode,
                expected.size,
                expected.mode,
                expected.modified,
            ) == (now.device, now.inode, now.size, now.mode, now.modified)
                && (expected.digest.is_none() || expected.digest == now.digest)
        }
        (State::Absent, State::Absent) => true,
        (State::Directory { .. }, State::Directory { .. })
        | (State::Symlink(_), State::Symlink(_))
        | (State::Other(_), State::Other(_)) => expected == now,
        (
            State::Absent | State::File(_) | State::Directory { .. } | State::Symlink(_) | State::Other(_),
            State::Absent | State::File(_) | State::Directory { .. } | State::Symlink(_) | State::Other(_),
        ) => false,
    }
}

/// Whether an entry is as expected, as far as that shows without reading it.
pub(super) fn is_still(expected: &State, directory: impl AsFd, name: &OsStr) -> nix::Result<bool> {
    let stat = fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    Ok(match expected {
        State::Absent => false,
        State::File(file) => {
            kind(&stat) == FileKind::File
                && (file.device, file.inode, file.size, file.modified)
                    == (stat.st_dev, stat.st_ino, size(&stat), modified(&stat))
        }
        State::Directory { device, inode } => {
            kind(&stat) == FileKind::Directory && (*device, *inode) == (stat.st_dev, stat.st_ino)
        }
        State::Symlink(target) => kind(&stat) == FileKind::Symlink && readlinkat(directory, name)? == *target,
        State::Other(special) => kind(&stat) == FileKind::Special(*special),
    })
}
