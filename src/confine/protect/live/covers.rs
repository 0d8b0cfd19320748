//! Private copies of what host programs run or obey while a command runs: configs and hooks of git, and this config.
//!
//! Mounts show them in the place of the files ([`PrivateCopy`](crate::backend::namespaces::PrivateCopy)). A command may change
//! its copy as it likes, and finds there what it wrote; the host goes on reading its own file. When the tree of the command is
//! dead, `cover_changes` does the harmless part of each change to the host's file and reports the rest. The copies lie in a folder
//! of the store, which its owner holds locked; [`abandoned_covers`](super::abandoned_covers) takes what a crash leaves.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

use super::super::entry::nofollow::{self, is_within, join, split};
use super::super::entry::restore::{create, set_mode};
use super::super::entry::state::{Found, MAX_FILE, MAX_TOTAL, State, observe};
use super::super::entry::subtree::{list, names, remove};
use super::super::error::ProtectError;
use super::super::naming::names::Names;
use super::super::naming::patterns::Patterns;
use super::super::record::{Record, SavedEntry};
use super::super::roots::{Root, RootPath, absolute, open_roots};
use super::super::storage::other_sessions::StoreLock;
use super::super::storage::quarantine::Quarantine;
use super::super::storage::store;
use super::super::violation::Effect;
use crate::confine::session;

/// The folder of copies.
pub(super) const COPIES: &str = "copies";
/// The file in a session's folder that says what its copies stand for: paths, each with a NUL behind it.
pub(super) const ORIGINS: &str = "origins";
/// The most entries of one copy that are read beside those that the host has.
const MOST_NEW: usize = 1_000;

/// The copies of one session.
#[derive(Debug)]
pub struct Covers {
    /// The folder they lie in.
    folder: Root,
    /// Kept locked as long as the copies may be mounted.
    _lock: File,
    copies: Vec<CoverCopy>,
    standing: Cell<Standing>,
}

/// What the copies are good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// They are mounted.
    Mounted,
    /// One was moved away, so what the mounts show is no copy: the next command needs others.
    Stale,
    /// Something in one could not be kept: the next command needs others, and these stay where they are.
    Unkept,
}

/// One copy.
#[derive(Debug)]
struct CoverCopy {
    root: u16,
    /// The protected path in the root.
    path: Vec<u8>,
    /// Its name in the folder.
    name: Vec<u8>,
}

/// What a command made of an entry of a copy.
#[derive(Debug)]
pub(crate) struct Difference<'a> {
    pub(crate) root: u16,
    pub(crate) path: Vec<u8>,
    /// What the host has, if it was there when the command started.
    pub(in super::super) before: Option<&'a SavedEntry>,
    pub(crate) after: Found,
}

impl Covers {
    /// Copies of what was recorded and is to be covered.
    ///
    /// # Errors
    /// Nothing may run where they were to be.
    pub(in crate::confine) fn create(
        record: &Record,
        to_cover: Vec<RootPath>,
        store: &Path,
    ) -> Result<Self, ProtectError> {
        // Without this lock, another session would remove the folder before it is locked.
        let _gate = StoreLock::enter(store)?;
        let all = store::folder(store, COPIES)?;
        let own = store::folder(&all, &store::unique_name())?;
        let fail = |step| ProtectError::failed(step, &own);
        let lock = File::open(&own).map_err(fail("open"))?;
        lock.lock().map_err(fail("lock"))?;
        // A mount is named by a path without links.
        let own = std::fs::canonicalize(&own).map_err(fail("look at"))?;
        let folder = open_roots(std::slice::from_ref(&own), &[], &mut Patterns::new(&Names::default()))?
            .into_iter()
            .next();
        let folder = folder.ok_or_else(|| ProtectError::io("open", own, Errno::ENOTDIR))?;
        let covered = to_cover.into_iter().zip(0_usize..);
        let copies = covered.map(|((root, path), number)| CoverCopy {
            root,
            path,
            name: number.to_string().into_bytes(),
        });
        let covers = Self {
            copies: copies.collect(),
            _lock: lock,
            folder,
            standing: Cell::new(Standing::Mounted),
        };
        covers.refresh(record)?;
        Ok(covers)
    }

    /// Whether there are copies of all that is to be covered by now, of `most` at most.
    pub(in crate::confine) fn include_all(&self, to_cover: &[RootPath], most: usize) -> bool {
        let has = |(root, path): &RootPath| {
            self.copies
                .iter()
                .any(|copy| copy.root == *root && is_within(path, &copy.path))
        };
        self.standing.get() == Standing::Mounted && (self.copies.len() >= most || to_cover.iter().all(has))
    }

    /// What there are copies of, by the numbers of the roots.
    pub(crate) fn paths(&self) -> impl Iterator<Item = RootPath> + '_ {
        self.copies.iter().map(|copy| (copy.root, copy.path.clone()))
    }

    /// The protected paths, and the copies in their places.
    pub(in crate::confine) fn pairs<'a>(&'a self, roots: &'a [Root]) -> impl Iterator<Item = (PathBuf, PathBuf)> + 'a {
        self.copies.iter().map(|copy| {
            let source = self.folder.path.join(OsStr::from_bytes(&copy.name));
            (absolute(&roots[usize::from(copy.root)], &copy.path), source)
        })
    }

    /// Makes the copies equal to the host's files for a command, and notes that one may change them.
    ///
    /// # Errors
    /// A copy is not what the host has, so the command must not start.
    pub(in crate::confine) fn lay(&self, record: &Record, roots: &[Root]) -> Result<(), ProtectError> {
        self.refresh(record)?;
        let origins: Vec<u8> = self
            .pairs(roots)
            .flat_map(|(origin, _)| [origin.as_os_str().as_bytes(), b"\0"].concat())
            .collect();
        let path = self.folder.path.join(ORIGINS);
        std::fs::write(&path, origins).map_err(ProtectError::failed("write", &path))
    }

    /// Notes that nothing in the copies needs to be kept any more: the command is dead, and what it changed is settled.
    pub(in super::super) fn settled(&self) {
        if self.standing.get() != Standing::Unkept {
            // Best effort: if it stays, a crash only has more kept.
            let _stays = std::fs::remove_file(self.folder.path.join(ORIGINS));
        }
    }

    fn refresh(&self, record: &Record) -> Result<(), ProtectError> {
        for copy in &self.copies {
            let wanted = copy.of(record);
            let is_current = || {
                let current = self.current(copy, &wanted, &mut (2 * MAX_TOTAL));
                current.is_some_and(|current| is_same(&wanted, &current))
            };
            if !is_current() {
                let laid = self.write_copy(copy, &wanted);
                let laid = laid.and_then(|()| if is_current() { Ok(()) } else { Err(Errno::EBUSY) });
                laid.map_err(|error| ProtectError::io("copy", absolute(&self.folder, &copy.name), error))?;
            }
        }
        Ok(())
    }

    /// Moves to quarantine what a copy has become, whole, and returns where. The copy itself may be mounted: what lies in a
    /// directory is moved, and a file is copied. One too long for that is moved, and the next command needs new mounts.
    ///
    /// # Errors
    /// It could not be kept: it stays where it is.
    pub(in super::super) fn keep(
        &self,
        root: u16,
        path: &[u8],
        kind: Effect,
        origin: &Path,
        quarantine: &mut Quarantine,
    ) -> Result<Option<PathBuf>, ProtectError> {
        let is_in = |copy: &&CoverCopy| copy.root == root && is_within(path, &copy.path);
        let Some(copy) = self.copies.iter().find(is_in) else {
            return Ok(None);
        };
        let below = &path[copy.path.len()..];
        let copy_path = copy.copy_path(below);
        let found = nofollow::as_owner(&self.folder.fd, split(&copy_path).0, None, || {
            nofollow::stat(&self.folder.fd, &copy_path)
        });
        let found = match found {
            Ok(found) => found,
            Err(Errno::ENOENT) => return Ok(None),
            Err(error) => return Err(self.not_kept(origin, error)),
        };
        let is_directory = nofollow::kind(&found) == libc::S_IFDIR;
        let kept = match (below.is_empty(), is_directory) {
            (true, true) => quarantine.move_entries(&self.folder, &copy_path, origin, kind),
            (true, false) => {
                let copied = quarantine.copy(&self.folder, &copy_path, origin, kind);
                copied.or_else(|| {
                    self.worsen(Standing::Stale);
                    quarantine.move_in(&self.folder, &copy_path, origin, kind)
                })
            }
            (false, _) => quarantine.move_in(&self.folder, &copy_path, origin, kind),
        };
        kept.map(Some).ok_or_else(|| self.not_kept(origin, Errno::EIO))
    }

    /// What could not be kept once stays, whatever happens to the other copies.
    fn worsen(&self, standing: Standing) {
        self.standing.set(self.standing.get().max(standing));
    }

    /// What a command wrote, and cannot be kept elsewhere, stays in the folder.
    pub(in super::super) fn not_kept(&self, origin: &Path, source: Errno) -> ProtectError {
        self.worsen(Standing::Unkept);
        ProtectError::NotKept {
            path: origin.to_owned(),
            place: self.folder.path.clone(),
            source: source.into(),
        }
    }

    /// Keeps the inode of the copy, because it may be mounted.
    fn write_copy(&self, copy: &CoverCopy, wanted: &BTreeMap<Vec<u8>, &SavedEntry>) -> nix::Result<()> {
        let is_there = nofollow::stat(&self.folder.fd, &copy.name).is_ok();
        for (below, kept) in wanted {
            let copy_path = copy.copy_path(below);
            match &kept.state {
                State::File { mode, content, .. } if below.is_empty() && is_there => {
                    self.write(&copy_path, *mode, content)?;
                }
                State::Directory { mode } if below.is_empty() && is_there => {
                    self.set_mode_of(&copy_path, 0o700)?;
                    self.empty(&copy_path)?;
                    self.set_mode_of(&copy_path, *mode)?;
                }
                // Host programs neither run nor obey these.
                State::Special { .. } | State::Ignored => {}
                state @ (State::File { .. } | State::Symlink { .. } | State::Directory { .. }) => {
                    create(&self.folder, &copy_path, state)?;
                }
            }
        }
        Ok(())
    }

    fn empty(&self, directory: &[u8]) -> nix::Result<()> {
        let open = nofollow::open_directory(&self.folder.fd, directory)?;
        let all = names(&open)?;
        let mut removed = all.iter().map(|name| remove(&self.folder, &join(directory, name)));
        removed.try_for_each(|removed| removed)
    }

    fn write(&self, copy_path: &[u8], mode: u32, content: &[u8]) -> nix::Result<()> {
        self.set_mode_of(copy_path, 0o600)?;
        let flags = OFlag::O_WRONLY | OFlag::O_TRUNC | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&self.folder.fd, copy_path, flags, Mode::empty())?);
        let written = file.write_all(content);
        written.map_err(nofollow::errno)?;
        self.set_mode_of(copy_path, mode)
    }

    fn set_mode_of(&self, copy_path: &[u8], mode: u32) -> nix::Result<()> {
        set_mode(&self.folder, copy_path, mode).map_err(|error| match error {
            ProtectError::Io { source, .. } => nofollow::errno(source),
            _ => Errno::EIO,
        })
    }

    /// What commands changed in the copies, by path.
    pub(in super::super) fn differences<'a>(&self, record: &'a Record) -> Vec<Difference<'a>> {
        let mut all = Vec::new();
        // Commands choose how much they write.
        let mut left = 2 * MAX_TOTAL;
        for copy in &self.copies {
            let before = copy.of(record);
            let Some(mut current) = self.current(copy, &before, &mut left) else {
                all.push(Difference {
                    root: copy.root,
                    path: copy.path.clone(),
                    before: before.get(&Vec::new()).copied(),
                    after: Found::Unreadable(Errno::E2BIG),
                });
                continue;
            };
            for (below, kept) in before {
                let after = current.remove(&below).unwrap_or(Found::Absent);
                // A clone that fails removes the sample hooks; nobody needs them.
                let is_same = match (&kept.state, &after) {
                    // No copy is made of these.
                    (State::Special { .. }, Found::Absent | Found::Present(State::Special { .. })) => true,
                    (_, Found::Absent) => below.ends_with(b".sample"),
                    (before, Found::Present(now)) => before == now,
                    (_, Found::TooLong { .. } | Found::Unreadable(_)) => false,
                };
                if !is_same {
                    all.push(Difference {
                        root: copy.root,
                        path: kept.path.clone(),
                        before: Some(kept),
                        after,
                    });
                }
            }
            all.extend(current.into_iter().map(|(below, after)| Difference {
                root: copy.root,
                path: [copy.path.as_slice(), &below].concat(),
                before: None,
                after,
            }));
        }
        all
    }

    /// What a copy holds, by the path below it; `None` where that is too much.
    fn current(
        &self,
        copy: &CoverCopy,
        wanted: &BTreeMap<Vec<u8>, &SavedEntry>,
        left: &mut u64,
    ) -> Option<BTreeMap<Vec<u8>, Found>> {
        let most = wanted.len() + MOST_NEW;
        let all = match list(&self.folder, &copy.name, most) {
            Ok(all) => all,
            Err(Errno::ENOENT) => return Some(BTreeMap::new()),
            Err(_) => return None,
        };
        let found = all.into_iter().map(|(path, _)| {
            let observed = observe(&self.folder.fd, &path, MAX_FILE.min(*left));
            *left = left.saturating_sub(observed.length());
            (path[copy.name.len()..].to_vec(), observed)
        });
        Some(found.collect())
    }
}

impl Drop for Covers {
    fn drop(&mut self) {
        match self.standing.get() {
            // Best effort: what is left is swept by the next session, for nobody holds it locked.
            Standing::Mounted | Standing::Stale => session::remove(&self.folder.path),
            Standing::Unkept => {}
        }
    }
}

impl CoverCopy {
    /// What was recorded of it, by the path below it.
    fn of<'a>(&self, record: &'a Record) -> BTreeMap<Vec<u8>, &'a SavedEntry> {
        let own = record
            .entries
            .iter()
            .filter(|kept| kept.root == self.root && is_within(&kept.path, &self.path));
        own.map(|kept| (kept.path[self.path.len()..].to_vec(), kept)).collect()
    }

    fn copy_path(&self, below: &[u8]) -> Vec<u8> {
        [self.name.as_slice(), below].concat()
    }
}

fn is_same(wanted: &BTreeMap<Vec<u8>, &SavedEntry>, current: &BTreeMap<Vec<u8>, Found>) -> bool {
    let lasting = || {
        wanted
            .iter()
            .filter(|(_, kept)| !matches!(kept.state, State::Special { .. }))
    };
    lasting().count() == current.len()
        && lasting()
            .all(|(below, kept)| matches!(current.get(below), Some(Found::Present(state)) if *state == kept.state))
}
