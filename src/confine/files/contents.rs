//! What is in a directory that is to be removed: how much, what tells it from any other content, and the first names.

use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::fstatat;
use sha2::{Digest as _, Sha256};

use super::clock::Clock;
use super::location::{Location, open_below};
use super::protocol::{Contents, MAX_CONTENTS, MAX_NAMED};
use super::state::{FileKind, kind, size};
use super::tree::each_part;

/// What is in a directory.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) contents: Contents,
    /// The first paths, relative to the directory; a directory ends in `/`.
    pub(super) named: Vec<OsString>,
}

/// Looks through a directory, as far as there is time.
pub(super) fn of(location: &Location, clock: Clock) -> Listed {
    let mut listing = Listing {
        contents: Contents::default(),
        named: Vec::new(),
        hash: Sha256::new(),
    };
    let mut left = vec![PathBuf::new()];
    while let Some(directory) = left.pop() {
        match listing.directory(location, &directory, clock) {
            Some(below) => left.extend(below.into_iter().rev()),
            None => {
                return Listed {
                    contents: listing.contents,
                    named: listing.named,
                };
            }
        }
    }
    let digest = Some(listing.hash.finalize().into());
    Listed {
        contents: Contents {
            digest,
            ..listing.contents
        },
        named: listing.named,
    }
}

struct Listing {
    contents: Contents,
    named: Vec<OsString>,
    hash: Sha256,
}

impl Listing {
    /// Adds the entries of one directory, and returns the directories among them; `None` if there is too much or the time is over.
    fn directory(&mut self, location: &Location, path: &Path, clock: Clock) -> Option<Vec<PathBuf>> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        let full = Path::new(&location.name).join(path);
        // Without the slash that an empty path adds.
        let full = full.components().as_path();
        let opened = open_below(&location.directory, full.as_os_str(), flags);
        let Ok(directory) = opened else {
            // What cannot be listed cannot be removed either.
            self.add_field(b"unreadable");
            return Some(Vec::new());
        };
        let mut names = self.names(&directory, clock)?;
        names.sort_unstable();
        let mut below = Vec::new();
        for name in names {
            let path = path.join(&name);
            if self.entry(&directory, &name, &path) {
                below.push(path);
            }
        }
        Some(below)
    }

    /// The names in a directory.
    fn names(&self, directory: &OwnedFd, clock: Clock) -> Option<Vec<OsString>> {
        let counted = self.contents.directories + self.contents.files;
        let mut names: Vec<OsString> = Vec::new();
        let mut is_all = true;
        let read = each_part(directory, |part| {
            names.extend(part.into_iter().map(|item| item.name));
            is_all = counted + names.len() as u64 <= MAX_CONTENTS && !clock.is_over();
            if is_all {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        (read.is_ok() && is_all).then_some(names)
    }

    /// Adds an entry; whether it is a directory.
    fn entry(&mut self, directory: &OwnedFd, name: &OsStr, path: &Path) -> bool {
        self.add_field(path.as_os_str().as_bytes());
        let Ok(stat) = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) else {
            self.add_field(b"gone");
            return false;
        };
        let kind = kind(&stat);
        let is_directory = kind == FileKind::Directory;
        self.hash.update(stat.st_mode.to_le_bytes());
        self.hash.update(stat.st_ino.to_le_bytes());
        if is_directory {
            // Its own times change with its entries, which are told apart themselves.
            self.contents.directories += 1;
        } else {
            self.contents.files += 1;
            self.hash.update(stat.st_size.to_le_bytes());
            // Nobody can set that.
            self.hash.update(stat.st_ctime.to_le_bytes());
            self.hash.update(stat.st_ctime_nsec.to_le_bytes());
        }
        if kind == FileKind::File {
            self.contents.bytes = self.contents.bytes.saturating_add(size(&stat));
        }
        if self.named.len() < MAX_NAMED {
            let mut named = path.as_os_str().to_owned();
            if is_directory {
                named.push("/");
            }
            self.named.push(named);
        }
        is_directory
    }

    fn add_field(&mut self, field: &[u8]) {
        self.hash.update((field.len() as u64).to_le_bytes());
        self.hash.update(field);
    }
}
