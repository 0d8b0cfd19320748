//! Finding everything that is protected: by its name, and by what leads to it.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::entry::nofollow::Identity;
use super::super::error::ProtectError;
use super::super::naming::names::Names;
use super::super::naming::patterns::Patterns;
use super::super::referenced::links;
use super::super::referenced::repository::Person;
use super::super::referenced::targets::{self, Targets};
use super::super::roots::{Root, open_roots};
use super::super::storage::inventory_cache;
use super::super::storage::inventory_cache::CachedInventory;
use super::inventory::Inventory;
use super::walk::walk;

/// Rounds of following references. A longer chain is an attack.
const ROUNDS: usize = 16;

/// The result of a search.
pub(crate) struct SearchResult {
    pub(crate) scanned: Scan,
    /// The files protected by path: those of the config, and those that something refers to.
    pub(crate) extra: Vec<PathBuf>,
    /// Those of them that host programs run or obey while a command runs.
    pub(crate) live: Vec<PathBuf>,
    /// Directories of hooks that are relative to a work tree.
    pub(crate) hooks: BTreeSet<PathBuf>,
}

/// Finds what is protected below the roots and what that refers to, until nothing new is found.
pub(crate) fn search(
    paths: &[PathBuf],
    extra: &[PathBuf],
    names: &Names,
    person: &Person,
    store: Option<&Path>,
    known: Option<&CachedInventory>,
) -> Result<SearchResult, ProtectError> {
    let (mut extra, mut all_live) = (extra.to_vec(), extra.to_vec());
    let mut scanned = scan(paths, &extra, names, store, known)?;
    let mut followed = BTreeSet::new();
    let mut last = None;
    for _ in 0..ROUNDS {
        let mut targets = targets::of(&scanned.roots, &scanned.patterns, &scanned.inventory, person)?;
        followed.append(&mut targets.links.clone());
        links::follow(
            &scanned.roots,
            &scanned.patterns,
            &scanned.inventory,
            &mut followed,
            &mut targets,
        )?;
        let Targets {
            mut live,
            others,
            mut links,
            hooks,
        } = targets;
        live.append(&mut links);
        let mut more: Vec<PathBuf> = live.union(&others).cloned().collect();
        more.retain(|path| !extra.contains(path));
        last = more.first().cloned();
        if last.is_none() {
            return Ok(SearchResult {
                scanned,
                extra,
                live: all_live,
                hooks,
            });
        }
        if let Some(store) = store
            && scanned.inventory.is_worth_saving()
        {
            // It would only have spared the next start some reading.
            let _unsaved = inventory_cache::save(store, &identities(&scanned.roots), &extra, names, &scanned.inventory);
        }
        extra.append(&mut more);
        all_live.extend(live);
        scanned = scan(paths, &extra, names, store, None)?;
    }
    Err(ProtectError::Unclear(last.unwrap_or_default(), "leads on and on"))
}

/// The roots by path and identity.
fn identities(roots: &[Root]) -> Vec<(Vec<u8>, Identity)> {
    roots
        .iter()
        .map(|root| (root.path.as_os_str().as_bytes().to_vec(), root.identity))
        .collect()
}

/// The roots, open, and what a walk saw in them.
pub(crate) struct Scan {
    pub(crate) roots: Vec<Root>,
    pub(crate) patterns: Patterns,
    pub(crate) inventory: Inventory,
}

/// Walks the roots. Without a store every directory is read.
fn scan(
    paths: &[PathBuf],
    extra: &[PathBuf],
    names: &Names,
    store: Option<&Path>,
    known: Option<&CachedInventory>,
) -> Result<Scan, ProtectError> {
    let mut patterns = Patterns::new(names);
    let roots = open_roots(paths, extra, &mut patterns)?;
    let identities = identities(&roots);
    let known = known.filter(|known| known.roots == identities && known.extra == extra && known.names == *names);
    let kept = match (known, store) {
        (None, Some(store)) => inventory_cache::load(store, &identities, extra, names),
        (Some(_), _) | (None, None) => None,
    };
    let earlier = known.map(|known| &known.inventory).or(kept.as_ref());
    let inventory = walk(&roots, &patterns, earlier)?;
    Ok(Scan {
        roots,
        patterns,
        inventory,
    })
}
