//! Changes that are made one after the other, and rolled back when a later one fails.
//!
//! Until the last is made nothing is lost: old content is kept beside the file, and what is removed is only renamed.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, renameat, renameat2};
use nix::sys::stat::{fstat, fstatat};
use nix::unistd::{UnlinkatFlags, fsync, linkat, unlinkat};

use super::clock::Clock;
use super::contents;
use super::failure::{About, Answer, failure};
use super::location::{Location, open_below};
use super::protocol::{State, Tree, Why};
use super::state::is_still;
use super::temporary::{Temporary, with_free_name};
use super::tree;

/// How long what is in a directory is compared with what was approved.
const COMPARE_MS: u64 = 30_000;

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) path: OsString,
    pub(super) expected: State,
    pub(super) action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    /// Puts new content in place.
    Put(Location, Temporary),
    Move(Location, Location),
    /// Removes what is there; of a directory, only with contents of this digest.
    Remove(Location, Tree, Option<[u8; 32]>),
}

/// A change that was made, and can be rolled back.
#[derive(Debug)]
enum Done {
    /// The old content is where the temporary is.
    Replaced(Location, Temporary),
    /// Nothing was there.
    Created(Location, Temporary),
    Moved(Location, Location),
    /// Renamed to a hidden name in the same directory.
    PutAside(OsString, Location, Location, State),
}

/// Makes all changes, or none.
pub(super) fn commit(steps: Vec<Step>) -> Answer<()> {
    let mut done = Vec::with_capacity(steps.len());
    // Removals last, so that fewer need to be rolled back.
    let (removals, others): (Vec<Step>, Vec<Step>) = steps
        .into_iter()
        .partition(|step| matches!(step.action, Action::Remove(..)));
    for step in others.into_iter().chain(removals) {
        let path = step.path.clone();
        match make(step).about(path) {
            Ok(made) => done.push(made),
            Err(failed) => {
                roll_back(done);
                return Err(failed);
            }
        }
    }
    let mut done = remove_for_good(done)?;
    // Before waiting for the disk: a process that is killed from here on leaves no files behind.
    for one in &mut done {
        if let Done::Replaced(_, old) = one {
            old.discard();
        }
    }
    sync_all(&done);
    Ok(())
}

fn make(step: Step) -> Result<Done, Why> {
    let Step { path, expected, action } = step;
    match action {
        Action::Put(location, mut temporary) if expected == State::Absent => {
            let directory = location.directory.as_fd();
            temporary.give_name()?;
            rename_to_free(directory, &temporary.name, directory, &location.name).map_err(changed_meanwhile)?;
            Ok(Done::Created(location, temporary))
        }
        Action::Put(location, temporary) => replace(location, temporary, &expected),
        Action::Move(from, to) => {
            rename_to_free(from.directory.as_fd(), &from.name, to.directory.as_fd(), &to.name)
                .map_err(changed_meanwhile)?;
            let found = is_still(&expected, &to.directory, &to.name);
            confirm(found, Done::Moved(from, to))
        }
        Action::Remove(location, tree, contents) => {
            let directory = location.directory.as_fd();
            let ((), name) = with_free_name(|name| rename_to_free(directory, &location.name, directory, name))
                .map_err(changed_meanwhile)?;
            let Ok(clone) = location.directory.try_clone() else {
                let _restored = rename_to_free(directory, &name, directory, &location.name);
                return Err(Why::System(libc::EMFILE));
            };
            let aside = Location { directory: clone, name };
            let found = is_still(&expected, &aside.directory, &aside.name);
            let is_full = matches!((&expected, tree), (State::Directory { .. }, Tree::Empty)) && {
                !matches!(tree::is_empty(&aside), Ok(true))
            };
            let done = confirm(found, Done::PutAside(path, location, aside, expected))?;
            if is_full {
                roll_back(vec![done]);
                return Err(Why::NotEmpty);
            }
            // Under this name nobody else finds it, to change it after that.
            if contents.is_some() && !is_same_content(&done, contents) {
                roll_back(vec![done]);
                return Err(Why::Changed);
            }
            Ok(done)
        }
    }
}

/// Whether the directory that was put aside has contents of this digest.
fn is_same_content(done: &Done, digest: Option<[u8; 32]>) -> bool {
    match done {
        Done::PutAside(_, _, aside, _) => contents::of(aside, Clock::start(COMPARE_MS)).contents.digest == digest,
        Done::Replaced(..) | Done::Created(..) | Done::Moved(..) => true,
    }
}

/// An error that shows a change since the state was read.
fn changed_meanwhile(errno: Errno) -> Why {
    match errno {
        Errno::EEXIST | Errno::ENOENT => Why::Changed,
        other => other.into(),
    }
}

/// Rolls back what was done to another file than expected.
fn confirm(found: nix::Result<bool>, done: Done) -> Result<Done, Why> {
    let why = match found {
        Ok(true) => return Ok(done),
        Ok(false) => Why::Changed,
        Err(errno) => errno.into(),
    };
    roll_back(vec![done]);
    Err(why)
}

/// Exchanges a file with the new content, so that the temporary is the old file.
fn replace(location: Location, mut temporary: Temporary, expected: &State) -> Result<Done, Why> {
    let directory = location.directory.as_fd();
    temporary.give_name()?;
    match exchange(directory, &temporary.name, &location.name) {
        Ok(()) => {
            let found = is_still(expected, directory, &temporary.name);
            confirm(found, Done::Replaced(location, temporary))
        }
        Err(Errno::EINVAL) => {
            replace_by_link(directory, &location.name, &mut temporary, expected)?;
            Ok(Done::Replaced(location, temporary))
        }
        Err(errno) => Err(changed_meanwhile(errno)),
    }
}

fn exchange(directory: BorrowedFd<'_>, one: &OsStr, other: &OsStr) -> nix::Result<()> {
    renameat2(directory, one, directory, other, RenameFlags::RENAME_EXCHANGE)
}

/// The same where a file system cannot exchange two names: the old file gets a second name first.
pub(super) fn replace_by_link(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    temporary: &mut Temporary,
    expected: &State,
) -> Result<(), Why> {
    let ((), kept) =
        with_free_name(|kept| linkat(directory, name, directory, kept, AtFlags::empty())).map_err(changed_meanwhile)?;
    let result = match is_still(expected, directory, &kept) {
        Ok(true) => renameat(directory, temporary.name.as_os_str(), directory, name).map_err(Why::from),
        Ok(false) => Err(Why::Changed),
        Err(errno) => Err(errno.into()),
    };
    match result {
        Ok(()) => temporary.name = kept,
        Err(_) => drop(unlinkat(directory, kept.as_os_str(), UnlinkatFlags::NoRemoveDir)),
    }
    result
}

/// Renames without replacing anything.
fn rename_to_free(from: BorrowedFd<'_>, old: &OsStr, to: BorrowedFd<'_>, new: &OsStr) -> nix::Result<()> {
    match renameat2(from, old, to, new, RenameFlags::RENAME_NOREPLACE) {
        Err(Errno::EINVAL) => link_to_free(from, old, to, new),
        result => result,
    }
}

/// The same with a hard link, for file systems that cannot.
pub(super) fn link_to_free(from: BorrowedFd<'_>, old: &OsStr, to: BorrowedFd<'_>, new: &OsStr) -> nix::Result<()> {
    let stat = fstatat(from, old, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    if stat.st_mode & libc::S_IFMT == libc::S_IFDIR {
        // A directory has one name only.
        return Err(Errno::EINVAL);
    }
    linkat(from, old, to, new, AtFlags::empty())?;
    unlinkat(from, old, UnlinkatFlags::NoRemoveDir).inspect_err(|_| {
        let _removed = unlinkat(to, new, UnlinkatFlags::NoRemoveDir);
    })
}

/// Rolls back, the last first. One may fail because of other processes; the rest is rolled back.
fn roll_back(done: Vec<Done>) {
    for done in done.into_iter().rev() {
        let _rolled_back = match &done {
            Done::Replaced(location, temporary) => {
                let directory = location.directory.as_fd();
                match exchange(directory, &temporary.name, &location.name) {
                    Err(Errno::EINVAL) => renameat(
                        directory,
                        temporary.name.as_os_str(),
                        directory,
                        location.name.as_os_str(),
                    ),
                    result => result,
                }
            }
            Done::Created(location, temporary) => {
                let directory = location.directory.as_fd();
                rename_to_free(directory, &location.name, directory, &temporary.name)
            }
            Done::Moved(from, to) | Done::PutAside(_, from, to, _) => {
                rename_to_free(to.directory.as_fd(), &to.name, from.directory.as_fd(), &from.name)
            }
        };
    }
}

/// Removes what was put aside; directories first, because only they may fail.
fn remove_for_good(done: Vec<Done>) -> Answer<Vec<Done>> {
    let is_directory = |done: &Done| matches!(done, Done::PutAside(_, _, _, State::Directory { .. }));
    let (directories, mut rest): (Vec<Done>, Vec<Done>) = done.into_iter().partition(is_directory);
    let mut directories = directories.into_iter();
    while let Some(done) = directories.next() {
        if let Done::PutAside(path, _, aside, _) = &done
            && let Err(errno) = tree::remove(aside)
        {
            let failed = failure(path, errno.into());
            rest.push(done);
            rest.extend(directories);
            roll_back(rest);
            return Err(failed);
        }
    }
    for done in &rest {
        if let Done::PutAside(_, _, aside, _) = done {
            // It was renamed in this directory, so it can be removed from it.
            let _removed = unlinkat(&aside.directory, aside.name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
    Ok(rest)
}

fn sync_all(done: &[Done]) {
    let locations = done.iter().flat_map(|done| match done {
        Done::Replaced(location, _) | Done::Created(location, _) => [Some(location), None],
        Done::Moved(from, to) | Done::PutAside(_, from, to, _) => [Some(from), Some(to)],
    });
    sync_directories(locations.flatten());
}

/// Writes the directories of these locations to disk. Failing does not undo the change.
pub(super) fn sync_directories<'a>(locations: impl Iterator<Item = &'a Location>) {
    let mut synced = Vec::new();
    for location in locations {
        let identity = fstat(&location.directory).map(|stat| (stat.st_dev, stat.st_ino));
        if synced.contains(&identity) {
            continue;
        }
        synced.push(identity);
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        let _synced = open_below(&location.directory, OsStr::new("."), flags).and_then(fsync);
    }
}
