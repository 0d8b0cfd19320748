//! A watch on what leads git elsewhere while a command runs, and what no mount can hold.
//!
//! The host's git obeys at once a `commondir` in a git directory, and whatever is called `.git` in a work tree. Neither can
//! be covered: a mount needs a file to stand on, and git removes and renames both. So the kernel tells the supervisor when a
//! command makes or changes one; what is changed through another name or a mapping is found by its time, and a directory
//! that takes the place of one that holds a cover by its number. What does not lead
//! to a git directory that was there at the start is hostile: it is taken away, and the command is killed. It is there for as
//! long as that takes.
//!
//! So it is with the links that lead git to settings and hooks. The file that a hook is a link to is one of the sources, which
//! git replaces at a checkout: a change of it is taken away a few times before the command is killed for it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use nix::sys::stat::FileStat;

use super::super::entry::nofollow::{self, Identity, join, split};
use super::super::entry::state::{Found, State, observe};
use super::super::error::ProtectError;
use super::super::guard::Guard;
use super::super::naming::class::Role;
use super::super::naming::names::is_dot_git;
use super::super::roots::{Root, RootPath, absolute};
use super::super::settling::inspect::{KnownGits, is_of_worktree, names_git_directory};
use super::super::settling::settle;
use super::super::tree::inventory::FoundEntry;
use super::super::violation::Violation;
use super::covers::Covers;
use super::watched_paths::{ChangeTime, PathKind, WatchedPath, change_time, watched_paths};

/// The file that makes a git directory share the settings of another.
const COMMON: &[u8] = b"commondir";
/// How often events are read before what they tell of is looked at: a full queue (16,384 events) of the longest names.
const MOST_READS: usize = 1200;
/// Longest `.git` or `commondir` file.
const LONGEST: u64 = 1 << 13;
/// How often what a hook leads to is taken away from one command before that is killed: a rebase may write it several times.
const MOST_TAKEN: u32 = 8;

/// The git directories that were there when a command started, watched.
#[derive(Debug)]
pub struct Watch {
    inotify: Inotify,
    directories: HashMap<WatchDescriptor, RootPath>,
    /// The git directories in which a `commondir` is looked for.
    common: HashSet<RootPath>,
    /// The directories that held a `.git`, which was this if it was a directory.
    work_trees: HashMap<RootPath, Option<Identity>>,
    /// The `.git` and `commondir` files, and when they were changed last.
    git_files: Vec<(RootPath, ChangeTime)>,
    /// The directories that hold what mounts cover, and which these were: a mount goes along when one is moved away.
    ancestors: Vec<(RootPath, Identity)>,
    /// The links to what git obeys, and the scripts that hooks are links to.
    watched: Vec<WatchedPath>,
    /// How often such a script was removed.
    taken: u32,
    /// What a command created or changed of them, and is not judged yet.
    changed: BTreeSet<RootPath>,
    /// The git directories that a `.git` may name.
    known_gits: HashSet<RootPath>,
}

/// What is to be removed at once.
#[derive(Debug, Default)]
struct Hostile {
    /// `.git` and `commondir` files, and links.
    git_files: Vec<RootPath>,
    /// Scripts that hooks are links to.
    scripts: Vec<RootPath>,
    /// Whether the command is to be killed.
    is_killing: bool,
}

impl Watch {
    /// Watches the git directories that the guard has seen and no command made, what holds the `covers`, and what leads to
    /// them.
    ///
    /// # Errors
    /// They cannot be watched; the command must not start.
    pub fn set(guard: &Guard, covers: Option<&Covers>) -> Result<Self, ProtectError> {
        let roots = guard.roots();
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK);
        let inotify = inotify.map_err(|errno| ProtectError::io("watch", "git directories".into(), errno))?;
        let mut watch = Self {
            inotify,
            directories: HashMap::new(),
            common: HashSet::new(),
            work_trees: HashMap::new(),
            git_files: Vec::new(),
            ancestors: Vec::new(),
            watched: watched_paths(guard, covers),
            taken: 0,
            changed: BTreeSet::new(),
            known_gits: guard.inventory.git_directories(),
        };
        let is_own = |(root, git): &&RootPath| !guard.is_made_by_command(*root, git);
        let own: Vec<RootPath> = watch.known_gits.iter().filter(is_own).cloned().collect();
        for (root, git) in own {
            let root_dir = &roots[usize::from(root)];
            watch.add(root_dir, root, &git)?;
            watch.watch_git_file(root_dir, root, join(&git, COMMON));
            let (above, name) = split(&git);
            if is_dot_git(name) {
                let identity = nofollow::stat(&root_dir.fd, &git).ok().as_ref().map(Identity::of);
                watch.add(root_dir, root, above)?;
                watch.work_trees.insert((root, above.to_vec()), identity);
            }
            watch.common.insert((root, git));
        }
        for (root, link) in guard.inventory.git_links() {
            let (root_dir, above) = (&roots[usize::from(root)], split(&link).0);
            watch.add(root_dir, root, above)?;
            watch.work_trees.insert((root, above.to_vec()), None);
            watch.watch_git_file(root_dir, root, link);
        }
        let watched: Vec<(RootPath, PathKind)> = watch
            .watched
            .iter()
            .map(|watched| (watched.location.clone(), watched.kind))
            .collect();
        for ((root, path), _) in &watched {
            watch.add(&roots[usize::from(*root)], *root, split(path).0)?;
        }
        // Not of watched links and scripts: tools remove their directory and create it again.
        let covered = covers.into_iter().flat_map(Covers::paths);
        let above: BTreeSet<RootPath> = covered.map(|(root, path)| (root, split(&path).0.to_vec())).collect();
        for (root, path) in above.into_iter().filter(|(_, path)| !path.is_empty()) {
            if let Ok(stat) = nofollow::stat(&roots[usize::from(root)].fd, &path) {
                watch.ancestors.push(((root, path), Identity::of(&stat)));
            }
        }
        Ok(watch)
    }

    fn add(&mut self, root_dir: &Root, root: u16, path: &[u8]) -> Result<(), ProtectError> {
        let fail = |errno| match errno {
            Errno::EACCES => ProtectError::Closed(absolute(root_dir, path)),
            errno => ProtectError::io("watch", absolute(root_dir, path), errno),
        };
        let directory = match nofollow::open_path(&root_dir.fd, path) {
            Ok(directory) => directory,
            // Who removed it since is no command; and where a link leads there may be nothing yet.
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(()),
            Err(errno) => return Err(fail(errno)),
        };
        let mask = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_MODIFY;
        // inotify takes a path only, and this one cannot lead elsewhere.
        let itself = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let added = self.inotify.add_watch(itself.as_str(), mask).map_err(fail)?;
        self.directories.insert(added, (root, path.to_vec()));
        Ok(())
    }

    fn watch_git_file(&mut self, root_dir: &Root, root: u16, path: Vec<u8>) {
        if let Some(change_time) = change_time(root_dir, &path) {
            self.git_files.push(((root, path), change_time));
        }
    }

    /// The descriptor, which is readable when there are events.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Whether something must be checked again without an event.
    pub fn needs_polling(&self) -> bool {
        !self.git_files.is_empty() || !self.changed.is_empty() || !self.ancestors.is_empty() || !self.watched.is_empty()
    }

    /// Takes away what it has seen of a command; what was done. Where that may write to it meanwhile it is killed first:
    /// `kill` hears of the first of it.
    pub(crate) fn take_away(&mut self, guard: &mut Guard, kill: impl FnOnce(PathBuf)) -> Vec<Violation> {
        let Hostile {
            git_files,
            scripts,
            is_killing,
        } = self.hostile(guard.roots());
        let all: Vec<_> = git_files.into_iter().chain(scripts).collect();
        let Some((root, path)) = all.first() else {
            return Vec::new();
        };
        if is_killing {
            guard.has_quarantined = true;
            kill(absolute(&guard.roots()[usize::from(*root)], path));
        }
        settle::take_away(guard.roots(), guard.record(), &guard.store, all)
    }

    /// What makes git look elsewhere now, and did not when the command started.
    fn hostile(&mut self, roots: &[Root]) -> Hostile {
        self.read_events();
        // A closed root hides nothing.
        roots.iter().for_each(Root::restore_mode_if_closed);
        for ((root, path), before) in &mut self.git_files {
            let now = change_time(&roots[usize::from(*root)], path);
            if let Some(now) = now.filter(|now| now != before) {
                *before = now;
                self.changed.insert((*root, path.clone()));
            }
        }
        for watched in &mut self.watched {
            if watched.has_changed(&roots[usize::from(watched.location.0)]) {
                self.changed.insert(watched.location.clone());
            }
        }
        let unexpected = self
            .changed
            .iter()
            .filter(|location| !self.is_harmless(roots, location));
        let replaced = self.ancestors.iter().filter_map(|((root, path), before)| {
            let root_dir = &roots[usize::from(*root)];
            match stat_with_owner_access(root_dir, path) {
                Ok(now) if Identity::of(&now) != *before => Some((*root, path.clone())),
                Err(Errno::ELOOP | Errno::ENOTDIR) => first_link(root_dir, *root, path),
                // One that was moved away and has no other in its place leads nowhere.
                Ok(_) | Err(Errno::ENOENT) => None,
                // A command can close a directory to us, but not to root.
                Err(_) => Some((*root, path.clone())),
            }
        });
        let git_file_paths = self.git_files.iter().map(|(location, _)| location);
        let behind_links = git_file_paths
            .chain(self.watched.iter().map(|watched| &watched.location))
            .filter_map(|(root, path)| {
                let root_dir = &roots[usize::from(*root)];
                match stat_with_owner_access(root_dir, path) {
                    Err(Errno::ELOOP | Errno::ENOTDIR) => first_link(root_dir, *root, path),
                    Ok(_) | Err(Errno::ENOENT) => None,
                    Err(_) => Some((*root, path.clone())),
                }
            });
        let all: BTreeSet<RootPath> = unexpected.cloned().chain(replaced).chain(behind_links).collect();
        let is_script = |location: &RootPath| {
            let watched = self
                .watched_at(location)
                .filter(|watched| watched.kind == PathKind::Script);
            watched.is_some_and(|watched| watched.is_removable(&roots[usize::from(location.0)]))
        };
        let (scripts, git_files): (Vec<RootPath>, Vec<RootPath>) = all.into_iter().partition(is_script);
        self.taken += u32::from(!scripts.is_empty());
        Hostile {
            is_killing: !git_files.is_empty() || self.taken > MOST_TAKEN,
            git_files,
            scripts,
        }
    }

    fn watched_at(&self, location: &RootPath) -> Option<&WatchedPath> {
        self.watched.iter().find(|watched| watched.location == *location)
    }

    /// Notes what the kernel tells of. A command can make more of it than is read: what is left is read next time, and what
    /// was noted is looked at in between.
    fn read_events(&mut self) {
        for _ in 0..MOST_READS {
            let read = self.inotify.read_events();
            if !self.handle_events(read) {
                return;
            }
        }
    }

    /// Notes what was read; whether there may be more.
    fn handle_events(&mut self, read: nix::Result<Vec<InotifyEvent>>) -> bool {
        let events = match read {
            Ok(events) => events,
            Err(Errno::EINTR) => return true,
            Err(Errno::EAGAIN) => return false,
            // The events are lost.
            Err(_) => {
                self.recheck_everything();
                return false;
            }
        };
        for event in events {
            // Events were lost.
            if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                self.recheck_everything();
            }
            let name = event.name.as_deref().map(OsStr::as_bytes).unwrap_or_default();
            let Some(location) = self.directories.get(&event.wd) else {
                continue;
            };
            let is_common = name == COMMON && self.common.contains(location);
            let named = (location.0, join(&location.1, name));
            if is_common
                || is_dot_git(name) && self.work_trees.contains_key(location)
                || self.watched_at(&named).is_some()
            {
                self.changed.insert(named);
            }
        }
        true
    }

    /// Marks everything as changed.
    fn recheck_everything(&mut self) {
        let common = self.common.iter().map(|(root, git)| (*root, join(git, COMMON)));
        let trees = self.work_trees.keys().map(|(root, tree)| (*root, join(tree, b".git")));
        let watched = self.watched.iter().map(|watched| watched.location.clone());
        self.changed.extend(common.chain(trees).chain(watched));
    }

    fn is_harmless(&self, roots: &[Root], location: &RootPath) -> bool {
        let (root, path) = location;
        let root_dir = &roots[usize::from(*root)];
        if let Some(watched) = self.watched_at(location) {
            return watched.is_harmless(root_dir);
        }
        let (directory, name) = split(path);
        let observed = observe(&root_dir.fd, path, LONGEST);
        if name == COMMON {
            return match observed {
                Found::Absent => true,
                // A work tree was removed and added again. An empty one leads nowhere yet, and is looked at again.
                Found::Present(State::File { content, .. }) => {
                    is_of_worktree(*root, path, &self.known_gits) && (content.is_empty() || content == b"../..\n")
                }
                Found::Present(
                    State::Symlink { .. } | State::Directory { .. } | State::Special { .. } | State::Ignored,
                )
                | Found::TooLong { .. }
                | Found::Unreadable(_) => false,
            };
        }
        match observed {
            Found::Absent => true,
            Found::Present(State::Directory { .. }) => {
                let now = nofollow::stat(&root_dir.fd, path).ok().as_ref().map(Identity::of);
                let before = self.work_trees.get(&(*root, directory.to_vec())).copied().flatten();
                now.is_some() && now == before
            }
            // An empty one leads nowhere yet, and is looked at again.
            Found::Present(State::File { content, .. }) => {
                content.is_empty() || self.points_back(roots, location, &content)
            }
            Found::Present(State::Symlink { .. } | State::Special { .. } | State::Ignored)
            | Found::TooLong { .. }
            | Found::Unreadable(_) => false,
        }
    }

    /// Whether a `.git` file leads to a git directory that was there.
    fn points_back(&self, roots: &[Root], (root, path): &RootPath, content: &[u8]) -> bool {
        let entry = FoundEntry {
            root: *root,
            path: path.clone(),
            role: Role::GitLink,
            anchor: Vec::new(),
        };
        let known_gits = KnownGits {
            roots,
            git_directories: self.known_gits.clone(),
        };
        names_git_directory(&entry, content, &known_gits)
    }
}

/// The first link in a path.
fn first_link(root_dir: &Root, root: u16, path: &[u8]) -> Option<RootPath> {
    let is_link =
        |prefix: &&[u8]| nofollow::stat(&root_dir.fd, prefix).is_ok_and(|stat| nofollow::kind(&stat) == libc::S_IFLNK);
    nofollow::prefixes(path)
        .find(is_link)
        .map(|prefix| (root, prefix.to_vec()))
}

/// Reads the status of a path, also where a command has closed a directory above it.
fn stat_with_owner_access(root_dir: &Root, path: &[u8]) -> nix::Result<FileStat> {
    nofollow::as_owner(&root_dir.fd, split(path).0, None, || nofollow::stat(&root_dir.fd, path))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// A root with a git directory and a guard on it, watched; what the supervisor makes of what `happens`.
    fn taken(happens: impl FnOnce(&Path, &mut Watch)) -> bool {
        let scratch = tempfile::tempdir().unwrap();
        let [root, store] = ["root", "store"].map(|name| scratch.path().join(name));
        for directory in [root.join(".git/objects"), root.join(".git/refs"), store.clone()] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let mut guard = Guard::snapshot(std::slice::from_ref(&root), &[], &store).unwrap();
        let mut watch = Watch::set(&guard, None).unwrap();
        happens(&root, &mut watch);
        let mut taken = false;
        let _done = watch.take_away(&mut guard, |_| taken = true);
        assert!(!taken || !root.join(".git/commondir").exists());
        assert!(guard.settle().errors.is_empty());
        taken
    }

    #[test]
    fn what_led_elsewhere_is_found_where_the_kernel_tells_of_it_or_lost_count() {
        let watch_git_file = |root: &Path| fs::write(root.join(".git/commondir"), "../evil\n").unwrap();
        assert!(!taken(|_, _| {}));
        assert!(taken(|root, _| watch_git_file(root)));
        assert!(taken(|root, _| {
            let most: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
                .unwrap()
                .trim()
                .parse()
                .unwrap();
            for number in 0..=most {
                let file = root.join(".git").join(format!("X{number}"));
                fs::write(&file, "").unwrap();
                fs::remove_file(file).unwrap();
            }
            watch_git_file(root);
        }));
    }

    #[test]
    fn everything_is_looked_at_where_what_happened_cannot_be_read() {
        for (error, is_found) in [(Errno::EIO, true), (Errno::ENOMEM, true), (Errno::EAGAIN, false)] {
            let found = taken(|root, watch| {
                fs::write(root.join(".git/commondir"), "../evil\n").unwrap();
                // The kernel told of it, and nobody could read that.
                while watch.inotify.read_events().is_ok() {}
                watch.handle_events(Err(error));
            });
            assert_eq!(found, is_found, "{error}");
        }
    }
}
