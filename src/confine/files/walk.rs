//! Everything below a directory, in the order of names, each directory before what is in it.
//!
//! Directories are opened one at a time and without following a symlink; what is held is the names that are left.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use nix::fcntl::OFlag;
use nix::sys::stat::fstat;

use super::clock::Clock;
use super::failure::{About, Answer, failure};
use super::ignored::{Ignored, is_ignored};
use super::location::open;
use super::protocol::{End, Hash, Include, Kind, Select, State, Why};
use super::select::is_hidden;
use super::state::{self, FileKind, kind};
use super::tree::{DirectoryItem, each_part};

/// The most entries of one directory that are held; one with more is read as far as if the time were over.
const MAX_ENTRIES: usize = 1_000_000;

/// A walk through a tree.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    select: &'a Select,
    depth: usize,
    clock: Clock,
    levels: Vec<Level>,
    /// Directories that could not be read.
    pub(super) unreadable: u64,
    /// Whether all was looked at.
    pub(super) end: End,
}

#[derive(Debug)]
struct Level {
    path: PathBuf,
    left: IntoIter<DirectoryItem>,
    ignored: Ignored,
}

/// An entry on the way.
#[derive(Debug)]
pub(super) struct WalkEntry {
    /// Its path.
    pub(super) path: PathBuf,
    /// What it is.
    pub(super) kind: Kind,
}

impl<'a> Walk<'a> {
    /// Begins at a directory, which must be readable.
    pub(super) fn new(start: &OsStr, depth: u32, select: &'a Select, clock: Clock) -> Answer<Self> {
        let why = match state::at(start, Hash::Skip)? {
            State::Directory { .. } => None,
            State::Absent => Some(Why::Missing),
            State::File(_) => Some(Why::NotDirectory),
            State::Symlink(_) => Some(Why::Changed),
            State::Other(special) => Some(Why::Special(special)),
        };
        if let Some(why) = why {
            return Err(failure(start, why));
        }
        let mut walk = Self {
            select,
            depth: usize::try_from(depth).unwrap_or(usize::MAX),
            clock,
            levels: Vec::new(),
            unreadable: 0,
            end: End::Complete,
        };
        walk.enter(PathBuf::from(start)).about(start)?;
        Ok(walk)
    }

    fn enter(&mut self, path: PathBuf) -> nix::Result<()> {
        let directory = open(path.as_os_str(), OFlag::O_RDONLY | OFlag::O_DIRECTORY)?;
        let mut entries = Vec::new();
        each_part(directory, |part| {
            entries.extend(part);
            if entries.len() >= MAX_ENTRIES || self.clock.is_over() {
                self.end = End::Time;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        let ignored = match self.select.ignored {
            Include::No => Ignored::of(&path, &entries),
            Include::Yes => Ignored::default(),
        };
        if self.select.hidden == Include::No {
            entries.retain(|listed| !is_hidden(&listed.name));
        }
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        self.levels.push(Level {
            path,
            left: entries.into_iter(),
            ignored,
        });
        Ok(())
    }

    /// Whether what was passed is ignored.
    fn is_ignored(&self, entry: &WalkEntry) -> bool {
        let levels = self.levels.iter().map(|level| &level.ignored);
        self.select.ignored == Include::No && is_ignored(levels, &entry.path, entry.kind == Kind::Directory)
    }
}

impl Iterator for Walk<'_> {
    type Item = WalkEntry;

    fn next(&mut self) -> Option<WalkEntry> {
        loop {
            if self.clock.is_over() {
                if self.levels.iter().any(|level| level.left.len() > 0) {
                    self.end = End::Time;
                }
                return None;
            }
            let level = self.levels.last_mut()?;
            let Some(listed) = level.left.next() else {
                self.levels.pop();
                continue;
            };
            let path = level.path.join(&listed.name);
            let Some(kind) = kind_of(&path, listed.kind) else {
                continue;
            };
            let entry = WalkEntry { path, kind };
            if self.is_ignored(&entry) {
                continue;
            }
            if entry.kind == Kind::Directory
                && self.levels.len() < self.depth
                && self.enter(entry.path.clone()).is_err()
            {
                self.unreadable += 1;
            }
            return Some(entry);
        }
    }
}

/// What an entry is; `None` if it is gone.
fn kind_of(path: &Path, listed: u8) -> Option<Kind> {
    Some(match listed {
        libc::DT_REG => Kind::File,
        libc::DT_DIR => Kind::Directory,
        libc::DT_LNK => Kind::Symlink,
        libc::DT_UNKNOWN => {
            let stat = fstat(open(path.as_os_str(), OFlag::O_PATH).ok()?).ok()?;
            match kind(&stat) {
                FileKind::File => Kind::File,
                FileKind::Directory => Kind::Directory,
                FileKind::Symlink => Kind::Symlink,
                FileKind::Special(_) => Kind::Other,
            }
        }
        _ => Kind::Other,
    })
}
