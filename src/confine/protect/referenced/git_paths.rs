//! The paths by which git finds hooks, settings and git directories.
//!
//! A link on such a way is put back like a protected name, and watched while a command runs. A way that enters a directory of a root
//! and leaves it by `..` is refused.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::entry::nofollow::join;
use super::super::entry::state::{Found, State, observe};
use super::super::error::ProtectError;
use super::super::roots::{Root, root_of};
use super::super::tree::inventory::Inventory;
use super::repository::{self, MAX_CONFIG, is_out_of_reach};
use super::resolve::{Resolution, normalize, resolve_from};

/// Whether what a `.git` names that leads to no git directory would lie in a root, where a command can make it.
pub(crate) fn leads_into(roots: &[Root], entry: &Path) -> Result<bool, ProtectError> {
    let last = resolutions(roots, entry)?.pop().and_then(|resolution| resolution.end);
    Ok(last.is_none_or(|target| root_of(roots, &target).is_some()))
}

/// A path as written and as resolved; collects every link in it.
pub(crate) fn git_paths(
    roots: &[Root],
    base: &Path,
    path: &Path,
    links: &mut BTreeSet<PathBuf>,
) -> Result<BTreeSet<PathBuf>, ProtectError> {
    let named_path = base.join(path);
    let resolution = resolve_from(base, path);
    // A path that was joined before does not show where its `..` were written.
    if base.parent().is_some() {
        refuse_detour(roots, &named_path, &resolution)?;
    }
    links.extend(resolution.links);
    Ok([normalize(&named_path)].into_iter().chain(resolution.end).collect())
}

/// Refuses a way that a command can lead elsewhere by a link in the place of a directory: to protect that would be to protect all that
/// is in it.
pub(crate) fn refuse_detour(roots: &[Root], named_path: &Path, resolution: &Resolution) -> Result<(), ProtectError> {
    match resolution.detours.iter().find(|left| root_of(roots, left).is_some()) {
        Some(left) => Err(ProtectError::Detour {
            written: named_path.to_owned(),
            left: left.clone(),
        }),
        None => Ok(()),
    }
}

/// The links that git follows from a `.git` or a `commondir`.
pub(crate) fn links_from(roots: &[Root], entry: &Path) -> Result<Vec<PathBuf>, ProtectError> {
    let mut found = Vec::new();
    for resolution in resolutions(roots, entry)? {
        refuse_detour(roots, entry, &resolution)?;
        found.extend(resolution.links);
    }
    Ok(found)
}

/// What git resolves for a `.git` or a `commondir`. Git reads a file behind a link as if it lay at the link.
pub(crate) fn resolutions(roots: &[Root], entry: &Path) -> Result<Vec<Resolution>, ProtectError> {
    let (Some(base), Some(name)) = (entry.parent(), entry.file_name()) else {
        return Ok(Vec::new());
    };
    let resolution = resolve_from(base, Path::new(name));
    let text = resolution.end.as_deref().map_or(Ok(None), |end| text(roots, end))?;
    let named = text.map(|text| resolve_from(base, named_path(&text)));
    Ok(std::iter::once(resolution).chain(named).collect())
}

/// The text of a file, if it is one that git can read.
fn text(roots: &[Root], file: &Path) -> Result<Option<Vec<u8>>, ProtectError> {
    let Some((root, below)) = root_of(roots, file) else {
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            return Ok(None);
        }
        return match repository::read(file) {
            Err(error) if is_out_of_reach(&error) => Ok(None),
            read => read,
        };
    };
    match observe(&root.fd, below.as_os_str().as_bytes(), MAX_CONFIG) {
        Found::Present(State::File { content, .. }) => Ok(Some(content)),
        Found::Present(State::Symlink { .. } | State::Directory { .. } | State::Special { .. } | State::Ignored)
        | Found::Absent
        | Found::TooLong { .. }
        | Found::Unreadable(_) => Ok(None),
    }
}

/// The path that a `.git` file or a `commondir` names.
fn named_path(text: &[u8]) -> &Path {
    let text = text.strip_prefix(b"gitdir: ").unwrap_or(text);
    Path::new(OsStr::from_bytes(repository::without_line_end(text)))
}

/// The links from each `.git` to its git directory, and from that to the one it shares.
pub(crate) fn links_to_directories(roots: &[Root], inventory: &Inventory) -> Result<BTreeSet<PathBuf>, ProtectError> {
    let mut found = BTreeSet::new();
    let named = inventory.git_links().chain(
        inventory
            .git_directories()
            .into_iter()
            .map(|(root, git)| (root, join(&git, b"commondir"))),
    );
    for (number, path) in named {
        let Some(root) = roots.get(usize::from(number)) else {
            continue;
        };
        let entry = root.path.join(OsStr::from_bytes(&path));
        found.extend(links_from(roots, &entry)?.into_iter().filter(|link| *link != entry));
    }
    Ok(found)
}
