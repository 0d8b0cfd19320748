//! Which denies mounts hold in the `namespaces` regime, and which are left to the Landlock layer inside: the rule once
//! more, in words of its own.
//!
//! A mount holds a deny of what exists. A name that does not exist needs nothing where no name can be made; where one
//! can, and where a deny has exceptions, the layer must hold it. Mounts cannot tell executing from reading.

use std::collections::BTreeSet;

use stockade::policy::{AbsPath, Deny, Ending, Right, Rights, Scope, Target};
use stockade::profile::Profile;

use super::tree::{Kind, Tree};

/// The profile as the layer inside has to hold it.
pub(crate) fn to_landlock(profile: &Profile, tree: &Tree) -> Profile {
    let mut covered: Vec<(AbsPath, BTreeSet<Ending>)> = Vec::new();
    let mut left = Vec::new();
    let mut later = Vec::new();
    for deny in &profile.denies {
        let rights = without_sizes(deny);
        match &deny.target {
            Target::Path(path) if deny.except.is_none() && exists(tree, path) => {
                let nothing_else = !reaches(profile, path);
                if rights.has(Right::Read) || rights.has(Right::Write) || nothing_else {
                    covered.push((path.clone(), deny.ends.clone()));
                }
                if !rights.has(Right::Read) && !nothing_else {
                    left.extend(executing(deny, rights));
                }
            }
            Target::Path(_) | Target::Pattern { .. } => later.push(deny),
        }
    }
    for deny in later {
        let rights = without_sizes(deny);
        if deny.except.is_some() || may_come_to_be(profile, tree, &covered, deny) {
            left.push(deny.clone());
        } else if let Target::Pattern { .. } = &deny.target {
            let content = rights.has(Right::Read) || rights.has(Right::Write);
            let matching = tree.entries.iter().filter(|(_, kind)| *kind != Kind::Link && content);
            let matching = matching.filter_map(|(path, _)| AbsPath::new(path).ok());
            let matching = matching.filter(|path| deny.target.covers(path));
            covered.extend(matching.map(|path| (path, BTreeSet::new())));
            if !rights.has(Right::Read) {
                left.extend(executing(deny, rights));
            }
        }
    }
    Profile {
        denies: left,
        ..profile.clone()
    }
}

/// Mounts know no sizes: what may be written up to some size is not written at all.
fn without_sizes(deny: &Deny) -> Rights {
    if deny.beyond.is_some() {
        deny.rights.and(Rights::WRITE)
    } else {
        deny.rights
    }
}

fn executing(deny: &Deny, rights: Rights) -> Option<Deny> {
    rights.has(Right::Execute).then(|| Deny {
        rights: Rights::EXECUTE,
        ..deny.clone()
    })
}

fn exists(tree: &Tree, path: &AbsPath) -> bool {
    tree.kind(path.as_path()).is_some_and(|kind| kind != Kind::Link)
}

/// Whether anything is granted at the path, above it or below it that no plain deny takes.
fn reaches(profile: &Profile, path: &AbsPath) -> bool {
    let plain = |deny: &&Deny| {
        let on_the_way = matches!(&deny.target, Target::Path(at) if path.is_within(at));
        on_the_way && deny.except.is_none() && deny.beyond.is_none() && deny.covers(path)
    };
    let ends_inside = |deny: &Deny| deny.ends.iter().any(|end| end.path().is_within(path));
    profile.grants.iter().any(|grant| {
        let taken = profile.denies.iter().filter(plain);
        let left = if path.is_within(&grant.path) {
            taken.fold(grant.rights, |left, deny| left.without(deny.rights))
        } else if grant.path.is_within(path) {
            taken
                .filter(|deny| !ends_inside(deny))
                .fold(grant.rights, |left, deny| left.without(deny.rights))
        } else {
            Rights::NONE
        };
        !left.is_empty()
    })
}

/// Whether the command could make what the deny is for.
fn may_come_to_be(profile: &Profile, tree: &Tree, covered: &[(AbsPath, BTreeSet<Ending>)], deny: &Deny) -> bool {
    let root = match &deny.target {
        Target::Path(path) => {
            if tree.kind(path.as_path()) == Some(Kind::Link) {
                return profile.grants.iter().any(|grant| path.is_within(&grant.path));
            }
            path
        }
        Target::Pattern { root, .. } => root,
    };
    profile.grants.iter().any(|grant| {
        let names_are_made = grant.scope == Scope::Tree
            && grant.rights.has(Right::Write)
            && grant.max_file_bytes.is_none()
            && grant.suffixes.is_none();
        let below = matches!(deny.target, Target::Pattern { .. }) && grant.path.is_within(root);
        let inner = if root.is_within(&grant.path) { root } else { &grant.path };
        let open = |ends: &BTreeSet<Ending>| {
            ends.iter()
                .any(|end| matches!(end, Ending::Tree(at) if inner.is_within(at)))
        };
        let is_covered = covered
            .iter()
            .any(|(cover, ends)| inner.is_within(cover) && !open(ends));
        names_are_made && (root.is_within(&grant.path) || below) && !is_covered
    })
}
