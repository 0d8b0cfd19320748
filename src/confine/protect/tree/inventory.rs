//! The result of a walk: a table of directories, a table of protected entries, and an arena of names.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;

use nix::sys::stat::fstat;
use nix::sys::statfs::{OVERLAYFS_SUPER_MAGIC, fstatfs};

use super::super::entry::nofollow::{self, Identity};
use super::super::error::ProtectError;
use super::super::naming::class::{Class, Context, Kind, Role};
use super::super::roots::Root;
use super::stamp::Stamp;
use crate::confine::sys;

/// No earlier record of a directory.
pub(crate) const NONE: u32 = u32::MAX;

/// Directories that are sooner read again at each start than remembered.
const SPARE: usize = 8;

/// A name in the arena of a [`Inventory`].
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(crate) struct NameSpan {
    pub(crate) start: u32,
    pub(crate) length: u16,
}

/// A range of a table.
#[derive(Debug, Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct TableRange {
    pub(crate) start: u32,
    pub(crate) length: u32,
}

impl TableRange {
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.length as usize
    }
}

/// A directory.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Directory {
    pub(crate) root: u16,
    pub(crate) parent: u32,
    pub(crate) depth: u32,
    pub(crate) name: NameSpan,
    /// Its context by its parent and name.
    pub(crate) inherited: Context,
    /// Its context by its content too.
    pub(crate) context: Context,
    pub(crate) identity: Identity,
    /// `None` when it cannot tell whether the directory has changed.
    pub(crate) stamp: Option<Stamp>,
    pub(crate) children: TableRange,
    pub(crate) found: TableRange,
    /// The same directory in the walk before this one.
    pub(crate) earlier: u32,
    /// The nearest directory at or above it that is not itself part of something protected.
    pub(crate) anchor: u32,
    /// False if it was not read: removed during the walk, or not readable.
    pub(crate) read: bool,
}

/// A protected entry.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(crate) struct Entry {
    pub(crate) directory: u32,
    pub(crate) name: NameSpan,
    pub(crate) role: Role,
    pub(crate) kind: Kind,
}

/// A protected entry and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundEntry {
    pub(crate) root: u16,
    pub(crate) path: Vec<u8>,
    pub(crate) role: Role,
    /// The directory whose removal removes the entry rightfully: the one that holds what is protected.
    pub(crate) anchor: Vec<u8>,
}

/// A directory that holds protected entries, at some depth.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ancestor {
    pub(crate) root: u16,
    pub(crate) path: Vec<u8>,
    pub(crate) identity: Identity,
    /// When it was made; without that a deleted directory's number on a new one would look like a move.
    pub(crate) created: Option<(i64, u32)>,
    /// Its permission bits, which a journal has further down; `None` where they are not known.
    #[serde(skip)]
    pub(crate) mode: Option<u32>,
}

/// The birth time of a root; `None` on overlayfs, which creates a directory again at its first change.
pub(crate) fn root_creation_time(root: impl AsFd) -> Option<(i64, u32)> {
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
pub(crate) fn creation_time(root: &Root, path: &[u8]) -> Option<(i64, u32)> {
    sys::birth_time(nofollow::open_path(&root.fd, path).ok()?).ok()?
}

/// Everything that one walk found.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Inventory {
    pub(crate) directories: Vec<Directory>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) names: Vec<u8>,
    /// How many directories had to be read since what the store keeps was written.
    #[serde(skip)]
    pub(crate) reread: u32,
}

impl Inventory {
    pub(crate) fn name(&self, span: NameSpan) -> &[u8] {
        &self.names[span.start as usize..span.start as usize + usize::from(span.length)]
    }

    /// Every directory with its number.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (&Directory, u32)> {
        self.directories.iter().zip(0_u32..)
    }

    /// The path of a directory, relative to its root.
    pub(crate) fn path(&self, index: u32) -> Vec<u8> {
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
    pub(crate) fn found(&self) -> impl Iterator<Item = FoundEntry> + '_ {
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
    pub(crate) fn ancestor_directories(&self) -> impl Iterator<Item = (&Directory, u32)> {
        let mut wanted = vec![false; self.directories.len()];
        for entry in &self.entries {
            let mut at = entry.directory as usize;
            while !wanted[at] {
                wanted[at] = true;
                at = self.directories[at].parent as usize;
            }
        }
        let ancestors = self.numbered().zip(wanted);
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
    pub(crate) fn locate(&self, wanted: &HashSet<Identity>) -> HashMap<Identity, (u16, Vec<u8>)> {
        let directories = self.numbered();
        directories
            .filter(|(directory, _)| wanted.contains(&directory.identity))
            .map(|(directory, index)| (directory.identity, (directory.root, self.path(index))))
            .collect()
    }

    /// Which of these paths were directories with nothing special.
    pub(crate) fn plain_directories(&self, wanted: &HashSet<(u16, &[u8])>) -> HashSet<(u16, Vec<u8>)> {
        if wanted.is_empty() {
            return HashSet::new();
        }
        let plain = self.of_class(Class::Plain);
        plain
            .filter(|(root, path)| wanted.contains(&(*root, path.as_slice())))
            .collect()
    }

    /// The git directories, by path.
    pub(crate) fn git_directories(&self) -> HashSet<(u16, Vec<u8>)> {
        self.of_class(Class::Git).collect()
    }

    fn of_class(&self, class: Class) -> impl Iterator<Item = (u16, Vec<u8>)> + '_ {
        let all = self
            .numbered()
            .filter(move |(directory, _)| directory.context.class == class);
        all.map(|(directory, index)| (directory.root, self.path(index)))
    }

    /// The root and path of whatever is called `.git` and is no directory.
    pub(crate) fn git_links(&self) -> impl Iterator<Item = (u16, Vec<u8>)> + '_ {
        let links = self.entries.iter().filter(|entry| entry.role == Role::GitLink);
        links.map(|entry| {
            let root = self.directories[entry.directory as usize].root;
            (root, nofollow::join(&self.path(entry.directory), self.name(entry.name)))
        })
    }

    /// The protected symlinks: root, directory, name and role.
    pub(crate) fn links(&self) -> impl Iterator<Item = (&Directory, Vec<u8>, &[u8], Role)> + '_ {
        let links = self.entries.iter().filter(|entry| entry.kind == Kind::Symlink);
        links.map(|entry| {
            let directory = &self.directories[entry.directory as usize];
            (directory, self.path(entry.directory), self.name(entry.name), entry.role)
        })
    }

    /// An empty one for the walk after this, with room for as much.
    pub(crate) fn successor(&self) -> Self {
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
    pub(crate) fn is_worth_saving(&self) -> bool {
        self.reread as usize > SPARE + self.directories.len() / 64
    }

    /// How many directories were seen.
    pub(crate) fn len(&self) -> usize {
        self.directories.len()
    }

    pub(crate) fn add_name(&mut self, name: &[u8]) -> Result<NameSpan, ProtectError> {
        let span = NameSpan {
            start: u32::try_from(self.names.len()).map_err(|_| ProtectError::TooMany)?,
            length: u16::try_from(name.len()).map_err(|_| ProtectError::TooMany)?,
        };
        self.names.extend_from_slice(name);
        Ok(span)
    }
}
