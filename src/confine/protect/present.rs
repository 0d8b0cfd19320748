//! The protected entries that are there, for mounts to cover.

use std::path::PathBuf;

use super::journal::Kept;
use super::place::Role;
use super::repository::Person;
use super::roots::Root;
use super::snapshot::{Look, keep, look};
use super::state::State;
use super::{ProtectError, shown, targets};
use crate::backend::namespaces::MOST_PROTECTED;

/// `PATH_MAX`, which counts the NUL byte behind a path.
const LONGEST: usize = 4096;

/// The protected entries that a start would find now, in the same way as a start does, and nothing is
/// written down.
pub fn present(roots: &[PathBuf], extra: &[PathBuf], person: &Person) -> Result<Vec<PathBuf>, ProtectError> {
    let mut seen = look(roots, extra, None, None)?;
    let targets = targets::of(&seen.roots, &seen.patterns, &seen.sight, person)?;
    let mut extra = extra.to_vec();
    if !targets.is_empty() {
        extra.extend(targets);
        seen = look(roots, &extra, None, None)?;
    }
    let Look { roots, sight, .. } = seen;
    Ok(topmost(&roots, &keep(&roots, &sight)?, &extra, MOST_PROTECTED))
}

/// What can be covered by a mount of its own, the topmost of nested ones, `most` at most; the files that
/// were named one by one, `extra`, come first. What is a link is left to be undone.
pub(super) fn topmost(roots: &[Root], kept: &[Kept], extra: &[PathBuf], most: usize) -> Vec<PathBuf> {
    let coverable = |kept: &&Kept| match (kept.role, &kept.state) {
        // Git itself writes in it; what it must not write has roles of its own.
        (Role::GitDirectory | Role::Way | Role::TooDeep, _) | (_, State::Symlink { .. } | State::Special { .. }) => {
            false
        }
        (_, State::File { .. } | State::Directory { .. }) => true,
    };
    let paths = kept.iter().filter(coverable);
    let mut paths: Vec<PathBuf> = paths
        .map(|kept| shown(&roots[usize::from(kept.root)], &kept.path))
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
