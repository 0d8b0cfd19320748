//! Whether a tree grows beyond what can be walked, while a command runs.
//!
//! What lies beyond the most that a walk takes in is not undone, so a command that makes that many directories is stopped.
//! Nobody counts directories as they are made; but each takes an inode, and file systems say how many are in use. Only
//! when as many more are in use as directories are still permitted, the tree is walked. Btrfs does not say: there
//! nothing is stopped, and what a walk takes in is judged afterwards.

use std::collections::HashSet;
use std::os::fd::OwnedFd;

use nix::sys::statvfs::fstatvfs;

use super::ProtectError;
use super::at;
use super::snapshot::Guard;
use super::unchanged::Company;
use super::walk::{most_directories, walk_through};

/// How much a tree may still grow.
#[derive(Debug)]
pub struct Growth {
    /// A directory of each file system, and how many inodes were in use there.
    file_systems: Vec<(OwnedFd, u64)>,
    /// How many directories there may still be.
    room: u64,
}

impl Growth {
    /// Counts from here on.
    pub fn of(guard: &Guard) -> Self {
        let mut devices = HashSet::new();
        let mut file_systems = Vec::new();
        for (index, directory) in (0_u32..).zip(&guard.sight().directories) {
            if !directory.read || !devices.insert(directory.identity.device) {
                continue;
            }
            let root = &guard.roots()[usize::from(directory.root)];
            if let Ok(place) = at::open_place(&root.fd, &guard.sight().path(index)) {
                let used = used(&place);
                file_systems.push((place, used));
            }
        }
        Self {
            file_systems,
            room: room(guard.sight().len()),
        }
    }

    /// Whether there are more directories by now than a walk takes in.
    pub fn is_too_much(&mut self, guard: &Guard) -> bool {
        let more = |(place, before): &(OwnedFd, u64)| used(place).saturating_sub(*before);
        if self.file_systems.iter().map(more).sum::<u64>() <= self.room {
            return false;
        }
        let mut errors = Vec::new();
        let (roots, patterns, sight) = (guard.roots(), guard.patterns(), guard.sight());
        match walk_through(roots, patterns, Some(sight), Company::Nobody, &mut errors) {
            Err(ProtectError::TooMany) => true,
            // What cannot be looked into is told when it is settled.
            Err(_) => false,
            Ok(_) if errors.iter().any(|error| matches!(error, ProtectError::TooMany)) => true,
            Ok(seen) => {
                // They were files, or somebody else's.
                for (place, before) in &mut self.file_systems {
                    *before = used(place);
                }
                self.room = room(seen.len());
                false
            }
        }
    }
}

fn room(directories: usize) -> u64 {
    most_directories().saturating_sub(directories) as u64
}

/// How many inodes are in use; none where the file system does not say.
fn used(place: &OwnedFd) -> u64 {
    fstatvfs(place).map_or(0, |stat| stat.files().saturating_sub(stat.files_free()))
}
