//! The protected entries that are there, for mounts to cover.

use std::path::PathBuf;

use super::super::entry::nofollow::{is_within, split};
use super::super::entry::state::State;
use super::super::error::ProtectError;
use super::super::naming::class::Role;
use super::super::naming::names::Names;
use super::super::naming::vcs::is_judged_text;
use super::super::record::{SavedEntry, save_entries};
use super::super::referenced::repository::Person;
use super::super::roots::{Root, absolute};
use super::super::tree::search::{Scan, SearchResult, search};
use crate::backend::namespaces::MOST_PROTECTED;

/// `PATH_MAX`, which counts the NUL byte behind a path.
const LONGEST: usize = 4096;

/// The protected entries that a start would find now, in the same way as a start does, and nothing is
/// written down.
pub fn present(
    roots: &[PathBuf],
    extra: &[PathBuf],
    names: &Names,
    person: &Person,
) -> Result<Vec<PathBuf>, ProtectError> {
    let SearchResult { scanned, extra, .. } = search(roots, extra, names, person, None, None)?;
    let Scan { roots, inventory, .. } = scanned;
    Ok(topmost(
        &roots,
        &save_entries(&roots, &inventory)?,
        &extra,
        MOST_PROTECTED,
    ))
}

/// What programs of the host run or obey while a command is still running: the settings and hooks of git, but for git
/// directories that a command made, and the files that were named one by one. The topmost of nested ones, `most` at most, by
/// their roots.
pub(crate) fn live(
    roots: &[Root],
    kept: &[SavedEntry],
    extra: &[PathBuf],
    is_made_by_command: impl Fn(u16, &[u8]) -> bool,
    most: usize,
) -> Vec<(u16, Vec<u8>)> {
    let is_live = |kept: &&SavedEntry| match (kept.role, &kept.state) {
        (Role::GitConfig | Role::GitHook, State::File { .. } | State::Directory { .. }) => {
            let git = kept.path.as_slice();
            // A hook lies in a directory of its own there.
            !is_made_by_command(kept.root, split(git).0) && !is_made_by_command(kept.root, split(split(git).0).0)
        }
        (Role::Name, State::File { .. } | State::Directory { .. }) => {
            extra.contains(&absolute(&roots[usize::from(kept.root)], &kept.path))
        }
        (_, State::Symlink { .. } | State::Special { .. } | State::Ignored)
        | (
            Role::GitDirectory
            | Role::GitLink
            | Role::GitCommon
            | Role::GitBacklink
            | Role::LinkOnPath
            | Role::TooDeep
            | Role::JudgedText
            | Role::Unlisted,
            State::File { .. } | State::Directory { .. },
        ) => false,
    };
    let mut all: Vec<(u16, Vec<u8>)> = Vec::new();
    let mut found: Vec<&SavedEntry> = kept.iter().filter(is_live).collect();
    // By components: what lies in `hooks` stands behind it, and `hooks-team` behind that.
    found.sort_by_cached_key(|kept| {
        (
            kept.root,
            kept.path
                .split(|&byte| byte == b'/')
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>(),
        )
    });
    for kept in found {
        let is_below = all
            .last()
            .is_some_and(|(root, above)| *root == kept.root && is_within(&kept.path, above));
        if !is_below && absolute(&roots[usize::from(kept.root)], &kept.path).as_os_str().len() < LONGEST {
            all.push((kept.root, kept.path.clone()));
        }
    }
    all.truncate(most);
    all
}

/// What can be covered by a mount of its own, the topmost of nested ones, `most` at most; the files that
/// were named one by one, `extra`, come first. What is a link is left to be undone.
pub(crate) fn topmost(roots: &[Root], kept: &[SavedEntry], extra: &[PathBuf], most: usize) -> Vec<PathBuf> {
    let coverable = |kept: &&SavedEntry| match (kept.role, &kept.state) {
        // Git itself writes in it; what it must not write has roles of its own.
        (Role::GitDirectory | Role::LinkOnPath | Role::TooDeep, _)
        | (_, State::Symlink { .. } | State::Special { .. } | State::Ignored) => false,
        (Role::JudgedText, _) => is_judged_text(split(&kept.path).1),
        (_, State::File { .. } | State::Directory { .. }) => true,
    };
    let paths = kept.iter().filter(coverable);
    let mut paths: Vec<PathBuf> = paths
        .map(|kept| absolute(&roots[usize::from(kept.root)], &kept.path))
        // No mount can be named by a longer one.
        .filter(|path| path.as_os_str().len() < LONGEST)
        .collect();
    paths.sort();
    paths.dedup();
    let mut topmost: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !topmost.last().is_some_and(|above| path.starts_with(above)) {
            topmost.push(path);
        }
    }
    topmost.sort_by_cached_key(|path| !extra.iter().any(|file| file.starts_with(path)));
    topmost.truncate(most);
    topmost
}
