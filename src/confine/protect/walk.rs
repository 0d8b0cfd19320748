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

use super::at::{self, Identity};
use super::error::ProtectError;
use super::listing::{ListError, kind_listed};
use super::markers::Markers;
use super::names::is_dot_git;
use super::patterns::Patterns;
use super::place::{Kind, List, Place, Role};
use super::roots::{Root, shown};
use super::sight::{Directory, Entry, NONE, Run, Sight, Span};
use super::stamp::{FileSystem, Stamp, classify};
use super::unchanged::unchanged;
use crate::confine::sys;

/// The coarsest clock of a local file system's stamps, with room: 100 Hz.
pub(super) const TICK: Duration = Duration::from_millis(20);
/// Levels below a root. No project goes as deep, and every step on a directory costs its depth.
const MAX_DEPTH: u32 = 128;
/// Directories in all.
const MAX_DIRECTORIES: usize = 4_000_000;
/// The same for a test, which has no time for millions.
#[cfg(test)]
pub(super) static MAX_IN_TEST: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(MAX_DIRECTORIES);

#[cfg(not(test))]
pub(super) const fn most_directories() -> usize {
    MAX_DIRECTORIES
}

#[cfg(test)]
pub(super) fn most_directories() -> usize {
    MAX_IN_TEST.load(std::sync::atomic::Ordering::Relaxed)
}

/// Bytes of listing asked for at once.
const BUFFER: usize = 64 * 1024;

/// Walks the roots; a directory that cannot be looked into is an error.
pub(super) fn walk(roots: &[Root], patterns: &Patterns, earlier: Option<&Sight>) -> Result<Sight, ProtectError> {
    let mut errors = Vec::new();
    let sight = walk_through(roots, patterns, earlier, &mut errors)?;
    errors.into_iter().next().map_or(Ok(sight), Err)
}

/// Walks the roots; directories that cannot be looked into are left out and named, and so are those beyond the most.
pub(super) fn walk_through(
    roots: &[Root],
    patterns: &Patterns,
    earlier: Option<&Sight>,
    errors: &mut Vec<ProtectError>,
) -> Result<Sight, ProtectError> {
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
        sight: earlier.map_or_else(Sight::default, Sight::successor),
        buffer: vec![0; BUFFER],
        listing: Vec::new(),
        relied_on: HashMap::new(),
        trusted_until,
    };
    for (root, number) in roots.iter().zip(0_u16..) {
        let same_roots = earlier.and_then(|sight| sight.directories.get(usize::from(number)));
        walker.sight.directories.push(Directory {
            root: number,
            parent: u32::from(number),
            depth: 0,
            name: Span { start: 0, length: 0 },
            given: root.context,
            context: root.context,
            identity: root.identity,
            stamp: None,
            children: Run::default(),
            found: Run::default(),
            earlier: same_roots.map_or(NONE, |_| u32::from(number)),
            anchor: u32::from(number),
            read: false,
        });
    }
    let mut index = 0;
    while index < walker.sight.directories.len() {
        if index > most_directories() {
            // What was seen of it can be judged all the same.
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
    Ok(walker.sight)
}

pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

struct Walker<'a> {
    roots: &'a [Root],
    patterns: &'a Patterns,
    earlier: Option<&'a Sight>,
    /// Which directories of the earlier walk are as they were.
    unchanged: Vec<bool>,
    sight: Sight,
    buffer: Vec<u8>,
    /// The directory being read: each entry's name in the arena and its kind.
    listing: Vec<(Span, Kind)>,
    /// What is known of the file systems met.
    relied_on: HashMap<u64, FileSystem>,
    /// Stamps from before this time have ended their tick.
    trusted_until: Duration,
}

impl Walker<'_> {
    fn visit(&mut self, index: u32) -> Result<(), ProtectError> {
        let directory = self.sight.directories[index as usize].clone();
        if let Some(earlier) = self.earlier
            && directory.earlier != NONE
            && self.reuse(index, &directory, earlier)?
        {
            return Ok(());
        }
        let path = self.sight.path(index);
        let root = &self.roots[usize::from(directory.root)];
        let fail = |step, source: Errno| ProtectError::io(step, shown(root, &path), source);
        let (parent, name) = at::split(&path);
        let opened = at::insisting(&root.fd, parent, (!name.is_empty()).then_some(name), || {
            at::open_directory(&root.fd, &path)
        });
        let fd = match opened {
            Ok(fd) => fd,
            // Gone, or replaced by something that is not a directory, since its parent was read.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) if directory.depth > 0 => return Ok(()),
            Err(Errno::EACCES) if !self.could_be_written(&directory, &path) => return Ok(()),
            Err(Errno::EACCES) => return Err(ProtectError::Unlisted(shown(root, &path))),
            Err(error) => return Err(fail("open", error)),
        };
        let stat = fstat(&fd).map_err(|error| fail("look at", error))?;
        let identity = Identity::of(&stat);
        let file_system = self.file_system(&fd, identity.device);
        let stamp = Stamp::of(&stat);
        let stamp = (file_system == FileSystem::Stamped && self.is_past(stamp)).then_some(stamp);
        self.anchor(index);
        let record = &mut self.sight.directories[index as usize];
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
        self.sight.stale += 1;
        self.take(index, &directory)
    }

    /// Takes over an unchanged directory; whether it was one.
    fn reuse(&mut self, index: u32, directory: &Directory, earlier: &Sight) -> Result<bool, ProtectError> {
        let before = &earlier.directories[directory.earlier as usize];
        if !self.unchanged[directory.earlier as usize] || before.given != directory.given {
            return Ok(false);
        }
        let children = self.sight.directories.len();
        for child in before.children.range() {
            let known = &earlier.directories[child];
            let name = self.sight.keep(earlier.name(known.name))?;
            let child = u32::try_from(child).map_err(|_| ProtectError::TooMany)?;
            self.sight.directories.push(Directory {
                parent: index,
                name,
                stamp: None,
                children: Run::default(),
                found: Run::default(),
                earlier: child,
                read: false,
                ..known.clone()
            });
        }
        let found = self.sight.entries.len();
        for entry in &earlier.entries[before.found.range()] {
            let name = self.sight.keep(earlier.name(entry.name))?;
            self.sight.entries.push(Entry {
                directory: index,
                name,
                ..*entry
            });
        }
        self.close(index, children, found)?;
        let record = &mut self.sight.directories[index as usize];
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
                let kind = kind_listed(fd, name, kind)?;
                let start = u32::try_from(self.sight.names.len()).map_err(|_| ListError::TooMany)?;
                let length = u16::try_from(name.len()).map_err(|_| ListError::TooMany)?;
                self.sight.names.extend_from_slice(name);
                self.listing.push((Span { start, length }, kind));
            }
        }
    }

    /// Judges the listing and appends what it holds.
    fn take(&mut self, index: u32, directory: &Directory) -> Result<(), ProtectError> {
        let mut markers = Markers::default();
        for &(name, kind) in &self.listing {
            markers.see(self.sight.name(name), kind);
        }
        let identity = self.sight.directories[index as usize].identity;
        let before = self
            .earlier
            .and_then(|earlier| earlier.directories.get(directory.earlier as usize));
        let before = before.filter(|before| before.identity == identity);
        let context = markers.refine(directory.given, before.map(|before| before.context.place));
        self.sight.directories[index as usize].context = context;
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
        let (children, found) = (self.sight.directories.len(), self.sight.entries.len());
        let listing = std::mem::take(&mut self.listing);
        // The arena keeps a name only if something points to it: move the kept ones down as we go.
        let mut end = listing
            .first()
            .map_or(self.sight.names.len(), |(span, _)| span.start as usize);
        for &(span, kind) in &listing {
            let name = self.sight.name(span);
            let verdict = self.patterns.judge(context, name, kind);
            let earlier = known.get(name).copied().unwrap_or(NONE);
            if verdict.protect.is_none() && verdict.descend.is_none() {
                continue;
            }
            let from = span.start as usize;
            self.sight.names.copy_within(from..from + usize::from(span.length), end);
            let name = Span {
                start: u32::try_from(end).map_err(|_| ProtectError::TooMany)?,
                ..span
            };
            end += usize::from(span.length);
            let too_deep = verdict.descend.is_some() && directory.depth >= MAX_DEPTH;
            if let Some(role) = too_deep.then_some(Role::TooDeep).or(verdict.protect) {
                self.sight.entries.push(Entry {
                    directory: index,
                    name,
                    role,
                    kind,
                });
            }
            if let Some(context) = verdict.descend
                && !too_deep
            {
                self.sight.directories.push(Directory {
                    root: directory.root,
                    parent: index,
                    depth: directory.depth + 1,
                    name,
                    given: context,
                    context,
                    identity: Identity { device: 0, inode: 0 },
                    stamp: None,
                    children: Run::default(),
                    found: Run::default(),
                    earlier,
                    anchor: index,
                    read: false,
                });
            }
        }
        self.sight.names.truncate(end);
        self.listing = listing;
        self.close(index, children, found)
    }

    /// Finds a directory's anchor, its context being known.
    fn anchor(&mut self, index: u32) {
        let directory = &self.sight.directories[index as usize];
        let part_of_parent = match directory.context.place {
            Place::Whole(_)
            | Place::Listed(List::Mercurial | List::Jujutsu | List::JujutsuRepository | List::JujutsuStore) => true,
            Place::Git => is_dot_git(self.sight.name(directory.name)),
            // Git removes it when what is under way has ended.
            Place::Listed(List::Steps | List::Remotes | List::Git) | Place::Data | Place::Refs => false,
            Place::Plain | Place::Modules | Place::Worktrees => directory.context.is_under_way(),
        };
        if directory.depth > 0 && part_of_parent {
            let anchor = self.sight.directories[directory.parent as usize].anchor;
            self.sight.directories[index as usize].anchor = anchor;
        } else {
            self.sight.directories[index as usize].anchor = index;
        }
    }

    /// Notes where a directory's children and entries, just appended, lie.
    fn close(&mut self, index: u32, children: usize, found: usize) -> Result<(), ProtectError> {
        let run = |start: usize, end: usize| {
            Some(Run {
                start: u32::try_from(start).ok()?,
                length: u32::try_from(end - start).ok()?,
            })
        };
        let children = run(children, self.sight.directories.len()).ok_or(ProtectError::TooMany)?;
        let found = run(found, self.sight.entries.len()).ok_or(ProtectError::TooMany)?;
        let record = &mut self.sight.directories[index as usize];
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
        *self.relied_on.entry(device).or_insert_with(|| {
            // One that cannot be asked is read every time.
            fstatfs(fd).map_or(FileSystem::Other, |stat| classify(stat.filesystem_type()))
        })
    }

    /// Whether a directory that we may not read could still be given entries by this user, or leads to one that could.
    fn could_be_written(&self, directory: &Directory, path: &[u8]) -> bool {
        let root = &self.roots[usize::from(directory.root)];
        match at::stat(&root.fd, path) {
            Ok(stat) if stat.st_uid == nix::unistd::geteuid().as_raw() => true,
            Ok(stat) => at::permissions(&stat) & 0o022 != 0 || at::can_be_searched(&root.fd, path),
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => false,
            // Not even reachable, which may change: not certain is not safe.
            Err(_) => true,
        }
    }
}
