//! Finding everything that is protected: by its name, and by what leads to it.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::at::Identity;
use super::error::ProtectError;
use super::known::Known;
use super::names::Names;
use super::patterns::Patterns;
use super::repository::Person;
use super::roots::{Root, open_roots};
use super::sight::Sight;
use super::targets::{self, Targets};
use super::walk::walk;
use super::{known, links};

/// How often what was found leads to more. What leads on after that is somebody's who wants it to.
const ROUNDS: usize = 16;

/// What was found.
pub(super) struct Search {
    pub(super) seen: Look,
    /// The files protected by path: those that were asked for, and those that something leads to.
    pub(super) extra: Vec<PathBuf>,
    /// Those of them that programs of the host run or obey while a command is running.
    pub(super) at_once: Vec<PathBuf>,
    /// Directories of hooks that are relative to a work tree.
    pub(super) hooks: BTreeSet<PathBuf>,
}

/// Looks for what is protected below the roots, and what that leads to, until nothing new is found.
pub(super) fn search(
    paths: &[PathBuf],
    extra: &[PathBuf],
    names: &Names,
    person: &Person,
    store: Option<&Path>,
    known: Option<&Known>,
) -> Result<Search, ProtectError> {
    let (mut extra, mut at_once) = (extra.to_vec(), extra.to_vec());
    let mut seen = look(paths, &extra, names, store, known)?;
    let mut passed = BTreeSet::new();
    let mut last = None;
    for _ in 0..ROUNDS {
        let mut targets = targets::of(&seen.roots, &seen.patterns, &seen.sight, person)?;
        passed.append(&mut targets.ways.clone());
        links::follow(&seen.roots, &seen.patterns, &seen.sight, &mut passed, &mut targets)?;
        let Targets {
            mut run_at_once,
            others,
            mut ways,
            hooks,
        } = targets;
        run_at_once.append(&mut ways);
        let mut more: Vec<PathBuf> = run_at_once.union(&others).cloned().collect();
        more.retain(|path| !extra.contains(path));
        last = more.first().cloned();
        if last.is_none() {
            return Ok(Search {
                seen,
                extra,
                at_once,
                hooks,
            });
        }
        if let Some(store) = store
            && seen.sight.is_worth_keeping()
        {
            // It would only have spared the next start some reading.
            let _unsaved = known::save(store, &who(&seen.roots), &extra, names, &seen.sight);
        }
        extra.append(&mut more);
        at_once.extend(run_at_once);
        seen = look(paths, &extra, names, store, None)?;
    }
    Err(ProtectError::Unclear(last.unwrap_or_default(), "leads on and on"))
}

/// The roots by path and identity.
fn who(roots: &[Root]) -> Vec<(Vec<u8>, Identity)> {
    roots
        .iter()
        .map(|root| (root.path.as_os_str().as_bytes().to_vec(), root.identity))
        .collect()
}

/// The roots, open, and what a walk saw in them.
pub(super) struct Look {
    pub(super) roots: Vec<Root>,
    pub(super) patterns: Patterns,
    pub(super) sight: Sight,
}

/// Walks the roots. Without a store every directory is read.
fn look(
    paths: &[PathBuf],
    extra: &[PathBuf],
    names: &Names,
    store: Option<&Path>,
    known: Option<&Known>,
) -> Result<Look, ProtectError> {
    let mut patterns = Patterns::new(names);
    let roots = open_roots(paths, extra, &mut patterns)?;
    let who = who(&roots);
    let known = known.filter(|known| known.roots == who && known.extra == extra && known.names == *names);
    let kept = match (known, store) {
        (None, Some(store)) => known::load(store, &who, extra, names),
        (Some(_), _) | (None, None) => None,
    };
    let earlier = known.map(|known| &known.sight).or(kept.as_ref());
    let sight = walk(&roots, &patterns, earlier)?;
    Ok(Look { roots, patterns, sight })
}
