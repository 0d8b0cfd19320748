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
use super::repository::{self, MAX_CONFIG, is_out_of_reach};
use super::roots::{Root, inside};
use super::sight::Sight;
use super::state::{Seen, State, glance};

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
    match way.left.iter().find(|left| inside(roots, left).is_some()) {
        Some(left) => Err(ProtectError::Detour {
            written: written.to_owned(),
            left: left.clone(),
        }),
        None => Ok(()),
    }
}

/// The links on the way that a `.git` or a `commondir` leads. Git reads a file behind a link as if it lay in the place of the link.
pub(super) fn way_from(roots: &[Root], entry: &Path) -> Result<Vec<PathBuf>, ProtectError> {
    let (Some(base), Some(name)) = (entry.parent(), entry.file_name()) else {
        return Ok(Vec::new());
    };
    let way = trail(base, Path::new(name));
    let text = way.end.as_deref().map_or(Ok(None), |end| text(roots, end))?;
    let mut ways = vec![way];
    ways.extend(text.map(|text| trail(base, written(&text))));
    let mut found = Vec::new();
    for way in ways {
        is_firm(roots, entry, &way)?;
        found.extend(way.links);
    }
    Ok(found)
}

/// The text of a file, if it is one that git can read.
fn text(roots: &[Root], file: &Path) -> Result<Option<Vec<u8>>, ProtectError> {
    let Some((root, below)) = inside(roots, file) else {
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            return Ok(None);
        }
        return match repository::read(file) {
            Err(error) if is_out_of_reach(&error) => Ok(None),
            read => read,
        };
    };
    match glance(&root.fd, below.as_os_str().as_bytes(), MAX_CONFIG) {
        Seen::Present(State::File { content, .. }) => Ok(Some(content)),
        Seen::Present(State::Symlink { .. } | State::Directory { .. } | State::Special { .. } | State::Left)
        | Seen::Absent
        | Seen::Long { .. }
        | Seen::Unreadable(_) => Ok(None),
    }
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
        found.extend(way_from(roots, &entry)?.into_iter().filter(|link| *link != entry));
    }
    Ok(found)
}
