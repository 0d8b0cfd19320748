//! Whether a protected entry that the command created may stay.
//!
//! Only what git itself makes may: `git init`, a clone and a new worktree. Each file is judged by its own
//! content, so it does not matter whether the git directory around it is new or old, and an unknown kind
//! of entry never passes.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::at::split;
use super::gitconfig;
use super::place::Role;
use super::roots::Root;
use super::sight::Found;
use super::state::{Seen, State};

/// Longest new file that may stay, in bytes: the next snapshot must hold them all.
pub(super) const MAX_NEW: usize = 64 * 1024;

/// What there is to compare a new entry with.
pub(super) struct Surroundings<'a> {
    pub(super) roots: &'a [Root],
    /// Every git directory the walk found, each of which is itself compared or inspected.
    pub(super) git_directories: HashSet<(u16, Vec<u8>)>,
}

/// Whether the new entry, being what was seen, may stay.
pub(super) fn may_stay(entry: &Found, seen: &Seen, around: &Surroundings<'_>) -> bool {
    let state = match seen {
        Seen::Absent => return true,
        Seen::Present(state) => state,
        Seen::Long { .. } | Seen::Unreadable(_) => return false,
    };
    let name = split(&entry.path).1;
    match (entry.role, state) {
        // What is in it is judged entry by entry.
        (Role::GitDirectory, State::Directory { .. }) => true,
        (Role::GitHook, State::Directory { .. }) => name == b"hooks" && is_in_git_directory(entry, around),
        // Names that git never runs.
        (Role::GitHook, State::File { content, .. }) => name.ends_with(b".sample") && content.len() <= MAX_NEW,
        (Role::GitConfig, State::File { content, .. }) => content.len() <= MAX_NEW && gitconfig::is_harmless(content),
        (Role::GitCommon, State::File { content, .. }) => is_of_worktree(entry, around) && content == b"../..\n",
        (Role::GitBack, State::File { content, .. }) => is_of_worktree(entry, around) && is_way_back(content),
        (Role::GitLink, State::File { content, .. }) => leads_to_git_directory(entry, content, around),
        (Role::Way | Role::Name | Role::TooDeep, _)
        | (
            Role::GitDirectory | Role::GitHook | Role::GitConfig | Role::GitCommon | Role::GitBack | Role::GitLink,
            State::File { .. } | State::Symlink { .. } | State::Directory { .. } | State::Special { .. },
        ) => false,
    }
}

/// The setting for which a new config may not stay, where one is the reason.
pub(super) fn offence(entry: &Found, seen: &Seen) -> Option<Vec<u8>> {
    match (entry.role, seen) {
        (Role::GitConfig, Seen::Present(State::File { content, .. })) if content.len() <= MAX_NEW => {
            gitconfig::offence(content)
        }
        (
            Role::GitDirectory
            | Role::GitHook
            | Role::GitConfig
            | Role::GitCommon
            | Role::GitBack
            | Role::GitLink
            | Role::Way
            | Role::Name
            | Role::TooDeep,
            Seen::Absent | Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_),
        ) => None,
    }
}

fn is_in_git_directory(entry: &Found, around: &Surroundings<'_>) -> bool {
    around
        .git_directories
        .contains(&(entry.root, split(&entry.path).0.to_vec()))
}

/// Whether the entry lies in `worktrees/NAME` of a known git directory.
fn is_of_worktree(entry: &Found, around: &Surroundings<'_>) -> bool {
    let (worktrees, _) = split(split(&entry.path).0);
    let (git, name) = split(worktrees);
    name == b"worktrees" && around.git_directories.contains(&(entry.root, git.to_vec()))
}

/// Whether the text is the one line that says where a worktree's `.git` file is.
fn is_way_back(content: &[u8]) -> bool {
    content
        .strip_suffix(b"/.git\n")
        .is_some_and(|path| !path.iter().any(u8::is_ascii_control))
}

/// Whether a `.git` file names a git directory that the walk knows.
///
/// `..` may be taken by the text only where every directory it leaves was walked as a real one: at the
/// beginning. After a name of the text's own choosing, which may be a symlink, it is refused.
fn leads_to_git_directory(entry: &Found, content: &[u8], around: &Surroundings<'_>) -> bool {
    let Some(target) = content
        .strip_prefix(b"gitdir: ")
        .and_then(|rest| rest.strip_suffix(b"\n"))
    else {
        return false;
    };
    let target = Path::new(OsStr::from_bytes(target));
    let mut after_name = target
        .components()
        .skip_while(|c| matches!(c, Component::ParentDir | Component::CurDir));
    if after_name.any(|c| matches!(c, Component::ParentDir)) {
        return false;
    }
    let Some(root) = around.roots.get(usize::from(entry.root)) else {
        return false;
    };
    let from = root.path.join(OsStr::from_bytes(split(&entry.path).0));
    let mut path = PathBuf::new();
    for component in from.join(target).components() {
        match component {
            Component::ParentDir => {
                path.pop();
            }
            Component::RootDir | Component::Normal(_) | Component::CurDir | Component::Prefix(_) => {
                path.push(component);
            }
        }
    }
    around.roots.iter().zip(0_u16..).any(|(root, number)| {
        let below = path.strip_prefix(&root.path).map(Path::as_os_str);
        below.is_ok_and(|below| around.git_directories.contains(&(number, below.as_bytes().to_vec())))
    })
}
