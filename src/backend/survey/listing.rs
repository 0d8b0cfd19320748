//! Reads nodes and directories from the disk without following links.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{FileStat, SFlag, fstat, fstatat};
use nix::time::{ClockId, clock_gettime};
use rustix::fs::RawDir;

use super::error::{MOST_ENTRIES, SurveyError};
use super::node::{Kind, Node};
use crate::policy::{AbsPath, Identity};

/// Opens without following a link anywhere in the path.
pub(super) fn open(path: &AbsPath, flags: OFlag) -> Result<OwnedFd, Errno> {
    openat2(
        AT_FDCWD,
        path.as_path(),
        OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(no_links()),
    )
}

pub(super) fn no_links() -> ResolveFlag {
    ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS
}

/// The directory of the last lookup. Clauses come sorted, and many are in one directory.
#[derive(Default)]
pub(super) struct ParentCache(Option<(AbsPath, OwnedFd)>);

impl ParentCache {
    pub(super) fn lookup(&mut self, path: &AbsPath) -> Result<Option<Node>, SurveyError> {
        let failed = |errno: Errno| SurveyError::Look {
            path: path.clone(),
            source: errno.into(),
        };
        let Some(parent) = path.parent() else {
            let fd = open(path, OFlag::O_PATH).map_err(failed)?;
            return node_of(path, &fstat(&fd).map_err(failed)?).map(Some);
        };
        let directory = match self.0.take().filter(|(last, _)| *last == parent) {
            Some((_, fd)) => fd,
            None => match open(&parent, OFlag::O_PATH | OFlag::O_DIRECTORY) {
                Ok(fd) => fd,
                // A command of this user cannot reach it either.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES) => return Ok(None),
                Err(errno) => return Err(failed(errno)),
            },
        };
        let name = path.name().unwrap_or_else(|| OsStr::new("."));
        let found = match fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => node_of(path, &stat).map(Some),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(failed(errno)),
        };
        self.0 = Some((parent, directory));
        found
    }
}

/// An entry of a directory: its name, where it is, what it is.
pub(super) type Entry = (OsString, AbsPath, Node);

/// The listings of one survey.
#[derive(Default)]
pub(super) struct Lister {
    /// The entries counted so far.
    found: usize,
    /// The buffer for directory entries.
    buffer: Vec<u8>,
    /// The directories listed by this survey.
    pub(super) listings: Vec<Listing>,
}

/// The time of the last change of a directory when it was listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    path: AbsPath,
    identity: Identity,
    changed: (i64, i64),
    freshness: Freshness,
}

/// Whether a change right after the listing would show in the time of the last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freshness {
    /// Yes.
    Old,
    /// No: the last change is so recent that another could have the same time.
    Fresh,
}

/// The kernel's clock of changes goes in steps of at most 10 ms.
const STEP: i128 = 20_000_000;

impl Listing {
    fn of(path: &AbsPath, identity: Identity, stat: &FileStat) -> Self {
        let changed = (stat.st_ctime, stat.st_ctime_nsec);
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        let is_old = clock_gettime(ClockId::CLOCK_REALTIME)
            .is_ok_and(|now| nanoseconds(now.tv_sec(), now.tv_nsec()) - nanoseconds(changed.0, changed.1) > STEP);
        Self {
            path: path.clone(),
            identity,
            changed,
            freshness: if is_old { Freshness::Old } else { Freshness::Fresh },
        }
    }

    /// The directory, if its content may differ from the listing.
    pub(super) fn unsettled(&self) -> Option<&AbsPath> {
        let stat = nix::sys::stat::lstat(self.path.as_path());
        let is_same = stat.is_ok_and(|stat| {
            let node = node_of(&self.path, &stat);
            (stat.st_ctime, stat.st_ctime_nsec) == self.changed && node.is_ok_and(|node| node.identity == self.identity)
        });
        (!is_same || self.freshness == Freshness::Fresh).then_some(&self.path)
    }
}

impl Lister {
    /// Counts the entries of a listing from another survey.
    pub(super) fn count(&mut self, path: &AbsPath, known: Vec<Entry>) -> Result<Vec<Entry>, SurveyError> {
        self.found = self.found.saturating_add(known.len());
        if self.found > MOST_ENTRIES {
            return Err(SurveyError::TooMany(path.clone()));
        }
        Ok(known)
    }

    pub(super) fn take(&mut self, path: &AbsPath, expected: Identity) -> Result<Vec<Entry>, SurveyError> {
        let failed = |source: io::Error| SurveyError::List {
            path: path.clone(),
            source,
        };
        let directory = open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY).map_err(|errno| failed(errno.into()))?;
        let stat = fstat(&directory).map_err(|errno| failed(errno.into()))?;
        if node_of(path, &stat)?.identity != expected {
            return Err(SurveyError::Changed(path.clone()));
        }
        self.listings.push(Listing::of(path, expected, &stat));
        self.buffer.reserve(BUFFER_SIZE);
        let mut entries = RawDir::new(&directory, self.buffer.spare_capacity_mut());
        let mut names = Vec::new();
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // Removed since it was opened: nothing to rule.
                Err(rustix::io::Errno::NOENT) => break,
                Err(errno) => return Err(failed(errno.into())),
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let Some(child) = path.child(name) else { continue };
            if self.found.saturating_add(names.len()) >= MOST_ENTRIES {
                return Err(SurveyError::TooMany(path.clone()));
            }
            names.push((name.to_owned(), child));
        }
        let mut found = Vec::with_capacity(names.len());
        for (name, child) in names {
            match fstatat(&directory, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    let node = node_of(&child, &stat)?;
                    found.push((name, child, node));
                }
                // Gone since: nothing to rule.
                Err(Errno::ENOENT) => {}
                Err(errno) => {
                    return Err(SurveyError::Look {
                        path: child,
                        source: errno.into(),
                    });
                }
            }
        }
        self.found = self.found.saturating_add(found.len());
        Ok(found)
    }
}

/// As much as std uses.
const BUFFER_SIZE: usize = 32 * 1024;

pub(super) fn node_of(path: &AbsPath, stat: &FileStat) -> Result<Node, SurveyError> {
    let kind = match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFDIR => Kind::Directory,
        SFlag::S_IFREG => Kind::File,
        SFlag::S_IFCHR | SFlag::S_IFBLK => Kind::Device,
        SFlag::S_IFLNK => Kind::Symlink,
        SFlag::S_IFIFO => Kind::Fifo,
        SFlag::S_IFSOCK => Kind::Socket,
        _ => return Err(SurveyError::Unknown(path.clone())),
    };
    Ok(Node {
        kind,
        identity: Identity {
            device: stat.st_dev,
            inode: stat.st_ino,
        },
        links: stat.st_nlink,
    })
}
