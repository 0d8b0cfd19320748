//! The result of a walk: a table of directories, a table of protected entries, and an arena of names.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;

use nix::sys::stat::fstat;
use nix::sys::statfs::{OVERLAYFS_SUPER_MAGIC, fstatfs};

use super::super::entry::nofollow::{self, Identity};
use super::super::error::ProtectError;
use super::super::naming::class::{Context, DirectoryClass, Kind, Role};
use super::super::roots::Root;
use super::stamp::Stamp;
use crate::confine::sys;

/// No earlier record of a directory.
pub(in super::super) const NONE: u32 = u32::MAX;

/// Directories that are sooner read again at each start than remembered.
const SPARE: usize = 8;

/// A name in the arena of a [`Inventory`].
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(in super::super) struct NameSpan {
    pub(in super::super) start: u32,
    pub(in super::super) length: u16,
}

/// A range of a table.
#[derive(Debug, Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
pub(in super::super) struct TableRange {
    pub(in super::super) start: u32,
    pub(in super::super) length: u32,
}

impl TableRange {
    pub(in super::super) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.length as usize
    }
}

/// A directory.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(in super::super) struct Directory {
    pub(in super::super) root: u16,
    pub(in super::super) parent: u32,
    pub(in super::super) depth: u32,
    pub(in super::super) name: NameSpan,
    /// Its context by its parent and name.
    pub(in super::super) inherited: Context,
    /// Its context by its content too.
    pub(in super::super) context: Context,
    pub(in super::super) identity: Identity,
    /// `None` when it cannot tell whether the directory has changed.
    pub(in super::super) stamp: Option<Stamp>,
    pub(in super::super) children: TableRange,
    pub(in super::super) found: TableRange,
    /// The same directory in the walk before this one.
    pub(in super::super) earlier: u32,
    /// The nearest directory at or above it that is not itself part of something protected.
    pub(in super::super) anchor: u32,
    /// False if it was not read: removed during the walk, or not readable.
    pub(in super::super) read: bool,
}

/// A protected entry.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(in super::super) struct Entry {
    pub(in super::super) directory: u32,
    pub(in super::super) name: NameSpan,
    pub(in super::super) role: Role,
    pub(in super::super) kind: Kind,
}

/// A protected entry and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct FoundEntry {
    pub(in super::super) root: u16,
    pub(in super::super) path: Vec<u8>,
    pub(in super::super) role: Role,
    /// The directory whose removal removes the entry rightfully: the one that holds what is protected.
    pub(in super::super) anchor: Vec<u8>,
}

/// A directory that holds protected entries, at some depth.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(in super::super) struct Ancestor {
    pub(in super::super) root: u16,
    pub(in super::super) path: Vec<u8>,
    pub(in super::super) identity: Identity,
    /// When it was made; without that a deleted directory's number on a new one would look like a move.
    pub(in super::super) created: Option<(i64, u32)>,
    /// Its permission bits, which a journal has further down; `None` where they are not known.
    #[serde(skip)]
    pub(in super::super) mode: Option<u32>,
}

/// The birth time of a root; `None` on overlayfs, which creates a directory again at its first change.
pub(in super::super) fn root_creation_time(root: impl AsFd) -> Option<(i64, u32)> {
    let kind = fstatfs(root.as_fd()).ok()?.filesystem_type();
    if kind == OVERLAYFS_SUPER_MAGIC {
        return None;
    }
    sys::birth_time(root.as_fd()).ok()?
}

impl Ancestor {
    /// Whether it is still at its path in `root`.
    pub(in super::super) fn is_in_place(&self, root: &Root) -> bool {
        nofollow::stat(&root.fd, &self.path).is_ok_and(|there| Identity::of(&there) == self.identity)
    }
}

/// When the directory `path` was made, if that can be known.
pub(in super::super) fn creation_time(root: &Root, path: &[u8]) -> Option<(i64, u32)> {
    sys::birth_time(nofollow::open_path(&root.fd, path).ok()?).ok()?
}

/// Everything that one walk found.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(in super::super) struct Inventory {
    pub(in super::super) directories: Vec<Directory>,
    pub(in super::super) entries: Vec<Entry>,
    pub(in super::super) names: Vec<u8>,
    /// How many directories had to be read since what the store keeps was written.
    #[serde(skip)]
    pub(in super::super) reread: u32,
}

impl Inventory {
    pub(in super::super) fn name(&self, span: NameSpan) -> &[u8] {
        &self.names[span.start as usize..span.start as usize + usize::from(span.length)]
    }

    /// The path of a directory, relative to its root.
    pub(in super::super) fn path(&self, index: u32) -> Vec<u8> {
        let mut names = Vec::new();
        let mut at = &self.directories[index as usize];
        while at.depth > 0 {
            names.push(self.name(at.name));
            at = &self.directories[at.parent as usize];
        }
        names.reverse();
        names.join(&b'/')
    }

    /// The protected entries, in the order of the walk: what holds another comes first.
    pub(in super::super) fn found(&self) -> impl Iterator<Item = FoundEntry> + '_ {
        let mut last = (NONE, Vec::new());
        self.entries.iter().map(move |entry| {
            if last.0 != entry.directory {
                last = (entry.directory, self.path(entry.directory));
            }
            FoundEntry {
                root: self.directories[entry.directory as usize].root,
                path: nofollow::join(&last.1, self.name(entry.name)),
                role: entry.role,
                anchor: self.path(self.directories[entry.directory as usize].anchor),
            }
        })
    }

    /// The directories above protected entries, outer ones first, without the roots.
    pub(in super::super) fn ancestor_directories(&self) -> impl Iterator<Item = (&Directory, u32)> {
        let mut wanted = vec![false; self.directories.len()];
        for entry in &self.entries {
            let mut at = entry.directory as usize;
            while !wanted[at] {
                wanted[at] = true;
                at = self.directories[at].parent as usize;
            }
        }
        let ancestors = self.directories.iter().zip(0_u32..).zip(wanted);
        ancestors
            .filter(|((directory, _), wanted)| *wanted && directory.depth > 0)
            .map(|(directory, _)| directory)
    }

    /// Those directories with their identities.
    pub(in super::super) fn ancestors(&self, roots: &[Root]) -> Vec<Ancestor> {
        self.ancestor_directories()
            .map(|(directory, index)| {
                let path = self.path(index);
                let fd = nofollow::open_path(&roots[usize::from(directory.root)].fd, &path).ok();
                Ancestor {
                    root: directory.root,
                    identity: directory.identity,
                    created: fd.as_ref().and_then(|fd| sys::birth_time(fd).ok()?),
                    mode: fd.and_then(|fd| Some(nofollow::permissions(&fstat(fd).ok()?))),
                    path,
                }
            })
            .collect()
    }

    /// Where each directory with one of these identities is now.
    pub(in super::super) fn locate(&self, wanted: &HashSet<Identity>) -> HashMap<Identity, (u16, Vec<u8>)> {
        let directories = self.directories.iter().zip(0_u32..);
        directories
            .filter(|(directory, _)| wanted.contains(&directory.identity))
            .map(|(directory, index)| (directory.identity, (directory.root, self.path(index))))
            .collect()
    }

    /// Which of these paths were directories with nothing special.
    pub(in super::super) fn plain_directories(&self, wanted: &HashSet<(u16, &[u8])>) -> HashSet<(u16, Vec<u8>)> {
        if wanted.is_empty() {
            return HashSet::new();
        }
        let directories = self.directories.iter().zip(0_u32..);
        directories
            .filter(|(directory, _)| directory.context.class == DirectoryClass::Plain)
            .map(|(directory, index)| (directory.root, self.path(index)))
            .filter(|(root, path)| wanted.contains(&(*root, path.as_slice())))
            .collect()
    }

    /// The git directories, by path.
    pub(in super::super) fn git_directories(&self) -> HashSet<(u16, Vec<u8>)> {
        let directories = self.directories.iter().zip(0_u32..);
        directories
            .filter(|(directory, _)| directory.context.class == DirectoryClass::Git)
            .map(|(directory, index)| (directory.root, self.path(index)))
            .collect()
    }

    /// The root and path of whatever is called `.git` and is no directory.
    pub(in super::super) fn git_links(&self) -> impl Iterator<Item = (u16, Vec<u8>)> + '_ {
        let links = self.entries.iter().filter(|entry| entry.role == Role::GitLink);
        links.map(|entry| {
            let root = self.directories[entry.directory as usize].root;
            (root, nofollow::join(&self.path(entry.directory), self.name(entry.name)))
        })
    }

    /// The protected symlinks: root, directory, name and role.
    pub(in super::super) fn links(&self) -> impl Iterator<Item = (&Directory, Vec<u8>, &[u8], Role)> + '_ {
        let links = self.entries.iter().filter(|entry| entry.kind == Kind::Symlink);
        links.map(|entry| {
            let directory = &self.directories[entry.directory as usize];
            (directory, self.path(entry.directory), self.name(entry.name), entry.role)
        })
    }

    /// An empty one for the walk after this, with room for as much.
    pub(in super::super) fn successor(&self) -> Self {
        Self {
            directories: Vec::with_capacity(self.directories.len() + 64),
            entries: Vec::with_capacity(self.entries.len() + 64),
            names: Vec::with_capacity(self.names.len() + 4096),
            reread: self.reread,
        }
    }

    /// Whether it is of these roots, with the same contexts.
    pub(in super::super) fn is_of(&self, roots: &[Root]) -> bool {
        let roots_seen = self.directories.iter().take_while(|directory| directory.depth == 0);
        roots_seen
            .map(|directory| (directory.identity, directory.inherited))
            .eq(roots.iter().map(|root| (root.identity, root.context)))
    }

    /// Whether saving it costs less than what the next start would read again.
    pub(in super::super) fn is_worth_saving(&self) -> bool {
        self.reread as usize > SPARE + self.directories.len() / 64
    }

    /// How many directories were seen.
    pub(in super::super) fn len(&self) -> usize {
        self.directories.len()
    }

    pub(in super::super) fn add_name(&mut self, name: &[u8]) -> Result<NameSpan, ProtectError> {
        let span = NameSpan {
            start: u32::try_from(self.names.len()).map_err(|_| ProtectError::TooMany)?,
            length: u16::try_from(name.len()).map_err(|_| ProtectError::TooMany)?,
        };
        self.names.extend_from_slice(name);
        Ok(span)
    }
}
