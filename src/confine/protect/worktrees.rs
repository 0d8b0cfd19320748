//! Work trees that go, move or are led back: what git does to the `.git` file of a submodule or of a further work tree.
//!
//! Such a file only says where a git directory is. Where it goes with all that lay beside it, git obeys there what it obeys
//! one directory above; where it goes along with its directory, git obeys what it obeyed. Neither lets a command choose.

use std::collections::HashSet;

use nix::errno::Errno;

use super::at::{self, is_within, join, split};
use super::inspect::{is_own_worktree, is_way_back, lead, leads, named_git_directories};
use super::markers::Markers;
use super::names::is_dot_git;
use super::place::Role;
use super::record::Kept;
use super::restore::is_blocked;
use super::roots::{Root, shown};
use super::settings::settings;
use super::sight::{Found, Holder};
use super::state::{Seen, State, glance};
use super::work::{Moved, Work};
use crate::confine::sys;

/// Longest text that leads somewhere.
const LONGEST: u64 = 1 << 13;

/// Longest config that is read for where a work tree is.
const MAX_CONFIG: u64 = 1 << 20;

impl Work<'_> {
    /// Whether a `.git` file may be gone: its directory is empty, and above it is what was there, or what git obeys anyway.
    pub(super) fn may_lose(&self, kept: &Kept) -> bool {
        let (Role::GitLink, State::File { .. }) = (kept.role, &kept.state) else {
            return false;
        };
        let (root, top) = (self.root(kept.root), split(&kept.path).0);
        if !self.tracked.knows_who_made_what() || !is_empty(root, top) {
            return false;
        }
        // What a command made led nobody but to what the command made.
        if self.tracked.is_of_commands(kept) {
            return true;
        }
        let mut above = top;
        while !above.is_empty() {
            above = split(above).0;
            let entry = join(above, b".git");
            match at::stat(&root.fd, &entry) {
                Ok(_) => {
                    let known = self.kept(kept.root, &entry);
                    return known.is_some_and(|known| self.tracked.is_of_host(known));
                }
                Err(Errno::ENOENT) => {}
                Err(_) => return false,
            }
            // Without that name it may be a git directory all the same.
            if Markers::look(&shown(root, above)).is_git_directory() {
                return false;
            }
        }
        // What lies around the root no command of this session can make, unless it lies in another root.
        !self
            .roots
            .iter()
            .any(|other| other.path != root.path && root.path.starts_with(&other.path))
    }

    /// Whether a holder moved with the work tree that it is or lies in, which is noted.
    pub(super) fn has_moved_along(&mut self, holder: &Holder, root: u16, to: &[u8]) -> bool {
        if root != holder.root {
            return false;
        }
        let is_along = |moved: &Moved| {
            let below = |path: &[u8], top: &[u8]| is_within(path, top).then(|| path[top.len()..].to_vec());
            moved.root == root
                && below(&holder.path, &moved.from).is_some_and(|left| Some(left) == below(to, &moved.to))
        };
        if self.moved.iter().any(is_along) {
            return true;
        }
        let may_move = self.may_move(holder, to);
        if may_move {
            self.moved.push(Moved {
                root,
                from: holder.path.clone(),
                to: to.to_vec(),
            });
        }
        may_move
    }

    /// Whether the holder may be there now: it is a work tree that leads where it led, or is of commands alone. What else is
    /// protected in it came along as it was.
    fn may_move(&self, holder: &Holder, to: &[u8]) -> bool {
        let (root, from) = (self.root(holder.root), holder.path.as_slice());
        if !self.tracked.knows_who_made_what() || is_within(to, from) {
            return false;
        }
        let is_of_commands = match glance(&root.fd, from, LONGEST) {
            Seen::Absent if is_blocked(root, from) => return false,
            Seen::Absent => self.is_of_commands(holder),
            // Where its git directory was, a file leads to it.
            Seen::Present(State::File { content, .. }) => {
                let led = named_git_directories(self.roots, holder.root, split(from).0, &content);
                if !led.contains(&(holder.root, to.to_vec())) || !self.is_of_commands(holder) {
                    return false;
                }
                true
            }
            Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_) => return false,
        };
        let link = join(from, b".git");
        if !is_of_commands && !self.leads_where_it_led(holder, &link, to) {
            return false;
        }
        let goes_along = |kept: &Kept| match kept.role {
            Role::Name | Role::Judged => {
                let path = [to, &kept.path[from.len()..]].concat();
                let now = glance(&root.fd, &path, kept.state.length());
                matches!(now, Seen::Present(now) if now == kept.state)
            }
            Role::GitLink => is_of_commands || kept.path == link,
            Role::GitDirectory
            | Role::GitConfig
            | Role::GitCommon
            | Role::GitBack
            | Role::GitHook
            | Role::Way
            | Role::TooDeep
            | Role::Unlisted => is_of_commands,
        };
        self.below(holder).all(goes_along)
    }

    fn below(&self, holder: &Holder) -> impl Iterator<Item = &Kept> {
        let entries = self.record.entries.iter();
        entries.filter(|kept| kept.root == holder.root && is_within(&kept.path, &holder.path))
    }

    /// Whether the holder is, or holds, repositories, and commands made all of them.
    fn is_of_commands(&self, holder: &Holder) -> bool {
        let mut of_git = self
            .below(holder)
            .filter(|kept| !matches!(kept.role, Role::Name | Role::Judged))
            .peekable();
        of_git.peek().is_some() && of_git.all(|kept| self.tracked.is_of_commands(kept))
    }

    /// Whether the `.git` file of the holder leads to the git directory that it led to.
    fn leads_where_it_led(&self, holder: &Holder, link: &[u8], to: &[u8]) -> bool {
        let Some(State::File { content: before, .. }) = self.kept(holder.root, link).map(|kept| &kept.state) else {
            return false;
        };
        let now = glance(&self.root(holder.root).fd, &join(to, b".git"), LONGEST);
        let Seen::Present(State::File { content: now, .. }) = now else {
            return false;
        };
        let led = named_git_directories(self.roots, holder.root, &holder.path, before);
        let leads_back = |(root, git): &(u16, Vec<u8>)| self.leads_back(*root, git, (holder.root, to));
        led == named_git_directories(self.roots, holder.root, to, &now) && led.iter().any(leads_back)
    }

    /// Whether a git directory says that its work tree is there, as git has it say when it moves that.
    fn leads_back(&self, root: u16, git: &[u8], to: (u16, &[u8])) -> bool {
        let holder = &self.root(root).fd;
        match glance(holder, &join(git, b"gitdir"), LONGEST) {
            Seen::Present(State::File { content, .. }) => {
                let link = (to.0, join(to.1, b".git"));
                let path = content.strip_suffix(b"\n");
                path.is_some_and(|path| leads(self.roots, root, git, path).contains(&link))
            }
            // That of a submodule has a setting for it.
            Seen::Absent => {
                let Seen::Present(State::File { content, .. }) = glance(holder, &join(git, b"config"), MAX_CONFIG)
                else {
                    return false;
                };
                let all = settings(&content);
                let mut last = all.iter().rev();
                let set = last.find(|one| one.section == b"core" && one.key == b"worktree");
                root == to.0 && set.is_some_and(|set| lead(git, &set.value).as_deref() == Some(to.1))
            }
            Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_) => false,
        }
    }

    /// Whether an entry is gone with what moved, or is the file that leads to where that is.
    pub(super) fn has_gone_along(&self, kept: &Kept, seen: &Seen) -> bool {
        let is_at = |moved: &&Moved| moved.root == kept.root && is_within(&kept.path, &moved.from);
        self.moved.iter().find(is_at).is_some_and(|moved| match seen {
            Seen::Absent => true,
            Seen::Present(State::File { content, .. }) if kept.path == moved.from => {
                let led = named_git_directories(self.roots, kept.root, split(&kept.path).0, content);
                led.contains(&(moved.root, moved.to.clone()))
            }
            Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_) => false,
        })
    }

    /// What a new entry was, that came with a work tree that moved and is as it was.
    pub(super) fn came_along(&self, found: &Found, seen: &Seen) -> Option<&Kept> {
        self.moved.iter().find_map(|moved| {
            if moved.root != found.root || !is_within(&found.path, &moved.to) {
                return None;
            }
            let before = [&moved.from, &found.path[moved.to.len()..]].concat();
            let known = self.kept(found.root, &before).filter(|kept| kept.role == found.role);
            known.filter(|kept| matches!(seen, Seen::Present(now) if kept.state == *now))
        })
    }

    /// Whether a file of the kept role that leads somewhere leads there still, or back to where its work tree is now.
    pub(super) fn leads_rightly(&self, kept: &Kept, before: &[u8], now: &[u8]) -> bool {
        let top = split(&kept.path).0;
        match kept.role {
            Role::GitLink => {
                let led = named_git_directories(self.roots, kept.root, top, before);
                !led.is_empty() && led == named_git_directories(self.roots, kept.root, top, now)
            }
            Role::GitBack => self.has_followed(kept, before, now),
            Role::GitDirectory
            | Role::GitConfig
            | Role::GitCommon
            | Role::GitHook
            | Role::Way
            | Role::Name
            | Role::TooDeep
            | Role::Judged
            | Role::Unlisted => false,
        }
    }

    /// Whether the way back from a git directory leads to where its work tree was moved.
    fn has_followed(&self, kept: &Kept, before: &[u8], now: &[u8]) -> bool {
        let git = split(&kept.path).0;
        let places = |text: &[u8]| {
            let path = is_way_back(text).then(|| text.strip_suffix(b"\n")).flatten();
            path.map(|path| leads(self.roots, kept.root, git, path))
                .unwrap_or_default()
        };
        let was = places(before);
        let is_gone = |(root, path): &(u16, Vec<u8>)| {
            matches!(at::stat(&self.root(*root).fd, path), Err(Errno::ENOENT)) && !is_blocked(self.root(*root), path)
        };
        let leads_here = |(root, link): &(u16, Vec<u8>)| {
            let Seen::Present(State::File { content, .. }) = glance(&self.root(*root).fd, link, LONGEST) else {
                return false;
            };
            let led = named_git_directories(self.roots, *root, split(link).0, &content);
            led.contains(&(kept.root, git.to_vec()))
        };
        !was.is_empty() && was.iter().all(is_gone) && places(now).iter().any(leads_here)
    }

    /// Where a `.git` file is gone with all that lay beside it.
    pub(super) fn lost(&self) -> HashSet<(u16, Vec<u8>)> {
        let lost = self.record.entries.iter().filter(|kept| self.may_lose(kept));
        lost.map(|kept| (kept.root, split(&kept.path).0.to_vec())).collect()
    }

    /// Whether a setting of a git directory's config, there since the command, says where its work tree is; or may be gone.
    /// So it is of a submodule alone, where git itself sets and unsets it.
    pub(super) fn may_work(&self, root: u16, config: &[u8], place: Option<&[u8]>) -> bool {
        let git = split(config).0;
        // Below `.git/modules`: an ordinary directory may have the second name.
        let mut names = git.split(|&b| b == b'/');
        let is_of_submodule = names.any(is_dot_git) && names.any(|name| name == b"modules");
        is_of_submodule && place.is_none_or(|place| is_own_worktree(self.roots, root, git, place))
    }
}

/// Whether there is a directory with nothing in it.
fn is_empty(root: &Root, path: &[u8]) -> bool {
    let Ok(directory) = at::open_directory(&root.fd, path) else {
        return false;
    };
    let mut buffer = vec![0; 4096];
    sys::getdents(&directory, &mut buffer).is_ok_and(|read| sys::names(&buffer[..read]).next().is_none())
}
