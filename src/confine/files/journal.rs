//! Changes that are made one after the other, and taken back when a later one fails.
//!
//! Until the last has been made nothing is lost: what a file had is kept beside it, what is removed is only put aside.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, RenameFlags, renameat, renameat2};
use nix::sys::stat::{fstat, fstatat};
use nix::unistd::{UnlinkatFlags, fsync, linkat, unlinkat};

use super::failure::{About, Answer, failure};
use super::place::{Place, open_below};
use super::protocol::{State, Tree, Why};
use super::state::is_still;
use super::temporary::{Temporary, fresh};
use super::tree;

/// A change that is ready to be made.
#[derive(Debug)]
pub(super) struct Step {
    /// The path it is named by.
    pub(super) path: OsString,
    /// What must be there.
    pub(super) expected: State,
    /// What is done.
    pub(super) action: Action,
}

/// What is done.
#[derive(Debug)]
pub(super) enum Action {
    /// New content takes the place of what is there.
    Put(Place, Temporary),
    /// It gets another name.
    Move(Place, Place),
    /// It goes.
    Remove(Place, Tree),
}

/// A change that was made, and can be taken back.
#[derive(Debug)]
enum Done {
    /// The old content is where the temporary is.
    Replaced(Place, Temporary),
    /// Nothing was there.
    Created(Place, Temporary),
    /// From the first place to the second.
    Moved(Place, Place),
    /// From the first place to the second, a hidden one beside it.
    PutAside(OsString, Place, Place, State),
}

/// Makes all changes, or none.
pub(super) fn commit(steps: Vec<Step>) -> Answer<()> {
    let mut done = Vec::with_capacity(steps.len());
    // Removals last: until then nothing has to be got back from where it was put aside.
    let (removals, others): (Vec<Step>, Vec<Step>) = steps
        .into_iter()
        .partition(|step| matches!(step.action, Action::Remove(..)));
    for step in others.into_iter().chain(removals) {
        let path = step.path.clone();
        match make(step).about(path) {
            Ok(made) => done.push(made),
            Err(failed) => {
                take_back(done);
                return Err(failed);
            }
        }
    }
    let mut done = remove_for_good(done)?;
    // Before anything is waited for: whoever is killed from here on leaves nothing behind.
    for one in &mut done {
        if let Done::Replaced(_, old) = one {
            old.discard();
        }
    }
    keep(&done);
    Ok(())
}

fn make(step: Step) -> Result<Done, Why> {
    let Step { path, expected, action } = step;
    match action {
        Action::Put(place, mut temporary) if expected == State::Absent => {
            let there = place.directory.as_fd();
            temporary.appear()?;
            rename_to_free(there, &temporary.name, there, &place.name).map_err(appeared)?;
            Ok(Done::Created(place, temporary))
        }
        Action::Put(place, temporary) => replace(place, temporary, &expected),
        Action::Move(from, to) => {
            rename_to_free(from.directory.as_fd(), &from.name, to.directory.as_fd(), &to.name).map_err(appeared)?;
            let found = is_still(&expected, &to.directory, &to.name);
            confirm(found, Done::Moved(from, to))
        }
        Action::Remove(place, tree) => {
            let there = place.directory.as_fd();
            let ((), name) = fresh(|name| rename_to_free(there, &place.name, there, name)).map_err(appeared)?;
            let directory = place.directory.try_clone();
            let Ok(directory) = directory else {
                let _back = rename_to_free(there, &name, there, &place.name);
                return Err(Why::System(libc::EMFILE));
            };
            let aside = Place { directory, name };
            let found = is_still(&expected, &aside.directory, &aside.name);
            let is_full = matches!((&expected, tree), (State::Directory { .. }, Tree::Empty)) && {
                !matches!(tree::is_empty(&aside), Ok(true))
            };
            let done = confirm(found, Done::PutAside(path, place, aside, expected))?;
            if is_full {
                take_back(vec![done]);
                return Err(Why::NotEmpty);
            }
            Ok(done)
        }
    }
}

/// What is in the way was not there when it was looked at, or what is missing was.
fn appeared(errno: Errno) -> Why {
    match errno {
        Errno::EEXIST | Errno::ENOENT => Why::Changed,
        other => other.into(),
    }
}

/// Takes back what was done to something else than what was looked at.
fn confirm(found: nix::Result<bool>, done: Done) -> Result<Done, Why> {
    let why = match found {
        Ok(true) => return Ok(done),
        Ok(false) => Why::Changed,
        Err(errno) => errno.into(),
    };
    take_back(vec![done]);
    Err(why)
}

/// Puts new content in the place of a file, which is then where the temporary was.
fn replace(place: Place, mut temporary: Temporary, expected: &State) -> Result<Done, Why> {
    let there = place.directory.as_fd();
    temporary.appear()?;
    match exchange(there, &temporary.name, &place.name) {
        Ok(()) => {
            let found = is_still(expected, there, &temporary.name);
            confirm(found, Done::Replaced(place, temporary))
        }
        Err(Errno::EINVAL) => {
            replace_by_link(there, &place.name, &mut temporary, expected)?;
            Ok(Done::Replaced(place, temporary))
        }
        Err(errno) => Err(appeared(errno)),
    }
}

fn exchange(there: BorrowedFd<'_>, one: &OsStr, other: &OsStr) -> nix::Result<()> {
    renameat2(there, one, there, other, RenameFlags::RENAME_EXCHANGE)
}

/// The same where a file system cannot exchange two names: the old file gets a second name first.
pub(super) fn replace_by_link(
    there: BorrowedFd<'_>,
    name: &OsStr,
    temporary: &mut Temporary,
    expected: &State,
) -> Result<(), Why> {
    let ((), kept) = fresh(|kept| linkat(there, name, there, kept, AtFlags::empty())).map_err(appeared)?;
    let result = match is_still(expected, there, &kept) {
        Ok(true) => renameat(there, temporary.name.as_os_str(), there, name).map_err(Why::from),
        Ok(false) => Err(Why::Changed),
        Err(errno) => Err(errno.into()),
    };
    match result {
        Ok(()) => temporary.name = kept,
        Err(_) => drop(unlinkat(there, kept.as_os_str(), UnlinkatFlags::NoRemoveDir)),
    }
    result
}

/// Renames to where nothing may be.
fn rename_to_free(from: BorrowedFd<'_>, old: &OsStr, to: BorrowedFd<'_>, new: &OsStr) -> nix::Result<()> {
    match renameat2(from, old, to, new, RenameFlags::RENAME_NOREPLACE) {
        Err(Errno::EINVAL) => link_to_free(from, old, to, new),
        result => result,
    }
}

/// The same where a file system cannot rename so: a second name is never given where one is.
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

/// Takes back what was done, the last first. Each may fail because of others who work there; the rest is taken back.
fn take_back(done: Vec<Done>) {
    for done in done.into_iter().rev() {
        let _taken_back = match &done {
            Done::Replaced(place, temporary) => {
                let there = place.directory.as_fd();
                match exchange(there, &temporary.name, &place.name) {
                    Err(Errno::EINVAL) => renameat(there, temporary.name.as_os_str(), there, place.name.as_os_str()),
                    result => result,
                }
            }
            Done::Created(place, temporary) => {
                let there = place.directory.as_fd();
                rename_to_free(there, &place.name, there, &temporary.name)
            }
            Done::Moved(from, to) | Done::PutAside(_, from, to, _) => {
                rename_to_free(to.directory.as_fd(), &to.name, from.directory.as_fd(), &from.name)
            }
        };
    }
}

/// Removes what was put aside, directories first: that alone may fail.
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
            take_back(rest);
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

/// Has the directories written to disk.
fn keep(done: &[Done]) {
    let places = done.iter().flat_map(|done| match done {
        Done::Replaced(place, _) | Done::Created(place, _) => [Some(place), None],
        Done::Moved(from, to) | Done::PutAside(_, from, to, _) => [Some(from), Some(to)],
    });
    keep_entries(places.flatten());
}

/// Has the directories of these places written to disk. Where that cannot be, the change is made all the same.
pub(super) fn keep_entries<'a>(places: impl Iterator<Item = &'a Place>) {
    let mut seen = Vec::new();
    for place in places {
        let identity = fstat(&place.directory).map(|stat| (stat.st_dev, stat.st_ino));
        if seen.contains(&identity) {
            continue;
        }
        seen.push(identity);
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        let _kept = open_below(&place.directory, OsStr::new("."), flags).and_then(fsync);
    }
}
