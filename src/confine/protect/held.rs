//! The links that lead git to settings and hooks, and the scripts that hooks are links to.
//!
//! No mount can stand on a link, and one on a script would keep git from replacing it at a checkout. So they are watched: what
//! comes in their place while a command runs is taken away.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::at::{self, is_within};
use super::covers::Covers;
use super::leads::{Trail, trail};
use super::place::Role;
use super::roots::{Place, Root, number, shown};
use super::snapshot::Guard;
use super::state::{Seen, State, glance};

/// Longest script that git is expected to check out.
const LONGEST: u64 = 1 << 20;

/// When an inode was changed last.
pub(super) type Changed = (i64, i64);

/// What one of them is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leads {
    /// A link.
    Link,
    /// What the last link leads to: a file, or nothing yet.
    Script,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) place: Place,
    pub(super) leads: Leads,
    /// What was there before the command.
    was: Option<State>,
    changed: Option<Changed>,
}

/// Those of a guard, but what lies in a place that is covered.
pub(super) fn held(guard: &Guard, covers: Option<&Covers>) -> Vec<Held> {
    let (roots, record) = (guard.roots(), guard.record());
    let covered: Vec<Place> = covers.into_iter().flat_map(Covers::places).collect();
    let is_covered = |(root, path): &Place| covered.iter().any(|(at, above)| at == root && is_within(path, above));
    let at_once = guard.at_once();
    let links = record
        .entries
        .iter()
        .filter(|kept| matches!(kept.state, State::Symlink { .. }));
    let links = links.filter_map(|kept| {
        let path = shown(&roots[usize::from(kept.root)], &kept.path);
        let is_at_once =
            matches!(kept.role, Role::GitConfig | Role::GitHook) || at_once.iter().any(|place| path.starts_with(place));
        is_at_once.then_some(path)
    });
    let led: BTreeSet<PathBuf> = links.chain(at_once.iter().cloned()).collect();
    let mut found: BTreeSet<(Place, bool)> = BTreeSet::new();
    for path in led {
        let Trail { links, end, .. } = trail(Path::new("/"), &path);
        if links.is_empty() {
            continue;
        }
        let places = links.iter().filter_map(|link| place(roots, link));
        found.extend(places.map(|place| (place, true)));
        // A directory is covered, and what is in it has links of its own.
        let end = end.filter(|end| !end.is_dir()).and_then(|end| place(roots, &end));
        found.extend(end.map(|place| (place, false)));
    }
    let state = |(root, path): &Place| {
        let mut own = record
            .entries
            .iter()
            .filter(|kept| kept.root == *root && kept.path == *path);
        own.next().map(|kept| kept.state.clone())
    };
    let found = found.into_iter().filter(|(place, _)| !is_covered(place));
    let all = found.map(|(place, is_link)| Held {
        leads: if is_link { Leads::Link } else { Leads::Script },
        was: state(&place),
        changed: changed(&roots[usize::from(place.0)], &place.1),
        place,
    });
    all.collect()
}

fn place(roots: &[Root], path: &Path) -> Option<Place> {
    let (root, below) = number(roots, path)?;
    Some((root, below.as_os_str().as_bytes().to_vec()))
}

impl Held {
    /// Whether it was changed since this was asked last.
    pub(super) fn has_changed(&mut self, holder: &Root) -> bool {
        let before = std::mem::replace(&mut self.changed, changed(holder, &self.place.1));
        before != self.changed
    }

    /// Whether what came there is taken away before a command could write much more to it.
    pub(super) fn is_soon_taken(&self, holder: &Root) -> bool {
        matches!(
            glance(&holder.fd, &self.place.1, LONGEST),
            Seen::Present(State::File { .. } | State::Symlink { .. })
        )
    }

    /// Whether git is led to nothing by it that was not there.
    pub(super) fn is_harmless(&self, holder: &Root) -> bool {
        match (&self.was, glance(&holder.fd, &self.place.1, LONGEST)) {
            (_, Seen::Absent) => true,
            // One that is being written is looked at again.
            (_, Seen::Present(State::File { content, .. })) if content.is_empty() => true,
            (
                Some(State::File { mode, content, .. }),
                Seen::Present(State::File {
                    mode: new_mode,
                    content: new,
                    ..
                }),
            ) => *content == new && new_mode & 0o111 & !mode == 0,
            (Some(State::Symlink { target }), Seen::Present(State::Symlink { target: new })) => *target == new,
            (
                None
                | Some(
                    State::File { .. }
                    | State::Symlink { .. }
                    | State::Directory { .. }
                    | State::Special { .. }
                    | State::Left,
                ),
                Seen::Present(_) | Seen::Long { .. } | Seen::Unreadable(_),
            ) => false,
        }
    }
}

/// When the entry was changed last, if it is there.
pub(super) fn changed(holder: &Root, path: &[u8]) -> Option<Changed> {
    let stat = at::stat(&holder.fd, path).ok()?;
    Some((stat.st_ctime, stat.st_ctime_nsec))
}
