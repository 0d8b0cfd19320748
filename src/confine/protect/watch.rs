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

use super::at::{self, Identity, join, split};
use super::covers::Covers;
use super::error::ProtectError;
use super::held::{Changed, Held, Leads, changed, held};
use super::inspect::{Surroundings, is_of_worktree, leads_to_git_directory};
use super::names::is_dot_git;
use super::place::Role;
use super::roots::{Place, Root, shown};
use super::settle;
use super::sight::Found;
use super::snapshot::Guard;
use super::state::{Seen, State, glance};
use super::violation::Violation;

/// The name that leads a git directory to another one's settings.
const COMMON: &[u8] = b"commondir";
/// How often events are read before what they tell of is looked at: a full queue (16,384 events) of the longest names.
const MOST_READS: usize = 1200;
/// Longest text that leads somewhere.
const LONGEST: u64 = 1 << 13;
/// How often what a hook leads to is taken away from one command before that is killed: a rebase may write it several times.
const MOST_TAKEN: u32 = 8;

/// The git directories that were there when a command started, watched.
#[derive(Debug)]
pub struct Watch {
    inotify: Inotify,
    directories: HashMap<WatchDescriptor, Place>,
    /// The git directories in which a `commondir` is looked for.
    common: HashSet<Place>,
    /// The directories that held a `.git`, which was this if it was a directory.
    work_trees: HashMap<Place, Option<Identity>>,
    /// The files that lead git somewhere, and when they were changed last.
    leads: Vec<(Place, Changed)>,
    /// The directories that hold what mounts cover, and which these were: a mount goes along when one is moved away.
    holders: Vec<(Place, Identity)>,
    /// The links that lead git to what it obeys, and the files that hooks are links to.
    held: Vec<Held>,
    /// How often such a file was taken away.
    taken: u32,
    /// What a command made or changed of them.
    touched: BTreeSet<Place>,
    /// Where a `.git` leads rightfully.
    around: HashSet<Place>,
}

/// What is to be taken away.
#[derive(Debug, Default)]
struct Hostile {
    /// It leads git elsewhere.
    leads: Vec<Place>,
    /// It is a script that a hook is a link to.
    scripts: Vec<Place>,
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
            leads: Vec::new(),
            holders: Vec::new(),
            held: held(guard, covers),
            taken: 0,
            touched: BTreeSet::new(),
            around: guard.git_directories(),
        };
        let is_own = |(root, git): &&Place| !guard.is_made(*root, git);
        let own: Vec<Place> = watch.around.iter().filter(is_own).cloned().collect();
        for (root, git) in own {
            let holder = &roots[usize::from(root)];
            watch.add(holder, root, &git)?;
            watch.lead(holder, root, join(&git, COMMON));
            let (above, name) = split(&git);
            if is_dot_git(name) {
                let identity = at::stat(&holder.fd, &git).ok().as_ref().map(Identity::of);
                watch.add(holder, root, above)?;
                watch.work_trees.insert((root, above.to_vec()), identity);
            }
            watch.common.insert((root, git));
        }
        for (root, link) in guard.git_links() {
            let (holder, above) = (&roots[usize::from(root)], split(&link).0);
            watch.add(holder, root, above)?;
            watch.work_trees.insert((root, above.to_vec()), None);
            watch.lead(holder, root, link);
        }
        let held: Vec<(Place, Leads)> = watch.held.iter().map(|held| (held.place.clone(), held.leads)).collect();
        for ((root, path), _) in &held {
            watch.add(&roots[usize::from(*root)], *root, split(path).0)?;
        }
        // Not of what is held: tools remove a directory of links or scripts, and make it again.
        let covered = covers.into_iter().flat_map(Covers::places);
        let above: BTreeSet<Place> = covered.map(|(root, path)| (root, split(&path).0.to_vec())).collect();
        for (root, path) in above.into_iter().filter(|(_, path)| !path.is_empty()) {
            if let Ok(stat) = at::stat(&roots[usize::from(root)].fd, &path) {
                watch.holders.push(((root, path), Identity::of(&stat)));
            }
        }
        Ok(watch)
    }

    fn add(&mut self, holder: &Root, root: u16, path: &[u8]) -> Result<(), ProtectError> {
        let fail = |errno| match errno {
            Errno::EACCES => ProtectError::Shut(shown(holder, path)),
            errno => ProtectError::io("watch", shown(holder, path), errno),
        };
        let directory = match at::open_place(&holder.fd, path) {
            Ok(directory) => directory,
            // Who removed it since is no command; and where a link leads there may be nothing yet.
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(()),
            Err(errno) => return Err(fail(errno)),
        };
        let mask = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_MODIFY;
        // The kernel takes a path alone, and this one leads nowhere else.
        let itself = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let added = self.inotify.add_watch(itself.as_str(), mask).map_err(fail)?;
        self.directories.insert(added, (root, path.to_vec()));
        Ok(())
    }

    fn lead(&mut self, holder: &Root, root: u16, path: Vec<u8>) {
        if let Some(changed) = changed(holder, &path) {
            self.leads.push(((root, path), changed));
        }
    }

    /// Readable when something has happened in one of them.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Whether something is to be looked at again although nothing happened.
    pub fn is_restless(&self) -> bool {
        !self.leads.is_empty() || !self.touched.is_empty() || !self.holders.is_empty() || !self.held.is_empty()
    }

    /// Takes away what it has seen of a command; what was done. Where that may write to it meanwhile it is killed first:
    /// `kill` hears of the first of it.
    pub(crate) fn take_away(&mut self, guard: &mut Guard, kill: impl FnOnce(PathBuf)) -> Vec<Violation> {
        let Hostile {
            leads,
            scripts,
            is_killing,
        } = self.hostile(guard.roots());
        let all: Vec<_> = leads.into_iter().chain(scripts).collect();
        let Some((root, path)) = all.first() else {
            return Vec::new();
        };
        if is_killing {
            guard.distrust();
            kill(shown(&guard.roots()[usize::from(*root)], path));
        }
        settle::take_away(guard.roots(), guard.record(), guard.store(), all)
    }

    /// What leads git elsewhere now, and did not when the command started.
    fn hostile(&mut self, roots: &[Root]) -> Hostile {
        self.hear();
        // What is only shut leads nowhere.
        roots.iter().for_each(Root::open_again);
        for ((root, path), before) in &mut self.leads {
            let now = changed(&roots[usize::from(*root)], path);
            if let Some(now) = now.filter(|now| now != before) {
                *before = now;
                self.touched.insert((*root, path.clone()));
            }
        }
        for held in &mut self.held {
            if held.has_changed(&roots[usize::from(held.place.0)]) {
                self.touched.insert(held.place.clone());
            }
        }
        let led = self.touched.iter().filter(|place| !self.is_harmless(roots, place));
        let replaced = self.holders.iter().filter_map(|((root, path), before)| {
            let holder = &roots[usize::from(*root)];
            match insist(holder, path) {
                Ok(now) if Identity::of(&now) != *before => Some((*root, path.clone())),
                Err(Errno::ELOOP | Errno::ENOTDIR) => link_on_the_way(holder, *root, path),
                // One that was moved away and has no other in its place leads nowhere.
                Ok(_) | Err(Errno::ENOENT) => None,
                // A command can shut what it put there to us, and not to root.
                Err(_) => Some((*root, path.clone())),
            }
        });
        let leading = self.leads.iter().map(|(place, _)| place);
        let linked = leading
            .chain(self.held.iter().map(|held| &held.place))
            .filter_map(|(root, path)| {
                let holder = &roots[usize::from(*root)];
                match insist(holder, path) {
                    Err(Errno::ELOOP | Errno::ENOTDIR) => link_on_the_way(holder, *root, path),
                    Ok(_) | Err(Errno::ENOENT) => None,
                    Err(_) => Some((*root, path.clone())),
                }
            });
        let all: BTreeSet<Place> = led.cloned().chain(replaced).chain(linked).collect();
        let is_script = |place: &Place| {
            let held = self.held_at(place).filter(|held| held.leads == Leads::Script);
            held.is_some_and(|held| held.is_soon_taken(&roots[usize::from(place.0)]))
        };
        let (scripts, leads): (Vec<Place>, Vec<Place>) = all.into_iter().partition(is_script);
        self.taken += u32::from(!scripts.is_empty());
        Hostile {
            is_killing: !leads.is_empty() || self.taken > MOST_TAKEN,
            leads,
            scripts,
        }
    }

    fn held_at(&self, place: &Place) -> Option<&Held> {
        self.held.iter().find(|held| held.place == *place)
    }

    /// Notes what the kernel tells of. A command can make more of it than is read: what is left is read next time, and what
    /// was noted is looked at in between.
    fn hear(&mut self) {
        for _ in 0..MOST_READS {
            let read = self.inotify.read_events();
            if !self.note(read) {
                return;
            }
        }
    }

    /// Notes what was read; whether there may be more.
    fn note(&mut self, read: nix::Result<Vec<InotifyEvent>>) -> bool {
        let events = match read {
            Ok(events) => events,
            Err(Errno::EINTR) => return true,
            Err(Errno::EAGAIN) => return false,
            // What happened cannot be known.
            Err(_) => {
                self.touch_all();
                return false;
            }
        };
        for event in events {
            // More happened than is told.
            if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                self.touch_all();
            }
            let name = event.name.as_deref().map(OsStr::as_bytes).unwrap_or_default();
            let Some(place) = self.directories.get(&event.wd) else {
                continue;
            };
            let is_common = name == COMMON && self.common.contains(place);
            let named = (place.0, join(&place.1, name));
            if is_common || is_dot_git(name) && self.work_trees.contains_key(place) || self.held_at(&named).is_some() {
                self.touched.insert(named);
            }
        }
        true
    }

    /// Has everything looked at again.
    fn touch_all(&mut self) {
        let common = self.common.iter().map(|(root, git)| (*root, join(git, COMMON)));
        let trees = self.work_trees.keys().map(|(root, tree)| (*root, join(tree, b".git")));
        let held = self.held.iter().map(|held| held.place.clone());
        self.touched.extend(common.chain(trees).chain(held));
    }

    fn is_harmless(&self, roots: &[Root], place: &Place) -> bool {
        let (root, path) = place;
        let holder = &roots[usize::from(*root)];
        if let Some(held) = self.held_at(place) {
            return held.is_harmless(holder);
        }
        let (directory, name) = split(path);
        let seen = glance(&holder.fd, path, LONGEST);
        if name == COMMON {
            return match seen {
                Seen::Absent => true,
                // A work tree was removed and added again. An empty one leads nowhere yet, and is looked at again.
                Seen::Present(State::File { content, .. }) => {
                    is_of_worktree(*root, path, &self.around) && (content.is_empty() || content == b"../..\n")
                }
                Seen::Present(
                    State::Symlink { .. } | State::Directory { .. } | State::Special { .. } | State::Left,
                )
                | Seen::Long { .. }
                | Seen::Unreadable(_) => false,
            };
        }
        match seen {
            Seen::Absent => true,
            Seen::Present(State::Directory { .. }) => {
                let now = at::stat(&holder.fd, path).ok().as_ref().map(Identity::of);
                let before = self.work_trees.get(&(*root, directory.to_vec())).copied().flatten();
                now.is_some() && now == before
            }
            // An empty one leads nowhere yet, and is looked at again.
            Seen::Present(State::File { content, .. }) => content.is_empty() || self.leads_back(roots, place, &content),
            Seen::Present(State::Symlink { .. } | State::Special { .. } | State::Left)
            | Seen::Long { .. }
            | Seen::Unreadable(_) => false,
        }
    }

    /// Whether a `.git` file leads to a git directory that was there.
    fn leads_back(&self, roots: &[Root], (root, path): &Place, content: &[u8]) -> bool {
        let entry = Found {
            root: *root,
            path: path.clone(),
            role: Role::GitLink,
            anchor: Vec::new(),
        };
        let around = Surroundings {
            roots,
            git_directories: self.around.clone(),
        };
        leads_to_git_directory(&entry, content, &around)
    }
}

/// The first link on the way to a path.
fn link_on_the_way(holder: &Root, root: u16, path: &[u8]) -> Option<Place> {
    let ends = path
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(at, _)| at);
    let mut prefixes = ends.chain([path.len()]).map(|end| &path[..end]);
    let is_link = |prefix: &&[u8]| at::stat(&holder.fd, prefix).is_ok_and(|stat| at::kind(&stat) == libc::S_IFLNK);
    prefixes.find(is_link).map(|prefix| (root, prefix.to_vec()))
}

/// What is at the path, also where a command has shut the way to it.
fn insist(holder: &Root, path: &[u8]) -> nix::Result<FileStat> {
    at::insisting(&holder.fd, split(path).0, None, || at::stat(&holder.fd, path))
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
        let lead = |root: &Path| fs::write(root.join(".git/commondir"), "../evil\n").unwrap();
        assert!(!taken(|_, _| {}));
        assert!(taken(|root, _| lead(root)));
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
            lead(root);
        }));
    }

    #[test]
    fn everything_is_looked_at_where_what_happened_cannot_be_read() {
        for (error, is_found) in [(Errno::EIO, true), (Errno::ENOMEM, true), (Errno::EAGAIN, false)] {
            let found = taken(|root, watch| {
                fs::write(root.join(".git/commondir"), "../evil\n").unwrap();
                // The kernel told of it, and nobody could read that.
                while watch.inotify.read_events().is_ok() {}
                watch.note(Err(error));
            });
            assert_eq!(found, is_found, "{error}");
        }
    }
}
