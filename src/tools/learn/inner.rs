//! What was accepted and has become part of something larger that was accepted after it.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::amend::Change;
use crate::policy::{AbsPath, Demand, Policy, Right, Root, Scope};

/// These changes, of which `after` is the policy that has them all, without the new roots that lie in another that gives as
/// much, and without the names in new roots: a clause that changes nothing is one more to be read, and to be forgotten when
/// the other is taken out.
pub fn outermost<T>(mut all: Vec<T>, after: &Policy, change: impl Fn(&T) -> &Change) -> Vec<T> {
    let new: BTreeSet<String> = all.iter().filter_map(|one| new_root(change(one))).collect();
    let mut roots: Vec<&Root> = after.roots.iter().collect();
    // The root that is nearest around a place speaks of it, so outer ones are settled first.
    roots.sort_by_key(|root| root.path.ancestors().count());
    let mut speakers: BTreeMap<&AbsPath, &Root> = BTreeMap::new();
    let mut dropped = BTreeSet::new();
    for root in roots {
        let mut around = root.path.ancestors().skip(1);
        let speaker = around.find_map(|above| speakers.get(&above));
        if new.contains(&root.name) && speaker.is_some_and(|outer| gives_as_much(outer, root)) {
            dropped.insert(root.name.as_str());
        } else {
            speakers.insert(&root.path, root);
        }
    }
    let lists = |path: &AbsPath| {
        let mut kept = speakers.values().filter(|root| new.contains(&root.name));
        kept.any(|root| root.scope == Scope::Tree && path.is_within(&root.path))
    };
    all.retain(|one| match change(one) {
        Change::Root(root) => !dropped.contains(root.name.as_str()),
        Change::Widen(root) => !dropped.contains(root.name.as_str()),
        Change::List(path) => !lists(path),
        Change::Host(_) | Change::Sockets(_) | Change::Undo => true,
    });
    all
}

fn new_root(change: &Change) -> Option<String> {
    match change {
        Change::Root(root) => Some(root.name.clone()),
        Change::Widen(_) | Change::List(_) | Change::Host(_) | Change::Sockets(_) | Change::Undo => None,
    }
}

/// Whether a root inside another is not missed.
fn gives_as_much(outer: &Root, inner: &Root) -> bool {
    let is_plain = outer.suffixes.is_none() && outer.max_file_bytes.is_none() && outer.read_approval == Demand::None;
    let asks = |root: &Root| root.write_approval != Demand::None;
    let is_written_alike = !inner.rights.has(Right::Write) || asks(inner) == asks(outer);
    outer.scope == Scope::Tree && is_plain && outer.rights.contains(inner.rights) && is_written_alike
}
