//! The quarantine: intruders are kept there for a person to look at, and never run.
//!
//! One batch per settling, `quarantine/<time>-<pid>/` in the store, with the things moved there as `0`,
//! `1`, … and a `manifest.json` that says where each came from. A directory is shut (mode 0) once it is
//! there: a git directory among the things would otherwise be obeyed by any prompt that runs git where a
//! person looks around. On another file system the thing is copied, up to a limit for all, then removed; what is beyond
//! the limit is lost, and the copy is called `N-incomplete`.
//!
//! There is [`quota`](super::quota) for so much: where that is full no further command starts, and nothing is dropped.
//!
//! Removing comes before supervisor: where nothing can be kept, the intruder is deleted. The manifest lists as much as [`LISTED`]
//! has room for, and then how many more there are: a command chooses how many names it makes, and how long they are.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, RenameFlags, open, renameat, renameat2};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};

use super::super::entry::nofollow::{self, split};
use super::super::entry::state::State;
use super::super::entry::subtree;
use super::super::entry::subtree::Budget;
use super::super::error::ProtectError;
use super::super::roots::{Root, absolute};
use super::super::violation::Effect;
use super::quota::{self, MANIFEST, QUARANTINE, Usage};
use super::store;
use crate::policy::hex::hex;

/// About the most bytes of a manifest.
const LISTED: usize = 24 << 20;

/// The batch of one settling; nothing exists until something is moved.
#[derive(Debug)]
pub(crate) struct Quarantine {
    store: PathBuf,
    batch: Option<(PathBuf, OwnedFd)>,
    manifest: Vec<Item>,
    /// The number of attempts, which names the next item.
    attempts: usize,
    /// How many things are kept.
    taken: usize,
    /// About how many bytes a full manifest would have; counted beyond its limit.
    listed: usize,
    /// The usage of its directories, and of all of it.
    directories: Usage,
    all: Usage,
    budget: Budget,
}

/// One thing that was taken.
#[derive(Debug, serde::Serialize)]
struct Item {
    /// Its name in the batch.
    name: String,
    /// For people.
    path: String,
    /// For programs: the path's bytes, in hexadecimal.
    path_hex: String,
    what: &'static str,
    /// Whether everything that was there is here.
    complete: bool,
}

/// A line of the manifest, or how many more there would be.
#[derive(Debug, serde::Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Item(&'a Item),
    Unlisted { unlisted: usize },
}

impl Quarantine {
    pub(crate) fn new(store: &Path) -> Self {
        Self {
            store: store.to_owned(),
            batch: None,
            manifest: Vec::new(),
            attempts: 0,
            taken: 0,
            listed: 0,
            directories: Usage::default(),
            all: Usage::default(),
            budget: Budget::default(),
        }
    }

    /// Keeps a state of a private copy of the entry `path`; returns where, if it could be kept.
    pub(in super::super) fn keep(&mut self, root: &Root, path: &[u8], what: Effect, state: &State) -> Option<PathBuf> {
        let content = match state {
            State::File { content, .. } => content.as_slice(),
            State::Symlink { target } => target,
            State::Directory { .. } | State::Special { .. } | State::Ignored => return None,
        };
        let item = self.attempts.to_string();
        self.attempts += 1;
        let destination = self.batch().ok()?.0.join(&item);
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        options
            .open(&destination)
            .and_then(|mut file| file.write_all(content))
            .ok()?;
        self.count(&destination);
        self.list(item, root, path, what, true);
        Some(destination)
    }

    /// Keeps a copy of the thing `path` of one root, which took the place of `origin` in another; where, if it could be kept.
    pub(in super::super) fn copy(
        &mut self,
        root: &Root,
        path: &[u8],
        origin_root: &Root,
        origin: &[u8],
        what: Effect,
    ) -> Option<PathBuf> {
        let item = self.attempts.to_string();
        self.attempts += 1;
        let (folder, batch) = self.batch().ok()?;
        let (folder, batch) = (folder.clone(), batch.try_clone().ok()?);
        let copied = subtree::copy(root, path, batch.as_fd(), item.as_bytes(), &mut self.budget);
        let destination = folder.join(&item);
        std::fs::symlink_metadata(&destination).ok()?;
        self.count(&destination);
        self.list(item, origin_root, origin, what, copied.is_ok());
        Some(destination)
    }

    fn batch(&mut self) -> Result<&(PathBuf, OwnedFd), ProtectError> {
        match &mut self.batch {
            Some(batch) => Ok(batch),
            none @ None => Ok(none.insert(create(&self.store)?)),
        }
    }

    /// Moves the entry `path` out of the root and returns where it is, if it could be kept.
    pub(in super::super) fn take(
        &mut self,
        root: &Root,
        path: &[u8],
        what: Effect,
    ) -> Result<Option<PathBuf>, ProtectError> {
        self.take_from(root, path, path, what)
    }

    /// [`Quarantine::take`] of what was at `origin` until it was moved aside.
    pub(in super::super) fn take_from(
        &mut self,
        root: &Root,
        path: &[u8],
        origin: &[u8],
        what: Effect,
    ) -> Result<Option<PathBuf>, ProtectError> {
        let item = self.attempts.to_string();
        self.attempts += 1;
        let (folder, batch) = match &mut self.batch {
            Some(batch) => batch,
            none @ None => match create(&self.store) {
                Ok(batch) => none.insert(batch),
                Err(error) => return subtree::remove(root, path).map(|()| None).map_err(|_| error),
            },
        };
        let (directory, name) = split(path);
        let fail = |step, error| ProtectError::io(step, absolute(root, path), error);
        let moved = nofollow::as_owner(&root.fd, directory, Some(name), || {
            let parent = nofollow::open_path(&root.fd, directory)?;
            renameat2(
                &parent,
                name,
                batch.as_fd(),
                item.as_str(),
                RenameFlags::RENAME_NOREPLACE,
            )
        });
        let complete = match moved {
            Ok(()) => true,
            // EINVAL: a file system without RENAME_NOREPLACE.
            Err(Errno::EXDEV | Errno::EINVAL | Errno::ENOSYS) => {
                let copied = subtree::copy(root, path, batch.as_fd(), item.as_bytes(), &mut self.budget);
                subtree::remove(root, path).map_err(|error| fail("remove", error))?;
                copied.is_ok()
            }
            Err(error) => {
                subtree::remove(root, path).map_err(|_| fail("move to quarantine", error))?;
                false
            }
        };
        // Its name says that it is incomplete.
        let item = if complete {
            item
        } else {
            let named = format!("{item}-incomplete");
            let renamed = renameat(batch.as_fd(), item.as_str(), batch.as_fd(), named.as_str());
            if renamed.is_ok() { named } else { item }
        };
        let destination = folder.join(&item);
        let Ok(kept) = std::fs::symlink_metadata(&destination) else {
            return Ok(None);
        };
        if kept.is_dir() {
            self.count(&destination);
            // Best effort: the folder above is private in any case.
            let batch = self.batch.as_ref().map(|(_, batch)| batch);
            let shut = |batch| fchmodat(batch, item.as_str(), Mode::empty(), FchmodatFlags::NoFollowSymlink);
            let _shut = batch.map(shut);
        } else {
            self.count(&destination);
        }
        self.list(item, root, origin, what, complete);
        Ok(Some(destination))
    }

    /// Ends the batch: writes down where everything came from, and what there is.
    pub(crate) fn close(&self) {
        self.write_manifest();
        if self.batch.is_some() {
            quota::add(&self.store, self.all);
        }
    }

    /// Counts a thing that is kept.
    fn count(&mut self, destination: &Path) {
        let usage = Usage::of(destination);
        self.all.add(usage);
        if std::fs::symlink_metadata(destination).is_ok_and(|kept| kept.is_dir()) {
            self.directories.add(usage);
            if let Some((folder, _)) = &self.batch {
                quota::write_batch_usage(folder, self.directories);
            }
        }
    }

    /// Notes where a thing came from.
    fn list(&mut self, item: String, root: &Root, path: &[u8], what: Effect, complete: bool) {
        self.taken += 1;
        let origin = absolute(root, path);
        // Once as text, twice as hexadecimal, and what stands around it.
        self.listed += 3 * origin.as_os_str().len() + 128;
        if self.listed <= LISTED {
            self.manifest.push(Item {
                name: item,
                path: crate::policy::path::display(&origin),
                path_hex: hex(origin.as_os_str().as_bytes()),
                what: what.label(),
                complete,
            });
            // Not each time, which for very many would cost their square; a crash loses the end of the list alone.
            if self.manifest.len().is_power_of_two() {
                self.write_manifest();
            }
        }
    }

    /// Writes down where everything came from. Best effort: what is kept is named in the violation too.
    fn write_manifest(&self) {
        let Some((folder, _)) = &self.batch else { return };
        let path = folder.join(MANIFEST);
        let unlisted = self.taken - self.manifest.len();
        let more = (unlisted > 0).then_some(Line::Unlisted { unlisted });
        let lines: Vec<Line<'_>> = self.manifest.iter().map(Line::Item).chain(more).collect();
        let _unwritten = serde_json::to_vec_pretty(&lines)
            .map_err(std::io::Error::from)
            .and_then(|text| File::create(&path)?.write_all(&text));
    }
}

fn create(store: &Path) -> Result<(PathBuf, OwnedFd), ProtectError> {
    let folder = store::folder(store, QUARANTINE)?.join(store::unique_name());
    let folder = store::folder(&folder, "")?;
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let fd = open(&folder, flags, Mode::empty()).map_err(|error| ProtectError::io("open", folder.clone(), error))?;
    Ok((folder, fd))
}
