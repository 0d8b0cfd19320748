//! Whether a protected entry that the command created may stay.
//!
//! Only what git itself makes may: `git init`, a clone and a new worktree. Each file is judged by its own
//! content, so it does not matter whether the git directory around it is new or old, and an unknown kind
//! of entry never passes.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use super::super::entry::nofollow::{join, split};
use super::super::entry::state::{Found, State, observe};
use super::super::gitconfig::judge::{self, Verdict};
use super::super::gitconfig::scope::Scope;
use super::super::naming::class::Role;
use super::super::naming::vcs;
use super::super::referenced::resolve::normalize;
use super::super::roots::Root;
use super::super::tree::inventory::FoundEntry;
use super::super::violation::Keys;

/// Longest new file that may stay, in bytes: the next snapshot must hold them all.
pub(crate) const MAX_NEW: usize = 64 * 1024;

/// The git directories that a new entry is judged against.
pub(crate) struct KnownGits<'a> {
    pub(crate) roots: &'a [Root],
    /// Every git directory the walk found, each of which is itself compared or inspected.
    pub(crate) git_directories: HashSet<(u16, Vec<u8>)>,
}

/// The verdict on a new entry.
pub(crate) enum NewEntryVerdict {
    /// It stays.
    Stays,
    /// This part stays, without these settings.
    Filtered(State, Keys),
    /// It is removed, because of these settings where there are some.
    Removed(Keys),
}

/// Judges a new entry by what was observed.
pub(crate) fn judge_new_entry(entry: &FoundEntry, observed: &Found, known_gits: &KnownGits<'_>) -> NewEntryVerdict {
    if let (Role::GitConfig, Found::Present(state @ State::File { content, .. })) = (entry.role, observed) {
        let verdict = (content.len() <= MAX_NEW).then(|| {
            judge::judge_new(Scope::of(split(&entry.path).1), content, &|path| {
                is_own_worktree(known_gits.roots, entry.root, split(&entry.path).0, path)
            })
        });
        return match verdict {
            Some(Verdict::Harmless) => NewEntryVerdict::Stays,
            Some(Verdict::Filtered(text, named)) => match state.with_content(text).filter(|left| left.length() > 0) {
                Some(left) => NewEntryVerdict::Filtered(left, named),
                None => NewEntryVerdict::Removed(named),
            },
            Some(Verdict::Unclear) | None => NewEntryVerdict::Removed(Keys::default()),
        };
    }
    if let (Role::JudgedText, Found::Present(state @ State::File { content, .. })) = (entry.role, observed) {
        let verdict = (content.len() <= MAX_NEW).then(|| vcs::verdict(split(&entry.path).1, None, content));
        return match verdict {
            Some(Verdict::Harmless) => NewEntryVerdict::Stays,
            // A list of steps may be empty.
            Some(Verdict::Filtered(text, named)) => match state
                .with_content(text)
                .filter(|left| left.length() > 0 || !vcs::is_judged_text(split(&entry.path).1))
            {
                Some(left) => NewEntryVerdict::Filtered(left, named),
                None => NewEntryVerdict::Removed(named),
            },
            Some(Verdict::Unclear) | None => NewEntryVerdict::Removed(Keys::default()),
        };
    }
    if may_stay(entry, observed, known_gits) {
        NewEntryVerdict::Stays
    } else {
        NewEntryVerdict::Removed(Keys::default())
    }
}

/// Whether the new entry, no config, may stay as a whole.
fn may_stay(entry: &FoundEntry, observed: &Found, known_gits: &KnownGits<'_>) -> bool {
    let state = match observed {
        Found::Absent => return true,
        Found::Present(state) => state,
        Found::TooLong { .. } | Found::Unreadable(_) => return false,
    };
    let name = split(&entry.path).1;
    match (entry.role, state) {
        // What is in it is judged entry by entry.
        (Role::GitDirectory, State::Directory { .. }) => true,
        (Role::GitHook, State::Directory { .. }) => name == b"hooks" && is_in_git_directory(entry, known_gits),
        // Names that git never runs.
        (Role::GitHook, State::File { content, .. }) => name.ends_with(b".sample") && content.len() <= MAX_NEW,
        (Role::GitCommon, State::File { content, .. }) => {
            is_of_worktree(entry.root, &entry.path, &known_gits.git_directories) && content == b"../..\n"
        }
        (Role::GitBacklink, State::File { content, .. }) => {
            is_of_worktree(entry.root, &entry.path, &known_gits.git_directories) && is_gitdir_backlink(content)
        }
        (Role::GitLink, State::File { content, .. }) => names_git_directory(entry, content, known_gits),
        (Role::LinkOnPath | Role::Name | Role::TooDeep | Role::JudgedText | Role::Unlisted, _)
        | (
            Role::GitDirectory | Role::GitHook | Role::GitConfig | Role::GitCommon | Role::GitBacklink | Role::GitLink,
            State::File { .. }
            | State::Symlink { .. }
            | State::Directory { .. }
            | State::Special { .. }
            | State::Ignored,
        ) => false,
    }
}

fn is_in_git_directory(entry: &FoundEntry, known_gits: &KnownGits<'_>) -> bool {
    known_gits
        .git_directories
        .contains(&(entry.root, split(&entry.path).0.to_vec()))
}

/// Whether the entry lies in `worktrees/NAME` of a known git directory.
pub(crate) fn is_of_worktree(root: u16, path: &[u8], git_directories: &HashSet<(u16, Vec<u8>)>) -> bool {
    let (worktrees, _) = split(split(path).0);
    let (git, name) = split(worktrees);
    name == b"worktrees" && git_directories.contains(&(root, git.to_vec()))
}

/// Whether the path, in the config of a submodule's git directory, leads to the directory whose `.git` file leads back.
pub(crate) fn is_own_worktree(roots: &[Root], root: u16, git: &[u8], path: &[u8]) -> bool {
    let (Some(root), Some(location)) = (roots.get(usize::from(root)), resolve_relative(git, path)) else {
        return false;
    };
    let Found::Present(State::File { content, .. }) = observe(&root.fd, &join(&location, b".git"), 1 << 12) else {
        return false;
    };
    let back = content
        .strip_prefix(b"gitdir: ")
        .and_then(|rest| rest.strip_suffix(b"\n"))
        .and_then(|back| resolve_relative(&location, back));
    back.as_deref() == Some(git)
}

/// Resolves a relative path in the root, if it has `..` at its beginning only.
pub(crate) fn resolve_relative(from: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    let (mut at, mut rest) = (from, path);
    while let Some(below) = rest.strip_prefix(b"../") {
        if at.is_empty() {
            return None;
        }
        (at, rest) = (split(at).0, below);
    }
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    rest.split(|&b| b == b'/').all(is_name).then(|| join(at, rest))
}

/// Whether the text is one line with the path of a work tree's `.git` file.
pub(crate) fn is_gitdir_backlink(content: &[u8]) -> bool {
    content
        .strip_suffix(b"/.git\n")
        .is_some_and(|path| !path.iter().any(u8::is_ascii_control))
}

/// Whether a `.git` file names a git directory that the walk knows.
pub(crate) fn names_git_directory(entry: &FoundEntry, content: &[u8], known_gits: &KnownGits<'_>) -> bool {
    let named = named_git_directories(known_gits.roots, entry.root, split(&entry.path).0, content);
    named
        .iter()
        .any(|location| known_gits.git_directories.contains(location))
}

/// The paths in roots that a `.git` file in the directory names.
pub(crate) fn named_git_directories(roots: &[Root], root: u16, top: &[u8], content: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let target = content
        .strip_prefix(b"gitdir: ")
        .and_then(|rest| rest.strip_suffix(b"\n"));
    target
        .map(|target| resolve_in_roots(roots, root, top, target))
        .unwrap_or_default()
}

/// Resolves a path from a directory to paths in roots.
///
/// `..` may be taken by the text only where every directory it leaves was walked as a real one: at the
/// beginning. After a name of the text's own choosing, which may be a symlink, it is refused.
pub(crate) fn resolve_in_roots(roots: &[Root], root: u16, from: &[u8], target: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let target = Path::new(OsStr::from_bytes(target));
    let mut after_name = target
        .components()
        .skip_while(|c| matches!(c, Component::ParentDir | Component::CurDir));
    if after_name.any(|c| matches!(c, Component::ParentDir)) {
        return Vec::new();
    }
    let Some(root) = roots.get(usize::from(root)) else {
        return Vec::new();
    };
    let from = root.path.join(OsStr::from_bytes(from));
    let path = normalize(&from.join(target));
    let below = |(root, number): (&Root, u16)| {
        let below = path.strip_prefix(&root.path).ok()?;
        Some((number, below.as_os_str().as_bytes().to_vec()))
    };
    roots.iter().zip(0_u16..).filter_map(below).collect()
}
