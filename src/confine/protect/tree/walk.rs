//! The fast walk over every directory of the roots.
//!
//! Breadth first over one flat table: a directory's children lie side by side in it, so neither depth
//! nor width needs a stack, and a path is found by climbing parents. Symlinks are never followed;
//! mounts inside a root are.
//!
//! A second walk is given the first: a directory whose identity and change time are as they were is not
//! read again. That is sound because adding, removing or renaming an entry sets the directory's change
//! time, and no system call sets a change time: utimensat(2) sets the other two and itself moves this
//! one. It can only come out equal when the change falls into the clock tick of the stamp, so a stamp
//! taken less than [`TICK`] after its time is not relied on; nor is one of a file system that
//! keeps time by another clock or coarsely (network, FUSE, FAT).

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::sys::stat::fstat;
use nix::sys::statfs::fstatfs;

use super::super::entry::nofollow::{self, Identity};
use super::super::error::ProtectError;
use super::super::naming::class::{Class, Kind, Layout, Role};
use super::super::naming::markers::Markers;
use super::super::naming::names::is_dot_git;
use super::super::naming::patterns::Patterns;
use super::super::roots::{Root, absolute};
use super::inventory::{Directory, Entry, Inventory, NONE, NameSpan, TableRange};
use super::listing::{ListError, entry_kind};
use super::stamp::{FileSystem, Stamp, classify};
use super::unchanged::unchanged;
use crate::confine::sys;

/// The coarsest clock of a local file system's stamps, with room: 100 Hz.
pub(crate) const TICK: Duration = Duration::from_millis(20);
/// Levels below a root. No project goes as deep, and every step on a directory costs its depth.
const MAX_DEPTH: u32 = 128;
/// Directories in all.
const MAX_DIRECTORIES: usize = 4_000_000;
/// The same for a test, which has no time for millions.
#[cfg(test)]
pub(crate) static MAX_IN_TEST: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(MAX_DIRECTORIES);

#[cfg(not(test))]
pub(crate) const fn most_directories() -> usize {
    MAX_DIRECTORIES
}

#[cfg(test)]
pub(crate) fn most_directories() -> usize {
    MAX_IN_TEST.load(std::sync::atomic::Ordering::Relaxed)
}

/// Bytes of listing asked for at once.
const BUFFER: usize = 64 * 1024;

/// Walks the roots; a directory that cannot be looked into is an error.
pub(crate) fn walk(
    roots: &[Root],
    patterns: &Patterns,
    earlier: Option<&Inventory>,
) -> Result<Inventory, ProtectError> {
    let mut errors = Vec::new();
    let inventory = walk_through(roots, patterns, earlier, &mut errors)?;
    errors.into_iter().next().map_or(Ok(inventory), Err)
}

/// Walks the roots; directories that cannot be looked into are left out and named, and so are those beyond the most.
pub(crate) fn walk_through(
    roots: &[Root],
    patterns: &Patterns,
    earlier: Option<&Inventory>,
    errors: &mut Vec<ProtectError>,
) -> Result<Inventory, ProtectError> {
    let trusted_until = now().saturating_sub(TICK);
    let unchanged = earlier.map_or_else(Vec::new, |earlier| unchanged(roots, earlier));
    if let Some(earlier) = earlier
        && earlier.is_of(roots)
        && unchanged.iter().all(|same| *same)
    {
        return Ok(earlier.clone());
    }
    let mut walker = Walker {
        roots,
        patterns,
        earlier,
        unchanged,
        inventory: earlier.map_or_else(Inventory::default, Inventory::successor),
        buffer: vec![0; BUFFER],
        listing: Vec::new(),
        file_systems: HashMap::new(),
        trusted_until,
    };
    for (root, number) in roots.iter().zip(0_u16..) {
        let same_roots = earlier.and_then(|inventory| inventory.directories.get(usize::from(number)));
        walker.inventory.directories.push(Directory {
            root: number,
            parent: u32::from(number),
            depth: 0,
            name: NameSpan { start: 0, length: 0 },
            inherited: root.context,
            context: root.context,
            identity: root.identity,
            stamp: None,
            children: TableRange::default(),
            found: TableRange::default(),
            earlier: same_roots.map_or(NONE, |_| u32::from(number)),
            anchor: u32::from(number),
            read: false,
        });
    }
    let mut index = 0;
    while index < walker.inventory.directories.len() {
        if index > most_directories() {
            // What was found so far can still be judged.
            errors.push(ProtectError::TooMany);
            break;
        }
        match walker.visit(u32::try_from(index).map_err(|_| ProtectError::TooMany)?) {
            Ok(()) => {}
            Err(error @ ProtectError::Io { .. }) => errors.push(error),
            Err(error) => return Err(error),
        }
        index += 1;
    }
    Ok(walker.inventory)
}

pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

struct Walker<'a> {
    roots: &'a [Root],
    patterns: &'a Patterns,
    earlier: Option<&'a Inventory>,
    /// Which directories of the earlier walk are as they were.
    unchanged: Vec<bool>,
    inventory: Inventory,
    buffer: Vec<u8>,
    /// The directory being read: each entry's name in the arena and its kind.
    listing: Vec<(NameSpan, Kind)>,
    /// What is known of the file systems met.
    file_systems: HashMap<u64, FileSystem>,
    /// Stamps from before this time have ended their tick.
    trusted_until: Duration,
}

impl Walker<'_> {
    fn visit(&mut self, index: u32) -> Result<(), ProtectError> {
        let directory = self.inventory.directories[index as usize].clone();
        if let Some(earlier) = self.earlier
            && directory.earlier != NONE
            && self.reuse(index, &directory, earlier)?
        {
            return Ok(());
        }
        let path = self.inventory.path(index);
        let root = &self.roots[usize::from(directory.root)];
        let fail = |step, source: Errno| ProtectError::io(step, absolute(root, &path), source);
        let (parent, name) = nofollow::split(&path);
        let opened = nofollow::as_owner(&root.fd, parent, (!name.is_empty()).then_some(name), || {
            nofollow::open_directory(&root.fd, &path)
        });
        let fd = match opened {
            Ok(fd) => fd,
            // Gone, or replaced by something that is not a directory, since its parent was read.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) if directory.depth > 0 => return Ok(()),
            Err(Errno::EACCES) if !self.could_be_written(&directory, &path) => return Ok(()),
            Err(Errno::EACCES) => return Err(ProtectError::Unlisted(absolute(root, &path))),
            Err(error) => return Err(fail("open", error)),
        };
        let stat = fstat(&fd).map_err(|error| fail("look at", error))?;
        let identity = Identity::of(&stat);
        let file_system = self.file_system(&fd, identity.device);
        let stamp = Stamp::of(&stat);
        let stamp = (file_system == FileSystem::Stamped && self.is_past(stamp)).then_some(stamp);
        self.anchor(index);
        let record = &mut self.inventory.directories[index as usize];
        record.identity = identity;
        if file_system == FileSystem::Kernel {
            return Ok(());
        }
        record.read = true;
        record.stamp = stamp;
        self.list(&fd).map_err(|error| match error {
            ListError::Io(errno) => fail("list", errno),
            ListError::TooMany => ProtectError::TooMany,
        })?;
        self.inventory.reread += 1;
        self.add_listing(index, &directory)
    }

    /// Copies an unchanged directory from the earlier inventory; returns whether it was unchanged.
    fn reuse(&mut self, index: u32, directory: &Directory, earlier: &Inventory) -> Result<bool, ProtectError> {
        let before = &earlier.directories[directory.earlier as usize];
        if !self.unchanged[directory.earlier as usize] || before.inherited != directory.inherited {
            return Ok(false);
        }
        let children = self.inventory.directories.len();
        for child in before.children.range() {
            let known = &earlier.directories[child];
            let name = self.inventory.add_name(earlier.name(known.name))?;
            let child = u32::try_from(child).map_err(|_| ProtectError::TooMany)?;
            self.inventory.directories.push(Directory {
                parent: index,
                name,
                stamp: None,
                children: TableRange::default(),
                found: TableRange::default(),
                earlier: child,
                read: false,
                ..known.clone()
            });
        }
        let found = self.inventory.entries.len();
        for entry in &earlier.entries[before.found.range()] {
            let name = self.inventory.add_name(earlier.name(entry.name))?;
            self.inventory.entries.push(Entry {
                directory: index,
                name,
                ..*entry
            });
        }
        self.set_ranges(index, children, found)?;
        let record = &mut self.inventory.directories[index as usize];
        record.identity = before.identity;
        record.context = before.context;
        record.stamp = before.stamp;
        record.read = true;
        self.anchor(index);
        Ok(true)
    }

    /// Reads a listing into `self.listing`.
    fn list(&mut self, fd: &OwnedFd) -> Result<(), ListError> {
        self.listing.clear();
        loop {
            let read = match sys::getdents(fd, &mut self.buffer) {
                // The end; or removed while open, which leaves nothing to list.
                Ok(0) | Err(Errno::ENOENT) => return Ok(()),
                Ok(read) => read,
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(ListError::Io(error)),
            };
            for (name, kind) in sys::entries(&self.buffer[..read]) {
                let kind = entry_kind(fd, name, kind)?;
                let start = u32::try_from(self.inventory.names.len()).map_err(|_| ListError::TooMany)?;
                let length = u16::try_from(name.len()).map_err(|_| ListError::TooMany)?;
                self.inventory.names.extend_from_slice(name);
                self.listing.push((NameSpan { start, length }, kind));
            }
        }
    }

    /// Judges the listing and appends what it holds.
    fn add_listing(&mut self, index: u32, directory: &Directory) -> Result<(), ProtectError> {
        let mut markers = Markers::default();
        for &(name, kind) in &self.listing {
            markers.note(self.inventory.name(name), kind);
        }
        let identity = self.inventory.directories[index as usize].identity;
        let before = self
            .earlier
            .and_then(|earlier| earlier.directories.get(directory.earlier as usize));
        let before = before.filter(|before| before.identity == identity);
        let context = markers.refine(directory.inherited, before.map(|before| before.context.class));
        self.inventory.directories[index as usize].context = context;
        self.anchor(index);
        let mut known: HashMap<&[u8], u32> = HashMap::new();
        if let Some(earlier) = self.earlier
            && directory.earlier != NONE
        {
            let run = earlier.directories[directory.earlier as usize].children;
            known = (run.start..run.start + run.length)
                .map(|child| (earlier.name(earlier.directories[child as usize].name), child))
                .collect();
        }
        let (children, found) = (self.inventory.directories.len(), self.inventory.entries.len());
        let listing = std::mem::take(&mut self.listing);
        // The arena keeps a name only if something points to it: move the kept ones down as we go.
        let mut end = listing
            .first()
            .map_or(self.inventory.names.len(), |(span, _)| span.start as usize);
        for &(span, kind) in &listing {
            let name = self.inventory.name(span);
            let classification = self.patterns.classify(context, name, kind);
            let earlier = known.get(name).copied().unwrap_or(NONE);
            if classification.protect.is_none() && classification.descend.is_none() {
                continue;
            }
            let from = span.start as usize;
            self.inventory
                .names
                .copy_within(from..from + usize::from(span.length), end);
            let name = NameSpan {
                start: u32::try_from(end).map_err(|_| ProtectError::TooMany)?,
                ..span
            };
            end += usize::from(span.length);
            let too_deep = classification.descend.is_some() && directory.depth >= MAX_DEPTH;
            if let Some(role) = too_deep.then_some(Role::TooDeep).or(classification.protect) {
                self.inventory.entries.push(Entry {
                    directory: index,
                    name,
                    role,
                    kind,
                });
            }
            if let Some(context) = classification.descend
                && !too_deep
            {
                self.inventory.directories.push(Directory {
                    root: directory.root,
                    parent: index,
                    depth: directory.depth + 1,
                    name,
                    inherited: context,
                    context,
                    identity: Identity { device: 0, inode: 0 },
                    stamp: None,
                    children: TableRange::default(),
                    found: TableRange::default(),
                    earlier,
                    anchor: index,
                    read: false,
                });
            }
        }
        self.inventory.names.truncate(end);
        self.listing = listing;
        self.set_ranges(index, children, found)
    }

    /// Finds a directory's anchor, its context being known.
    fn anchor(&mut self, index: u32) {
        let directory = &self.inventory.directories[index as usize];
        let part_of_parent = match directory.context.class {
            Class::Protected(_)
            | Class::Listed(Layout::Mercurial | Layout::Jujutsu | Layout::JujutsuRepository | Layout::JujutsuStore) => {
                true
            }
            Class::Git => is_dot_git(self.inventory.name(directory.name)),
            // Git removes it when the operation ends.
            Class::Listed(Layout::Steps | Layout::Remotes | Layout::Git) | Class::Data | Class::Refs => false,
            Class::Plain | Class::Modules | Class::Worktrees => directory.context.is_on_path(),
        };
        if directory.depth > 0 && part_of_parent {
            let anchor = self.inventory.directories[directory.parent as usize].anchor;
            self.inventory.directories[index as usize].anchor = anchor;
        } else {
            self.inventory.directories[index as usize].anchor = index;
        }
    }

    /// Notes where a directory's children and entries, just appended, lie.
    fn set_ranges(&mut self, index: u32, children: usize, found: usize) -> Result<(), ProtectError> {
        let run = |start: usize, end: usize| {
            Some(TableRange {
                start: u32::try_from(start).ok()?,
                length: u32::try_from(end - start).ok()?,
            })
        };
        let children = run(children, self.inventory.directories.len()).ok_or(ProtectError::TooMany)?;
        let found = run(found, self.inventory.entries.len()).ok_or(ProtectError::TooMany)?;
        let record = &mut self.inventory.directories[index as usize];
        record.children = children;
        record.found = found;
        Ok(())
    }

    fn is_past(&self, stamp: Stamp) -> bool {
        let (seconds, nanoseconds) = stamp.changed;
        match (u64::try_from(seconds), u32::try_from(nanoseconds)) {
            (Ok(seconds), Ok(nanoseconds)) => Duration::new(seconds, nanoseconds) < self.trusted_until,
            (Err(_), _) | (_, Err(_)) => false,
        }
    }

    fn file_system(&mut self, fd: &OwnedFd, device: u64) -> FileSystem {
        *self.file_systems.entry(device).or_insert_with(|| {
            // One that cannot be asked is read every time.
            fstatfs(fd).map_or(FileSystem::Other, |stat| classify(stat.filesystem_type()))
        })
    }

    /// Whether a directory that we may not read could still be given entries by this user, or leads to one that could.
    fn could_be_written(&self, directory: &Directory, path: &[u8]) -> bool {
        let root = &self.roots[usize::from(directory.root)];
        match nofollow::stat(&root.fd, path) {
            Ok(stat) if stat.st_uid == nix::unistd::geteuid().as_raw() => true,
            Ok(stat) => nofollow::permissions(&stat) & 0o022 != 0 || nofollow::can_be_searched(&root.fd, path),
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => false,
            // Not reachable now, which may change.
            Err(_) => true,
        }
    }
}
