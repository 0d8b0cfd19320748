//! Directories with protected names that their owner cannot enter.
//!
//! No mount can cover what lies in one. A command that shuts one would keep the next from starting, so it is opened again when the
//! command is over. One that a person shut is left to them: the start names it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use super::super::entry::nofollow::{self, Identity};
use super::super::entry::restore::set_mode;
use super::super::entry::state::State;
use super::super::error::ProtectError;
use super::super::naming::class::Class;
use super::super::tree::inventory::{Directory, Inventory};
use super::super::tree::stamp::Stamp;
use super::super::violation::Effect;
use super::settlement::Settlement;

/// What the owner needs to list a directory and to get to what is in it.
const TO_LIST: u32 = 0o500;
/// All rights of the owner.
const ALL: u32 = 0o700;

impl Settlement<'_> {
    /// Lets the owner into the directories with protected names that commands have shut: as far as he was let in before, and
    /// where they are new so far that he can list them.
    pub(crate) fn reopen_directories(&mut self, inventory: &Inventory, earlier: Option<&Inventory>) {
        let record = self.record;
        let modes_before = record.ancestors.iter();
        let modes_before: HashMap<(u16, &[u8]), Option<u32>> = modes_before
            .map(|ancestor| ((ancestor.root, ancestor.path.as_slice()), ancestor.mode))
            .collect();
        let mut by_stamp: HashMap<(Identity, Stamp), u32> = HashMap::new();
        let mut wanted = Vec::new();
        let is_protected = |(directory, _): &(&Directory, u32)| {
            directory.depth > 0 && matches!(directory.context.class, Class::Protected(_))
        };
        let protected = inventory.numbered().filter(is_protected);
        for (directory, index) in inventory.ancestor_directories().chain(protected) {
            match directory.stamp {
                Some(stamp) => {
                    by_stamp.insert((directory.identity, stamp), index);
                }
                None => wanted.push(index),
            }
        }
        // A change of mode changes the stamp.
        for directory in earlier.into_iter().flat_map(|earlier| &earlier.directories) {
            if let Some(stamp) = directory.stamp {
                by_stamp.remove(&(directory.identity, stamp));
            }
        }
        wanted.extend(by_stamp.into_values());
        // Outer ones first: what is in a closed one cannot be reached.
        wanted.sort_unstable();
        wanted.dedup();
        for index in wanted {
            let (number, path) = (inventory.directories[index as usize].root, inventory.path(index));
            let root = self.root(number);
            let Ok(found) = nofollow::stat(&root.fd, &path) else {
                continue;
            };
            let now = nofollow::permissions(&found);
            let had = match self.work_trees.saved(number, &path).map(|kept| &kept.state) {
                Some(State::Directory { mode }) => Some(*mode),
                Some(_) | None => modes_before
                    .get(&(number, path.as_slice()))
                    .map(|mode| mode.unwrap_or(0)),
            };
            let wanted = had.map_or(now | TO_LIST, |had| now | (had & ALL));
            if nofollow::kind(&found) != libc::S_IFDIR || found.st_uid != geteuid().as_raw() || wanted == now {
                continue;
            }
            match set_mode(root, &path, wanted) {
                Ok(()) => self.report(number, &path, Effect::Closed, None),
                Err(error) => self.settled.errors.push(error),
            }
        }
    }
}

/// The directory at or above this path that we cannot enter.
pub(crate) fn closed_directory(path: &Path) -> Option<ProtectError> {
    let is_closed = |directory: &Path| {
        directory
            .symlink_metadata()
            .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    if !is_closed(path) {
        let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let listed = || std::fs::read_dir(path);
        let cannot_be_listed = || listed().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        return (is_directory && cannot_be_listed()).then(|| ProtectError::Closed(path.to_owned()));
    }
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let first = above.into_iter().find(|directory| is_closed(&directory.join(".")));
    Some(ProtectError::Closed(
        first.map_or_else(|| path.to_owned(), PathBuf::from),
    ))
}
