//! The links that lead git to settings and hooks, and the scripts that hooks are links to.
//!
//! No mount can stand on a link, and one on a script would keep git from replacing it at a checkout. So they are watched: what
//! comes in their place while a command runs is taken away.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::entry::nofollow::{self, is_within};
use super::super::entry::state::{Found, State, observe};
use super::super::guard::Guard;
use super::super::naming::class::Role;
use super::super::referenced::resolve::{Resolution, resolve_from};
use super::super::roots::{Root, RootPath, absolute, root_number};
use super::covers::Covers;

/// Longest script that git is expected to check out.
const LONGEST: u64 = 1 << 20;

/// When an inode was changed last.
pub(crate) type ChangeTime = (i64, i64);

/// The kind of a watched path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    /// A link.
    Link,
    /// The target of the last link: a file, or nothing yet.
    Script,
}

/// A path that is watched.
#[derive(Debug)]
pub(crate) struct WatchedPath {
    pub(crate) location: RootPath,
    pub(crate) kind: PathKind,
    /// What was there before the command.
    before: Option<State>,
    change_time: Option<ChangeTime>,
}

/// The watched paths of a guard, without those that are covered.
pub(crate) fn watched_paths(guard: &Guard, covers: Option<&Covers>) -> Vec<WatchedPath> {
    let (roots, record) = (guard.roots(), guard.record());
    let covered: Vec<RootPath> = covers.into_iter().flat_map(Covers::paths).collect();
    let is_covered = |(root, path): &RootPath| covered.iter().any(|(at, above)| at == root && is_within(path, above));
    let live = &guard.live;
    let links = record
        .entries
        .iter()
        .filter(|kept| matches!(kept.state, State::Symlink { .. }));
    let links = links.filter_map(|kept| {
        let path = absolute(&roots[usize::from(kept.root)], &kept.path);
        let is_live = matches!(kept.role, Role::GitConfig | Role::GitHook)
            || live.iter().any(|location| path.starts_with(location));
        is_live.then_some(path)
    });
    let candidates: BTreeSet<PathBuf> = links.chain(live.iter().cloned()).collect();
    let mut found: BTreeSet<(RootPath, bool)> = BTreeSet::new();
    for path in candidates {
        let Resolution { links, end, .. } = resolve_from(Path::new("/"), &path);
        if links.is_empty() {
            continue;
        }
        let places = links.iter().filter_map(|link| location(roots, link));
        found.extend(places.map(|location| (location, true)));
        // A directory is covered, and what is in it has links of its own.
        let end = end.filter(|end| !end.is_dir()).and_then(|end| location(roots, &end));
        found.extend(end.map(|location| (location, false)));
    }
    let state = |(root, path): &RootPath| {
        let mut own = record
            .entries
            .iter()
            .filter(|kept| kept.root == *root && kept.path == *path);
        own.next().map(|kept| kept.state.clone())
    };
    let found = found.into_iter().filter(|(location, _)| !is_covered(location));
    let all = found.map(|(location, is_link)| WatchedPath {
        kind: if is_link { PathKind::Link } else { PathKind::Script },
        before: state(&location),
        change_time: change_time(&roots[usize::from(location.0)], &location.1),
        location,
    });
    all.collect()
}

fn location(roots: &[Root], path: &Path) -> Option<RootPath> {
    let (root, below) = root_number(roots, path)?;
    Some((root, below.as_os_str().as_bytes().to_vec()))
}

impl WatchedPath {
    /// Whether it has changed since the last call.
    pub(crate) fn has_changed(&mut self, root_dir: &Root) -> bool {
        let before = std::mem::replace(&mut self.change_time, change_time(root_dir, &self.location.1));
        before != self.change_time
    }

    /// Whether it can be removed at once, without first killing the command.
    pub(crate) fn is_removable(&self, root_dir: &Root) -> bool {
        matches!(
            observe(&root_dir.fd, &self.location.1, LONGEST),
            Found::Present(State::File { .. } | State::Symlink { .. })
        )
    }

    /// Whether git reads or runs nothing there that is new.
    pub(crate) fn is_harmless(&self, root_dir: &Root) -> bool {
        match (&self.before, observe(&root_dir.fd, &self.location.1, LONGEST)) {
            (_, Found::Absent) => true,
            // One that is being written is looked at again.
            (_, Found::Present(State::File { content, .. })) if content.is_empty() => true,
            (
                Some(State::File { mode, content, .. }),
                Found::Present(State::File {
                    mode: new_mode,
                    content: new,
                    ..
                }),
            ) => *content == new && new_mode & 0o111 & !mode == 0,
            (Some(State::Symlink { target }), Found::Present(State::Symlink { target: new })) => *target == new,
            (
                None
                | Some(
                    State::File { .. }
                    | State::Symlink { .. }
                    | State::Directory { .. }
                    | State::Special { .. }
                    | State::Ignored,
                ),
                Found::Present(_) | Found::TooLong { .. } | Found::Unreadable(_),
            ) => false,
        }
    }
}

/// When the entry was changed last, if it is there.
pub(crate) fn change_time(root_dir: &Root, path: &[u8]) -> Option<ChangeTime> {
    let stat = nofollow::stat(&root_dir.fd, path).ok()?;
    Some((stat.st_ctime, stat.st_ctime_nsec))
}
