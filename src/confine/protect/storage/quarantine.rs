//! The quarantine: intruders are kept there for a person to look at, and never run.
//!
//! One batch per settling, `quarantine/<time>-<pid>/` in the store, with the things moved there as `0`,
//! `1`, … and a `manifest.json` that says where each came from. A directory is shut (mode 0) once it is
//! there: a git directory among the things would otherwise be obeyed by any prompt that runs git where a
//! person looks around.
//!
//! Nothing is removed that is not wholly kept. On another file system the thing is copied, up to a limit for all. What is
//! beyond the limit, or cannot be copied, is set aside: it stays on its own file system, as far up in the root as it can be
//! moved, as `stockade-quarantine-N-NAME.kept`, which no tool reads and no list has. What cannot even be renamed stays, and is an error.
//!
//! There is [`quota`](super::quota) for so much: where that is full no further command starts, and nothing is dropped.
//!
//! The manifest lists as much as [`LISTED`] has room for, and then how many more there are: a command chooses how many names it
//! makes, and how long they are.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, RenameFlags, open, renameat, renameat2};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, mkdirat};

use super::super::entry::nofollow::{self, join, split};
use super::super::entry::state::State;
use super::super::entry::subtree;
use super::super::entry::subtree::Budget;
use super::super::error::ProtectError;
use super::super::roots::{Root, absolute};
use super::super::violation::Effect;
use super::quota::{self, MANIFEST, QUARANTINE, Usage};
use super::store;
use crate::policy::hex::hex;

/// Begins the name of what is set aside, before a number.
pub(crate) const ASIDE: &str = "stockade-quarantine-";
/// Ends it: neither what a name begins nor what it ends with makes a tool read it.
const KEPT: &str = ".kept";
/// The most bytes of a name that are kept of what is set aside.
const MAX_NAME: usize = 150;
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
    /// What stayed in a root under another name.
    asides: HashSet<PathBuf>,
}

/// One thing that was taken.
#[derive(Debug, serde::Serialize)]
struct Item {
    /// Its name in the batch, or where it was set aside.
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
            asides: HashSet::new(),
        }
    }

    /// Keeps a state of a private copy of `origin`; returns where, if it could be kept.
    pub(in super::super) fn keep(&mut self, origin: &Path, what: Effect, state: &State) -> Option<PathBuf> {
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
        let mut file = options.open(&destination).ok()?;
        if file.write_all(content).is_err() {
            // Half a copy keeps nothing.
            let _none = std::fs::remove_file(&destination);
            return None;
        }
        self.count(&destination);
        self.list(item, origin, what, true);
        Some(destination)
    }

    /// Moves the thing `path` of one root, which is part of a private copy of `origin`; where, if it could be moved.
    pub(in super::super) fn move_in(
        &mut self,
        root: &Root,
        path: &[u8],
        origin: &Path,
        what: Effect,
    ) -> Option<PathBuf> {
        let (item, destination, batch) = self.next_place()?;
        rename((root.fd.as_fd(), path), (batch.as_fd(), item.as_bytes())).ok()?;
        self.count(&destination);
        shut(&batch, &item, &destination);
        self.list(item, origin, what, true);
        Some(destination)
    }

    /// The same for all that lies in a directory, which stays.
    pub(in super::super) fn move_entries(
        &mut self,
        root: &Root,
        directory: &[u8],
        origin: &Path,
        what: Effect,
    ) -> Option<PathBuf> {
        let (item, destination, batch) = self.next_place()?;
        mkdirat(&batch, item.as_str(), Mode::S_IRWXU).ok()?;
        let entries = nofollow::as_owner(&root.fd, directory, None, || {
            subtree::names(&nofollow::open_directory(&root.fd, directory)?)
        });
        let entries = entries.ok()?;
        let are_moved = entries.iter().all(|name| {
            let to = join(item.as_bytes(), name);
            rename((root.fd.as_fd(), &join(directory, name)), (batch.as_fd(), &to)).is_ok()
        });
        self.count(&destination);
        shut(&batch, &item, &destination);
        self.list(item, origin, what, are_moved);
        are_moved.then_some(destination)
    }

    /// Keeps a copy of the thing `path` of one root, which took the place of `origin`; where, if all of it could be kept.
    pub(in super::super) fn copy(&mut self, root: &Root, path: &[u8], origin: &Path, what: Effect) -> Option<PathBuf> {
        let (item, destination, batch) = self.next_place()?;
        let copied = subtree::copy(root, path, batch.as_fd(), item.as_bytes(), &mut self.budget);
        if copied.is_err() {
            // Half a copy keeps nothing.
            let _none = std::fs::remove_dir_all(&destination).or_else(|_| std::fs::remove_file(&destination));
            return None;
        }
        self.count(&destination);
        shut(&batch, &item, &destination);
        self.list(item, origin, what, true);
        Some(destination)
    }

    /// The next name in the batch, where that is, and the batch; `None` where there can be none.
    fn next_place(&mut self) -> Option<(String, PathBuf, OwnedFd)> {
        let item = self.attempts.to_string();
        self.attempts += 1;
        let (folder, batch) = self.batch().ok()?;
        Some((item.clone(), folder.join(&item), batch.try_clone().ok()?))
    }

    fn batch(&mut self) -> Result<&(PathBuf, OwnedFd), ProtectError> {
        match &mut self.batch {
            Some(batch) => Ok(batch),
            none @ None => Ok(none.insert(create(&self.store)?)),
        }
    }

    /// Moves the entry `path` out of the root, or aside in it, and returns where it is.
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
        let place = self.next_place();
        let item = place.as_ref().map(|(item, ..)| item.clone()).unwrap_or_default();
        let batch = place.map(|(_, destination, batch)| (destination, batch));
        let is_moved = |batch: &OwnedFd| rename((root.fd.as_fd(), path), (batch.as_fd(), item.as_bytes())).is_ok();
        if let Some((destination, batch)) = &batch
            && is_moved(batch)
        {
            self.count(destination);
            shut(batch, &item, destination);
            self.list(item, &absolute(root, origin), what, true);
            return Ok(Some(destination.clone()));
        }
        // Under its own name it could be run or obeyed while it is copied.
        let aside = set_aside(root, path, split(origin).1)?;
        let place = absolute(root, &aside);
        self.asides.insert(place.clone());
        if let Some((destination, batch)) = batch {
            if subtree::copy(root, &aside, batch.as_fd(), item.as_bytes(), &mut self.budget).is_ok() {
                // What cannot be removed is kept twice.
                let _twice = subtree::remove(root, &aside);
                self.count(&destination);
                shut(&batch, &item, &destination);
                self.list(item, &absolute(root, origin), what, true);
                return Ok(Some(destination));
            }
            // Half a copy keeps nothing.
            let _none = std::fs::remove_dir_all(&destination).or_else(|_| std::fs::remove_file(&destination));
        }
        self.list(
            crate::policy::path::display(&place),
            &absolute(root, origin),
            what,
            true,
        );
        Ok(Some(place))
    }

    /// Whether it lies where something was set aside.
    pub(crate) fn is_set_aside(&self, path: &Path) -> bool {
        self.asides.contains(path)
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
    fn list(&mut self, item: String, origin: &Path, what: Effect, complete: bool) {
        self.taken += 1;
        // Once as text, twice as hexadecimal, and what stands around it.
        self.listed += 3 * origin.as_os_str().len() + 128;
        if self.listed <= LISTED {
            self.manifest.push(Item {
                name: item,
                path: crate::policy::path::display(origin),
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

/// Takes every right to a directory that is kept, so that no tool looks for settings in it. Best effort: the folder above is private in any
/// case.
fn shut(batch: &OwnedFd, item: &str, destination: &Path) {
    if std::fs::symlink_metadata(destination).is_ok_and(|kept| kept.is_dir()) {
        let _shut = fchmodat(batch, item, Mode::empty(), FchmodatFlags::NoFollowSymlink);
    }
}

/// Renames an entry of a root, as far up in the root as it can be moved: further down what is around it may be protected. Returns
/// where it is.
fn set_aside(root: &Root, path: &[u8], name: &[u8]) -> Result<Vec<u8>, ProtectError> {
    let mut why = Errno::ENOENT;
    let name = &name[..name.len().min(MAX_NAME)];
    let below = nofollow::prefixes(split(path).0).filter(|above| !above.is_empty());
    for above in std::iter::once(&b""[..]).chain(below) {
        // A command may have taken the first names.
        let numbers = (0..100).map(|number: u32| number.to_string());
        for number in numbers.chain(std::iter::once_with(store::unique_name)) {
            let aside = join(
                above,
                &[ASIDE.as_bytes(), number.as_bytes(), b"-", name, KEPT.as_bytes()].concat(),
            );
            match rename((root.fd.as_fd(), path), (root.fd.as_fd(), &aside)) {
                Ok(()) => return Ok(aside),
                Err(Errno::EEXIST) => {}
                Err(error) => {
                    why = error;
                    break;
                }
            }
        }
    }
    Err(ProtectError::Active {
        path: absolute(root, path),
        source: why.into(),
    })
}

/// Renames an entry over nothing.
fn rename(from: (BorrowedFd<'_>, &[u8]), to: (BorrowedFd<'_>, &[u8])) -> nix::Result<()> {
    let (from_directory, from_name) = split(from.1);
    let (to_directory, to_name) = split(to.1);
    nofollow::as_owner(from.0, from_directory, Some(from_name), || {
        nofollow::as_owner(to.0, to_directory, None, || {
            let from_parent = nofollow::open_path(from.0, from_directory)?;
            let to_parent = nofollow::open_path(to.0, to_directory)?;
            match renameat2(
                &from_parent,
                from_name,
                &to_parent,
                to_name,
                RenameFlags::RENAME_NOREPLACE,
            ) {
                // A file system without RENAME_NOREPLACE.
                Err(Errno::EINVAL | Errno::ENOSYS) => match nofollow::stat(&to_parent, to_name) {
                    Err(Errno::ENOENT) => renameat(&from_parent, from_name, &to_parent, to_name),
                    Ok(_) => Err(Errno::EEXIST),
                    Err(error) => Err(error),
                },
                renamed => renamed,
            }
        })
    })
}

fn create(store: &Path) -> Result<(PathBuf, OwnedFd), ProtectError> {
    let folder = store::folder(store, QUARANTINE)?.join(store::unique_name());
    let folder = store::folder(&folder, "")?;
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let fd = open(&folder, flags, Mode::empty()).map_err(|error| ProtectError::io("open", folder.clone(), error))?;
    Ok((folder, fd))
}
