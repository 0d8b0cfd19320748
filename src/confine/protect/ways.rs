//! The ways that lead git to hooks, settings and git directories.
//!
//! A link on such a way is put back like a protected name, and watched while a command runs. A way that enters a directory of a root
//! and leaves it by `..` is refused.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::at::join;
use super::error::ProtectError;
use super::leads::{Trail, plain, trail};
use super::repository::{self, MAX_CONFIG};
use super::roots::{Root, inside};
use super::sight::Sight;
use super::state::{Seen, State, glance};

/// What git runs of a directory of hooks.
pub(super) const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
];

/// A path as it is written and where it leads, and every link on the way.
pub(super) fn ways_of_git(
    roots: &[Root],
    base: &Path,
    path: &Path,
    on_the_way: &mut BTreeSet<PathBuf>,
) -> Result<BTreeSet<PathBuf>, ProtectError> {
    let written = base.join(path);
    let way = trail(base, path);
    // What was joined before says nothing of where its `..` are written.
    if base.parent().is_some() {
        is_firm(roots, &written, &way)?;
    }
    on_the_way.extend(way.links);
    Ok([plain(&written)].into_iter().chain(way.end).collect())
}

/// Refuses a way that a command can lead elsewhere by a link in the place of a directory: to protect that would be to protect all that
/// is in it.
pub(super) fn is_firm(roots: &[Root], written: &Path, way: &Trail) -> Result<(), ProtectError> {
    let why = "leads git through a directory and `..` behind it, where commands may put a link; write it without";
    match way.left.iter().find(|left| inside(roots, left).is_some()) {
        Some(_) => Err(ProtectError::Unclear(written.to_owned(), why)),
        None => Ok(()),
    }
}

/// The single scripts in a root that hooks in a directory outside of the roots are links to.
pub(super) fn scripts_of(
    roots: &[Root],
    hooks: &Path,
    on_the_way: &mut BTreeSet<PathBuf>,
) -> Result<BTreeSet<PathBuf>, ProtectError> {
    let mut scripts = BTreeSet::new();
    for name in HOOKS {
        if hooks.join(name).read_link().is_ok() {
            let way = trail(hooks, Path::new(name));
            is_firm(roots, &hooks.join(name), &way)?;
            let Trail { links, end, .. } = way;
            on_the_way.extend(links);
            scripts.extend(end.filter(|end| inside(roots, end).is_some()));
        }
    }
    Ok(scripts)
}

/// The links on the way that a `.git` or a `commondir` outside of the roots leads.
pub(super) fn way_from(roots: &[Root], entry: &Path) -> Result<Vec<PathBuf>, ProtectError> {
    let (Some(base), Some(name)) = (entry.parent(), entry.file_name()) else {
        return Ok(Vec::new());
    };
    let mut ways = vec![trail(base, Path::new(name))];
    if let Some(text) = repository::read(entry)? {
        ways.push(trail(base, written(&text)));
    }
    let mut found = Vec::new();
    for way in ways {
        is_firm(roots, entry, &way)?;
        found.extend(way.links);
    }
    Ok(found)
}

/// The path that a `.git` file or a `commondir` names.
fn written(text: &[u8]) -> &Path {
    let text = text.strip_prefix(b"gitdir:").unwrap_or(text);
    Path::new(OsStr::from_bytes(text.trim_ascii()))
}

/// The links on the way from `.git` to a git directory, and from that to the one that it shares.
pub(super) fn ways_to_directories(roots: &[Root], sight: &Sight) -> Result<BTreeSet<PathBuf>, ProtectError> {
    let mut found = BTreeSet::new();
    let named = sight.git_links().chain(
        sight
            .git_directories()
            .into_iter()
            .map(|(root, git)| (root, join(&git, b"commondir"))),
    );
    for (number, place) in named {
        let Some(root) = roots.get(usize::from(number)) else {
            continue;
        };
        let entry = root.path.join(OsStr::from_bytes(&place));
        let base = entry.parent().unwrap_or(&entry);
        let seen = glance(&root.fd, &place, MAX_CONFIG);
        let text = match &seen {
            Seen::Present(State::File { content, .. }) => written(content),
            Seen::Present(State::Symlink { .. }) => Path::new(entry.file_name().unwrap_or_default()),
            Seen::Present(State::Directory { .. } | State::Special { .. } | State::Left)
            | Seen::Absent
            | Seen::Long { .. }
            | Seen::Unreadable(_) => continue,
        };
        let way = trail(base, text);
        is_firm(roots, &entry, &way)?;
        found.extend(way.links.into_iter().filter(|link| *link != entry));
    }
    Ok(found)
}
