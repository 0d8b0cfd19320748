//! What appeared while a command ran that programs of the host may read or run, and that no list protects.
//!
//! It is for a person to look at: nothing is undone. Only directories that changed are read, and only dotfiles, executables,
//! links to executables and directories, and a few files that tools regenerate all the time are named. In a directory that was there,
//! what was changed since counts; so what was renamed, linked or made executable does, and a file that was written to in
//! place. In one that is new at its place, all does.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, fstatat};

use super::super::entry::nofollow::{self, Identity, join, split};
use super::super::naming::class::{Class, Context, Kind};
use super::super::naming::names::is_third_party;
use super::super::naming::patterns::Patterns;
use super::super::roots::{Root, absolute};
use super::inventory::{Directory, Inventory};
use super::listing::entry_kind;
use super::stamp::Stamp;
use crate::confine::sys;

/// Files that package managers execute and write themselves, again and again in one place.
const REGENERATED: [&[u8]; 2] = [b".pnp.cjs", b".pnp.loader.mjs"];
/// The most that are named.
const MAX_NAMED: usize = 50;
/// The most directories and entries that are looked at.
const MOST_LOOKED_AT: usize = 50_000;
/// Bytes of listing asked for at once.
const BUFFER: usize = 32 * 1024;

/// What appeared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Appeared {
    /// The first of it.
    pub paths: Vec<PathBuf>,
    /// How much more there is.
    pub more: usize,
    /// Whether not all was looked at.
    pub is_cut: bool,
}

/// Finds what appeared since a moment. The tree is at rest; `before` is how it was.
pub(crate) fn find_new(
    roots: &[Root],
    patterns: &Patterns,
    before: &Inventory,
    inventory: &Inventory,
    since: Duration,
) -> Appeared {
    let since = (
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        i64::from(since.subsec_nanos()),
    );
    let mut finder = Finder {
        roots,
        patterns,
        inventory,
        since,
        new: new(before, inventory, since),
        left: MOST_LOOKED_AT,
        found: Appeared::default(),
        inside: HashSet::new(),
        buffer: vec![0; BUFFER],
    };
    for (directory, index) in inventory.numbered() {
        finder.visit(directory, index);
    }
    finder.regenerated();
    finder.found
}

/// The directories that were created or moved where they are, and those in them.
fn new(before: &Inventory, inventory: &Inventory, since: (i64, i64)) -> HashSet<u32> {
    let changed = |directory: &Directory| directory.stamp.is_none_or(|stamp| stamp.changed >= since);
    let mut paths: HashMap<Identity, Vec<u8>> = HashMap::new();
    for (directory, index) in inventory.numbered() {
        if changed(directory) && directory.depth > 0 {
            paths.insert(directory.identity, inventory.path(index));
        }
    }
    let mut stayed = HashSet::new();
    for (directory, index) in before.numbered() {
        if paths
            .get(&directory.identity)
            .is_some_and(|path| *path == before.path(index))
        {
            stayed.insert(directory.identity);
        }
    }
    let mut new = HashSet::new();
    for (directory, index) in inventory.numbered() {
        let is_new = paths.contains_key(&directory.identity) && !stayed.contains(&directory.identity);
        if directory.depth > 0 && (is_new || new.contains(&directory.parent)) {
            new.insert(index);
        }
    }
    new
}

struct Finder<'a> {
    roots: &'a [Root],
    patterns: &'a Patterns,
    inventory: &'a Inventory,
    /// Seconds and nanoseconds.
    since: (i64, i64),
    /// The directories that are new where they are.
    new: HashSet<u32>,
    left: usize,
    found: Appeared,
    /// The directories already reported, and those in them.
    inside: HashSet<u32>,
    buffer: Vec<u8>,
}

impl Finder<'_> {
    fn visit(&mut self, directory: &Directory, index: u32) {
        if directory.depth > 0 && self.inside.contains(&directory.parent) {
            self.inside.insert(index);
            return;
        }
        let is_plain = directory.context.class == Class::Plain && !directory.context.third_party;
        if !directory.read || !is_plain {
            return;
        }
        let root = &self.roots[usize::from(directory.root)];
        let is_new = self.new.contains(&index);
        // A directory that changed just before it was read has no reliable stamp.
        if let Some(stamp) = directory.stamp
            && stamp.changed < self.since
            && !is_new
        {
            return;
        }
        let path = self.inventory.path(index);
        let has_changed = || nofollow::stat(&root.fd, &path).is_ok_and(|stat| self.is_since(&stat));
        if !(is_new || has_changed()) || !self.spend() {
            return;
        }
        let (parent, name) = split(&path);
        let opened = nofollow::as_owner(&root.fd, parent, (!name.is_empty()).then_some(name), || {
            nofollow::open_directory(&root.fd, &path)
        });
        let Ok(fd) = opened else {
            self.found.is_cut = true;
            return;
        };
        for (name, kind) in self.names(&fd, directory.context) {
            if !self.spend() {
                return;
            }
            if !self.is_of_interest(&fd, &name, kind, is_new) {
                continue;
            }
            self.name(root, &join(&path, &name));
            if kind == Kind::Directory {
                let child = directory
                    .children
                    .range()
                    .find(|child| self.inventory.name(self.inventory.directories[*child].name) == name);
                self.inside.extend(child.and_then(|child| u32::try_from(child).ok()));
            }
        }
    }

    /// The entries that are neither protected, nor of version control, nor third-party code.
    fn names(&mut self, fd: &OwnedFd, context: Context) -> Vec<(Vec<u8>, Kind)> {
        let mut found = Vec::new();
        loop {
            let read = match sys::getdents(fd, &mut self.buffer) {
                Ok(0) | Err(_) => return found,
                Ok(read) => read,
            };
            for (name, kind) in sys::entries(&self.buffer[..read]) {
                let Ok(kind) = entry_kind(fd, name, kind) else {
                    continue;
                };
                let classification = self.patterns.classify(context, name, kind);
                let is_plain = classification
                    .descend
                    .is_none_or(|context| context.class == Class::Plain);
                if classification.protect.is_none() && is_plain && !(kind == Kind::Directory && is_third_party(name)) {
                    found.push((name.to_vec(), kind));
                }
            }
        }
    }

    fn is_of_interest(&self, fd: &OwnedFd, name: &[u8], kind: Kind, is_in_new: bool) -> bool {
        let is_dotfile = name.starts_with(b".");
        if !is_dotfile && !matches!(kind, Kind::Other | Kind::Symlink) {
            return false;
        }
        let Ok(stat) = fstatat(fd, name, AtFlags::AT_SYMLINK_NOFOLLOW) else {
            return false;
        };
        if !is_in_new && !self.is_since(&stat) {
            return false;
        }
        // A link counts as its target. A dangling one counts, because a target may be created later.
        let target = || fstatat(fd, name, AtFlags::empty());
        let leads = || {
            target().map_or(true, |target| {
                is_executable(&target) || nofollow::kind(&target) == libc::S_IFDIR
            })
        };
        is_dotfile || is_executable(&stat) || (kind == Kind::Symlink && leads())
    }

    fn is_since(&self, stat: &FileStat) -> bool {
        Stamp::of(stat).changed >= self.since
    }

    /// What tools regenerate in place, beside git directories and in the roots.
    fn regenerated(&mut self) {
        let tops = (0_u16..).zip(self.roots).map(|(root, _)| (root, Vec::new()));
        let gits = self
            .inventory
            .git_directories()
            .into_iter()
            .chain(self.inventory.git_links());
        let beside = gits.map(|(root, git)| (root, split(&git).0.to_vec()));
        let paths: HashSet<(u16, Vec<u8>)> = tops.chain(beside).collect();
        for (root, directory) in paths {
            let root = &self.roots[usize::from(root)];
            for path in REGENERATED.map(|name| join(&directory, name)) {
                let is_named = || self.found.paths.contains(&absolute(root, &path));
                if nofollow::stat(&root.fd, &path).is_ok_and(|stat| self.is_since(&stat)) && !is_named() {
                    self.name(root, &path);
                }
            }
        }
    }

    fn name(&mut self, root: &Root, path: &[u8]) {
        if self.found.paths.len() < MAX_NAMED {
            self.found.paths.push(absolute(root, path));
        } else {
            self.found.more += 1;
        }
    }

    fn spend(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => self.found.is_cut = true,
        }
        !self.found.is_cut
    }
}

fn is_executable(stat: &FileStat) -> bool {
    nofollow::kind(stat) == libc::S_IFREG && nofollow::permissions(stat) & 0o111 != 0
}
