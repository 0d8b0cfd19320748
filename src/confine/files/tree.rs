//! Directory trees: counted, checked, removed, with bounded stack and descriptors, and never into another mount.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{OFlag, RenameFlags, renameat2};
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, unlinkat};

use super::clock::Clock;
use super::location::{Location, open_below};
use crate::confine::sys::{entries, getdents};

/// Bytes of a directory that are read at a time.
const LISTING: usize = 64 * 1024;

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DirectoryItem {
    pub(super) name: OsString,
    /// `d_type`; file systems need not say.
    pub(super) kind: u8,
}

/// The entries of a directory that is open for reading, part by part.
pub(super) fn each_part(
    directory: impl AsFd,
    mut visit: impl FnMut(Vec<DirectoryItem>) -> ControlFlow<()>,
) -> nix::Result<()> {
    let mut buffer = vec![0; LISTING];
    loop {
        let filled = getdents(&directory, &mut buffer)?;
        if filled == 0 {
            return Ok(());
        }
        let part = entries(buffer.get(..filled).unwrap_or_default())
            .map(|(name, kind)| DirectoryItem {
                name: OsStr::from_bytes(name).to_owned(),
                kind,
            })
            .collect();
        if visit(part) == ControlFlow::Break(()) {
            return Ok(());
        }
    }
}

pub(super) fn is_empty(location: &Location) -> nix::Result<bool> {
    let directory = open_below(
        &location.directory,
        &location.name,
        OFlag::O_RDONLY | OFlag::O_DIRECTORY,
    )?;
    let mut empty = true;
    each_part(directory, |part| {
        empty &= part.is_empty();
        if empty {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(empty)
}

/// Counts the entries in a tree that are no directories, as far as possible.
pub(super) fn count(location: &Location, clock: Clock) -> u64 {
    let mut files = 0u64;
    // Unreadable directories are not counted; removal is checked before it starts.
    let _counted = walk(location, |_, part| {
        files += part.others.len() as u64;
        Ok(if clock.is_over() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    });
    files
}

/// Checks that a tree could be removed; changes nothing.
pub(super) fn check_removable(location: &Location) -> nix::Result<()> {
    walk(location, |directory, part| {
        faccessat(
            directory,
            ".",
            AccessFlags::W_OK | AccessFlags::X_OK,
            nix::fcntl::AtFlags::AT_EACCESS,
        )?;
        for listed in part.directories.iter().chain(&part.others) {
            // Renaming an entry to itself changes nothing, but needs the right to remove it.
            let name = listed.name.as_os_str();
            renameat2(directory, name, directory, name, RenameFlags::empty())?;
            // A mount point cannot be removed.
            open_below(directory, name, OFlag::O_PATH)?;
        }
        Ok(ControlFlow::Continue(()))
    })
    .map(drop)
}

/// Removes a tree.
pub(super) fn remove(location: &Location) -> nix::Result<()> {
    let directories = walk(location, |directory, part| {
        for listed in &part.others {
            match unlinkat(directory, listed.name.as_os_str(), UnlinkatFlags::NoRemoveDir) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for directory in directories.iter().rev() {
        let name = directory.file_name().unwrap_or_default();
        match directory.parent().filter(|above| !above.as_os_str().is_empty()) {
            Some(above) => {
                let above = open_below(
                    &location.directory,
                    above.as_os_str(),
                    OFlag::O_PATH | OFlag::O_DIRECTORY,
                )?;
                unlinkat(above, name, UnlinkatFlags::RemoveDir)?;
            }
            None => unlinkat(&location.directory, name, UnlinkatFlags::RemoveDir)?,
        }
    }
    Ok(())
}

/// Some entries of a directory.
#[derive(Debug)]
struct Part {
    directories: Vec<DirectoryItem>,
    others: Vec<DirectoryItem>,
}

/// Visits the parts of each directory of a tree, parents first. Returns the directories in that order, relative to the location.
fn walk(
    location: &Location,
    mut visit: impl FnMut(&OwnedFd, &Part) -> nix::Result<ControlFlow<()>>,
) -> nix::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    let mut left = vec![PathBuf::from(&location.name)];
    while let Some(path) = left.pop() {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        let directory = open_below(&location.directory, path.as_os_str(), flags)?;
        let mut result = Ok(ControlFlow::Continue(()));
        each_part(&directory, |listed| {
            let (directories, others) = listed.into_iter().partition(|listed| is_directory(&directory, listed));
            let part = Part { directories, others };
            left.extend(part.directories.iter().map(|listed| path.join(&listed.name)));
            result = visit(&directory, &part);
            result.unwrap_or(ControlFlow::Break(()))
        })?;
        all.push(path);
        if result? == ControlFlow::Break(()) {
            return Ok(all);
        }
    }
    Ok(all)
}

fn is_directory(directory: &OwnedFd, listed: &DirectoryItem) -> bool {
    match listed.kind {
        libc::DT_DIR => true,
        libc::DT_UNKNOWN => open_below(directory, &listed.name, OFlag::O_PATH | OFlag::O_DIRECTORY).is_ok(),
        _ => false,
    }
}
