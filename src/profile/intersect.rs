//! The greatest profile below two.
//!
//! Reach is the largest of what the grants give, cut by the smallest of what the denies leave.
//! Minimum distributes over maximum, so the meet of two sets of grants is the set of the meets of
//! all pairs; two grants meet only where one path lies within the other, which an index finds.
//! Denies are simply united.

use super::index::Index;
use super::profile::Profile;
use crate::policy::{Deny, Grant, Origin, Rights, Scope, SuffixSet};

/// What both profiles permit, in canonical form.
///
/// A path that led to two different inodes when the two were resolved is denied altogether.
#[must_use]
pub fn intersect(a: &Profile, b: &Profile) -> Profile {
    let in_a: Index<'_, &Grant> = a.grants.iter().map(|grant| (&grant.path, grant)).collect();
    let in_b: Index<'_, &Grant> = b.grants.iter().map(|grant| (&grant.path, grant)).collect();
    let mut grants = Vec::new();
    for deep in &a.grants {
        grants.extend(in_b.above(&deep.path).filter_map(|high| meet(high, deep)));
    }
    for deep in &b.grants {
        let above = in_a.above(&deep.path).filter(|high| high.path != deep.path);
        grants.extend(above.filter_map(|high| meet(high, deep)));
    }

    let mut denies: Vec<Deny> = a.denies.iter().chain(&b.denies).cloned().collect();
    let mut identities = a.identities.clone();
    for (path, identity) in &b.identities {
        let known = identities.entry(path.clone()).or_insert(*identity);
        if known != identity {
            let origin = Origin::Builtin("the path led to two different files");
            denies.push(Deny::tree(path.clone(), Rights::ALL, origin));
        }
    }

    Profile {
        grants,
        denies,
        identities,
        network: a.network.and(&b.network),
        unix_sockets: a.unix_sockets.min(b.unix_sockets),
        limits: a.limits.and(&b.limits),
        environment: a.environment.and(&b.environment),
    }
    .canonical()
}

/// What two grants both give; `deep.path` lies within `high.path`.
fn meet(high: &Grant, deep: &Grant) -> Option<Grant> {
    let scope = match (high.scope, deep.scope) {
        (Scope::File, Scope::File | Scope::Tree) if high.path == deep.path => Scope::File,
        // One file holds nothing below it, and is never listed.
        (Scope::File, Scope::File | Scope::Tree | Scope::Names) | (Scope::Names, Scope::File) => return None,
        (Scope::Tree, scope) => scope,
        (Scope::Names, Scope::Tree | Scope::Names) => Scope::Names,
    };
    let rights = high.rights.and(deep.rights);
    if rights.is_empty() {
        return None;
    }
    Some(Grant {
        path: deep.path.clone(),
        rights,
        scope,
        suffixes: both(high.suffixes.as_ref(), deep.suffixes.as_ref()),
        max_file_bytes: high.max_file_bytes.into_iter().chain(deep.max_file_bytes).min(),
        origin: if high.path == deep.path {
            high.origin.clone().min(deep.origin.clone())
        } else {
            deep.origin.clone()
        },
    })
}

fn both(a: Option<&SuffixSet>, b: Option<&SuffixSet>) -> Option<SuffixSet> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.and(b)),
        (a, b) => a.or(b).cloned(),
    }
}
