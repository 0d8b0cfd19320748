//! Work trees that are removed or moved: what git does to the `.git` file of a submodule or of a further work tree.
//!
//! Such a file only says where a git directory is. Where it goes with all that lay beside it, git obeys there what it obeys
//! one directory above; where it goes along with its directory, git obeys what it obeyed. Neither lets a command choose.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use nix::errno::Errno;

use super::super::entry::nofollow::{self, is_within, join, split};
use super::super::entry::restore::is_blocked;
use super::super::entry::state::{Found, State, observe};
use super::super::gitconfig::settings::settings;
use super::super::naming::class::Role;
use super::super::naming::markers::Markers;
use super::super::naming::names::is_dot_git;
use super::super::record::{Record, SavedEntry};
use super::super::roots::{Root, absolute};
use super::super::tracked::Tracked;
use super::super::tree::inventory::{Ancestor, FoundEntry};
use super::inspect::{is_gitdir_backlink, is_own_worktree, named_git_directories, resolve_in_roots, resolve_relative};
use crate::confine::sys;

/// Longest `.git` or `gitdir` file.
const LONGEST: u64 = 1 << 13;

/// Longest config that is read for where a work tree is.
const MAX_CONFIG: u64 = 1 << 20;

/// A work tree that a command moved.
#[derive(Debug)]
struct MovedWorkTree {
    root: u16,
    from: Vec<u8>,
    to: Vec<u8>,
}

/// What may become of the work trees of one settlement.
pub(crate) struct WorkTrees<'a> {
    roots: &'a [Root],
    record: &'a Record,
    entries: OnceCell<HashMap<(u16, &'a [u8]), &'a SavedEntry>>,
    /// Those that this round found moved.
    moved: Vec<MovedWorkTree>,
}

impl<'a> WorkTrees<'a> {
    pub(crate) fn new(roots: &'a [Root], record: &'a Record) -> Self {
        Self {
            roots,
            record,
            entries: OnceCell::new(),
            moved: Vec::new(),
        }
    }

    fn root(&self, number: u16) -> &'a Root {
        &self.roots[usize::from(number)]
    }

    /// The entry as it was recorded.
    pub(crate) fn saved(&self, root: u16, path: &[u8]) -> Option<&'a SavedEntry> {
        let all = || {
            let entries = self.record.entries.iter();
            entries.map(|kept| ((kept.root, kept.path.as_slice()), kept)).collect()
        };
        self.entries.get_or_init(all).get(&(root, path)).copied()
    }

    /// Begins a new round.
    pub(crate) fn forget_moves(&mut self) {
        self.moved.clear();
    }

    /// Whether a `.git` file may be gone: its directory is empty, and above it is what was there, or what git obeys anyway.
    fn may_be_removed(&self, tracked: &Tracked<'_>, kept: &SavedEntry) -> bool {
        let (Role::GitLink, State::File { .. }) = (kept.role, &kept.state) else {
            return false;
        };
        let (root, top) = (self.root(kept.root), split(&kept.path).0);
        if !tracked.has_tips() || !is_empty(root, top) {
            return false;
        }
        // A `.git` file that a command made matters to nobody else.
        if tracked.is_made_by_commands(kept) {
            return true;
        }
        let mut above = top;
        while !above.is_empty() {
            above = split(above).0;
            let entry = join(above, b".git");
            match nofollow::stat(&root.fd, &entry) {
                Ok(_) => {
                    let known = self.saved(kept.root, &entry);
                    return known.is_some_and(|known| tracked.is_made_by_host(known));
                }
                Err(Errno::ENOENT) => {}
                Err(_) => return false,
            }
            // Without that name it may be a git directory all the same.
            if Markers::of_directory(&absolute(root, above)).is_git_directory() {
                return false;
            }
        }
        // What lies around the root no command of this session can make, unless it lies in another root.
        !self
            .roots
            .iter()
            .any(|other| other.path != root.path && root.path.starts_with(&other.path))
    }

    /// Whether a directory moved with its work tree; remembers the move.
    pub(crate) fn moves_with_work_tree(
        &mut self,
        tracked: &Tracked<'_>,
        ancestor: &Ancestor,
        root: u16,
        to: &[u8],
    ) -> bool {
        if root != ancestor.root {
            return false;
        }
        let moved_with = |moved: &MovedWorkTree| {
            let below = |path: &[u8], top: &[u8]| is_within(path, top).then(|| path[top.len()..].to_vec());
            moved.root == root
                && below(&ancestor.path, &moved.from).is_some_and(|left| Some(left) == below(to, &moved.to))
        };
        if self.moved.iter().any(moved_with) {
            return true;
        }
        let may_move = self.may_move(tracked, ancestor, to);
        if may_move {
            self.moved.push(MovedWorkTree {
                root,
                from: ancestor.path.clone(),
                to: to.to_vec(),
            });
        }
        may_move
    }

    /// Whether the holder may be there now: it is a work tree that leads where it led, or is of commands alone. What else is
    /// protected in it came along as it was.
    fn may_move(&self, tracked: &Tracked<'_>, ancestor: &Ancestor, to: &[u8]) -> bool {
        let (root, from) = (self.root(ancestor.root), ancestor.path.as_slice());
        if !tracked.has_tips() || is_within(to, from) {
            return false;
        }
        let is_made_by_commands = match observe(&root.fd, from, LONGEST) {
            Found::Absent if is_blocked(root, from) => return false,
            Found::Absent => self.is_made_by_commands(tracked, ancestor),
            // A file in its old place names it.
            Found::Present(State::File { content, .. }) => {
                let target = named_git_directories(self.roots, ancestor.root, split(from).0, &content);
                if !target.contains(&(ancestor.root, to.to_vec())) || !self.is_made_by_commands(tracked, ancestor) {
                    return false;
                }
                true
            }
            Found::Present(_) | Found::TooLong { .. } | Found::Unreadable(_) => return false,
        };
        let link = join(from, b".git");
        if !is_made_by_commands && !self.git_file_points_where_it_did(ancestor, &link, to) {
            return false;
        }
        let is_same_there = |kept: &SavedEntry| match kept.role {
            Role::Name | Role::JudgedText => {
                let path = [to, &kept.path[from.len()..]].concat();
                let now = observe(&root.fd, &path, kept.state.length());
                matches!(now, Found::Present(now) if now == kept.state)
            }
            Role::GitLink => is_made_by_commands || kept.path == link,
            Role::GitDirectory
            | Role::GitConfig
            | Role::GitCommon
            | Role::GitBacklink
            | Role::GitHook
            | Role::LinkOnPath
            | Role::TooDeep
            | Role::Unlisted => is_made_by_commands,
        };
        self.entries_below(ancestor).all(is_same_there)
    }

    fn entries_below(&self, ancestor: &Ancestor) -> impl Iterator<Item = &SavedEntry> {
        let entries = self.record.entries.iter();
        entries.filter(|kept| kept.root == ancestor.root && is_within(&kept.path, &ancestor.path))
    }

    /// Whether the directory has repositories in it, and commands made all of them.
    fn is_made_by_commands(&self, tracked: &Tracked<'_>, ancestor: &Ancestor) -> bool {
        let mut of_repositories = self
            .entries_below(ancestor)
            .filter(|kept| !matches!(kept.role, Role::Name | Role::JudgedText))
            .peekable();
        of_repositories.peek().is_some() && of_repositories.all(|kept| tracked.is_made_by_commands(kept))
    }

    /// Whether the `.git` file of the directory names the same git directory as before.
    fn git_file_points_where_it_did(&self, ancestor: &Ancestor, link: &[u8], to: &[u8]) -> bool {
        let Some(State::File { content: before, .. }) = self.saved(ancestor.root, link).map(|kept| &kept.state) else {
            return false;
        };
        let now = observe(&self.root(ancestor.root).fd, &join(to, b".git"), LONGEST);
        let Found::Present(State::File { content: now, .. }) = now else {
            return false;
        };
        let target = named_git_directories(self.roots, ancestor.root, &ancestor.path, before);
        let points_back = |(root, git): &(u16, Vec<u8>)| self.points_back(*root, git, (ancestor.root, to));
        target == named_git_directories(self.roots, ancestor.root, to, &now) && target.iter().any(points_back)
    }

    /// Whether a git directory names this work tree, as it does after `git worktree move`.
    fn points_back(&self, root: u16, git: &[u8], to: (u16, &[u8])) -> bool {
        let ancestor = &self.root(root).fd;
        match observe(ancestor, &join(git, b"gitdir"), LONGEST) {
            Found::Present(State::File { content, .. }) => {
                let link = (to.0, join(to.1, b".git"));
                let path = content.strip_suffix(b"\n");
                path.is_some_and(|path| resolve_in_roots(self.roots, root, git, path).contains(&link))
            }
            // That of a submodule has a setting for it.
            Found::Absent => {
                let Found::Present(State::File { content, .. }) = observe(ancestor, &join(git, b"config"), MAX_CONFIG)
                else {
                    return false;
                };
                let all = settings(&content);
                let mut last = all.iter().rev();
                let set = last.find(|one| one.section == b"core" && one.key == b"worktree");
                root == to.0 && set.is_some_and(|set| resolve_relative(git, &set.value).as_deref() == Some(to.1))
            }
            Found::Present(_) | Found::TooLong { .. } | Found::Unreadable(_) => false,
        }
    }

    /// Whether an entry moved with its work tree, or is the file that names the new path.
    pub(crate) fn moved_with_work_tree(&self, kept: &SavedEntry, observed: &Found) -> bool {
        let is_at = |moved: &&MovedWorkTree| moved.root == kept.root && is_within(&kept.path, &moved.from);
        self.moved.iter().find(is_at).is_some_and(|moved| match observed {
            Found::Absent => true,
            Found::Present(State::File { content, .. }) if kept.path == moved.from => {
                let target = named_git_directories(self.roots, kept.root, split(&kept.path).0, content);
                target.contains(&(moved.root, moved.to.clone()))
            }
            Found::Present(_) | Found::TooLong { .. } | Found::Unreadable(_) => false,
        })
    }

    /// The saved entry of a new one that moved with its work tree, unchanged.
    pub(crate) fn entry_before_move(&self, found: &FoundEntry, observed: &Found) -> Option<&SavedEntry> {
        self.moved.iter().find_map(|moved| {
            if moved.root != found.root || !is_within(&found.path, &moved.to) {
                return None;
            }
            let before = [&moved.from, &found.path[moved.to.len()..]].concat();
            let known = self.saved(found.root, &before).filter(|kept| kept.role == found.role);
            known.filter(|kept| matches!(observed, Found::Present(now) if kept.state == *now))
        })
    }

    /// Whether a `.git` or `gitdir` file names what it named, or the new path of its work tree.
    pub(crate) fn points_where_it_did(&self, kept: &SavedEntry, before: &[u8], now: &[u8]) -> bool {
        let top = split(&kept.path).0;
        match kept.role {
            Role::GitLink => {
                let target = named_git_directories(self.roots, kept.root, top, before);
                !target.is_empty() && target == named_git_directories(self.roots, kept.root, top, now)
            }
            Role::GitBacklink => self.backlink_follows_move(kept, before, now),
            Role::GitDirectory
            | Role::GitConfig
            | Role::GitCommon
            | Role::GitHook
            | Role::LinkOnPath
            | Role::Name
            | Role::TooDeep
            | Role::JudgedText
            | Role::Unlisted => false,
        }
    }

    /// Whether `gitdir` of a git directory names the new path of its work tree.
    fn backlink_follows_move(&self, kept: &SavedEntry, before: &[u8], now: &[u8]) -> bool {
        let git = split(&kept.path).0;
        let targets = |text: &[u8]| {
            let path = is_gitdir_backlink(text).then(|| text.strip_suffix(b"\n")).flatten();
            path.map(|path| resolve_in_roots(self.roots, kept.root, git, path))
                .unwrap_or_default()
        };
        let was = targets(before);
        let is_absent = |(root, path): &(u16, Vec<u8>)| {
            matches!(nofollow::stat(&self.root(*root).fd, path), Err(Errno::ENOENT))
                && !is_blocked(self.root(*root), path)
        };
        let points_here = |(root, link): &(u16, Vec<u8>)| {
            let Found::Present(State::File { content, .. }) = observe(&self.root(*root).fd, link, LONGEST) else {
                return false;
            };
            let target = named_git_directories(self.roots, *root, split(link).0, &content);
            target.contains(&(kept.root, git.to_vec()))
        };
        !was.is_empty() && was.iter().all(is_absent) && targets(now).iter().any(points_here)
    }

    /// The work trees that were removed completely.
    pub(crate) fn removed(&self, tracked: &Tracked<'_>) -> HashSet<(u16, Vec<u8>)> {
        let removed = self
            .record
            .entries
            .iter()
            .filter(|kept| self.may_be_removed(tracked, kept));
        removed.map(|kept| (kept.root, split(&kept.path).0.to_vec())).collect()
    }

    /// Whether a setting of a git directory's config, there since the command, says where its work tree is; or may be gone.
    /// So it is of a submodule alone, where git itself sets and unsets it.
    pub(crate) fn may_set_work_tree(&self, root: u16, config: &[u8], work_tree: Option<&[u8]>) -> bool {
        let git = split(config).0;
        // Below `.git/modules`: an ordinary directory may have the second name.
        let mut names = git.split(|&b| b == b'/');
        let is_of_submodule = names.any(is_dot_git) && names.any(|name| name == b"modules");
        is_of_submodule && work_tree.is_none_or(|work_tree| is_own_worktree(self.roots, root, git, work_tree))
    }
}

/// Whether there is a directory with nothing in it.
fn is_empty(root: &Root, path: &[u8]) -> bool {
    let Ok(directory) = nofollow::open_directory(&root.fd, path) else {
        return false;
    };
    let mut buffer = vec![0; 4096];
    sys::getdents(&directory, &mut buffer).is_ok_and(|read| sys::names(&buffer[..read]).next().is_none())
}
