//! The canonical form of a profile: sorted, without redundant clauses.
//!
//! Two profiles made of the same clauses by different routes end up equal, up to which of two equal
//! clauses gets to be named as the origin.

use super::index::Index;
use super::profile::Profile;
use crate::policy::{AbsPath, Deny, Ending, Grant, Rights, Scope, Suffix, SuffixSet, Target};

impl Profile {
    /// The same reach without redundant clauses: rights that a plain deny takes are not granted, and
    /// everything is sorted.
    #[must_use]
    pub fn canonical(mut self) -> Self {
        let denies = std::mem::take(&mut self.denies);
        self.denies = maximal(
            denies.into_iter().filter_map(normalize_deny).collect(),
            deny_path,
            deny_within,
        );

        let plain = |deny: &&Deny| deny.except.is_none() && deny.beyond.is_none();
        let by_path_index: Index<'_, &Deny> = self
            .denies
            .iter()
            .filter(plain)
            .filter_map(|deny| deny_path(deny).map(|path| (path, deny)))
            .collect();
        // A deny by path may be redundant because of one of these, and took rights all the same.
        let patterns: Vec<&Deny> = self
            .denies
            .iter()
            .filter(plain)
            .filter(|deny| deny_path(deny).is_none())
            .collect();
        let grants = std::mem::take(&mut self.grants);
        let remaining = grants.into_iter().filter_map(|grant| {
            let path_denies = by_path_index
                .above(&grant.path)
                .filter(|deny| covers_tree(deny, &grant.path));
            let pattern_denies = patterns.iter().filter(|deny| covers_tree(deny, &grant.path));
            let taken = path_denies
                .chain(pattern_denies)
                .fold(Rights::NONE, |all, deny| all | deny.rights);
            normalize_grant(Grant {
                rights: grant.rights.without(taken),
                ..grant
            })
        });
        let remaining: Vec<Grant> = remaining.collect();
        drop(by_path_index);
        self.grants = maximal(remaining, |grant| Some(&grant.path), grant_within);

        let granted: Index<'_, ()> = self.grants.iter().map(|grant| (&grant.path, ())).collect();
        self.identities.retain(|path, _| granted.exactly(path).next().is_some());
        self
    }
}

/// Whether names that `a` lets through are all let through by `b`; `None` lets every name through.
pub(super) fn names_within(a: Option<&SuffixSet>, b: Option<&SuffixSet>) -> bool {
    match (a, b) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => a.iter().all(|long| b.iter().any(|short| ends_with(long, short))),
    }
}

fn lets_through(suffixes: Option<&SuffixSet>, path: &AbsPath) -> bool {
    suffixes.is_none_or(|suffixes| path.name().is_some_and(|name| suffixes.matches(name)))
}

fn ends_with(long: &Suffix, short: &Suffix) -> bool {
    long.as_str().ends_with(short.as_str())
}

/// Only the shortest suffixes: `.tar.gz` beside `.gz` is redundant.
fn shortest(set: &SuffixSet) -> SuffixSet {
    let redundant = |long: &Suffix| set.iter().any(|short| short != long && ends_with(long, short));
    set.iter().filter(|suffix| !redundant(suffix)).cloned().collect()
}

fn normalize_grant(mut grant: Grant) -> Option<Grant> {
    match grant.scope {
        Scope::Names => {
            grant.rights = grant.rights.and(Rights::READ);
            grant.suffixes = None;
        }
        Scope::File => {
            let suffixes = grant.suffixes.take();
            if !lets_through(suffixes.as_ref(), &grant.path) {
                return None;
            }
        }
        Scope::Tree => grant.suffixes = grant.suffixes.as_ref().map(shortest),
    }
    if !grant.rights.contains(Rights::WRITE) {
        grant.max_file_bytes = None;
    }
    (!grant.rights.is_empty()).then_some(grant)
}

fn normalize_deny(mut deny: Deny) -> Option<Deny> {
    deny.except = deny.except.as_ref().map(shortest);
    if deny.beyond.is_some() {
        deny.rights = deny.rights.and(Rights::WRITE);
    }
    if deny.exempts_tree(deny.target.path()) {
        return None;
    }
    let ends = std::mem::take(&mut deny.ends);
    let redundant = |end: &Ending| ends.iter().any(|other| other != end && other.holds(end));
    let inside = ends
        .iter()
        .filter(|end| end.path().is_within(deny.target.path()) && !redundant(end));
    deny.ends = inside.cloned().collect();
    (!deny.rights.is_empty()).then_some(deny)
}

/// Whether the deny holds at the path and everywhere below it.
fn covers_tree(deny: &Deny, path: &AbsPath) -> bool {
    deny.covers(path) && !deny.ends_within(path)
}

fn deny_path(deny: &Deny) -> Option<&AbsPath> {
    match &deny.target {
        Target::Path(path) => Some(path),
        Target::Pattern { .. } => None,
    }
}

fn grant_within(a: &Grant, b: &Grant) -> bool {
    let scope = match (a.scope, b.scope) {
        (Scope::File, Scope::File) => a.path == b.path,
        (Scope::File | Scope::Tree | Scope::Names, Scope::Tree) | (Scope::Names, Scope::Names) => {
            a.path.is_within(&b.path)
        }
        (Scope::File | Scope::Tree, Scope::Names) | (Scope::Tree | Scope::Names, Scope::File) => false,
    };
    let names = match a.scope {
        // A listing is not narrowed by suffixes.
        Scope::Names => true,
        Scope::File => lets_through(b.suffixes.as_ref(), &a.path),
        Scope::Tree => names_within(a.suffixes.as_ref(), b.suffixes.as_ref()),
    };
    scope && names && b.rights.contains(a.rights) && size_within(a.max_file_bytes, b.max_file_bytes, a.rights)
}

fn size_within(a: Option<u64>, b: Option<u64>, rights: Rights) -> bool {
    !rights.contains(Rights::WRITE) || b.is_none_or(|most| a.is_some_and(|bytes| bytes <= most))
}

/// Whether `b` forbids all that `a` forbids.
fn deny_within(a: &Deny, b: &Deny) -> bool {
    let target = match (&a.target, &b.target) {
        (Target::Path(inner), Target::Path(outer)) => inner.is_within(outer),
        (
            Target::Pattern { root: inner, pattern },
            Target::Pattern {
                root: outer,
                pattern: same,
            },
        ) => inner.is_within(outer) && pattern == same || b.target.covers(inner),
        (Target::Pattern { root, .. }, Target::Path(path)) => root.is_within(path),
        (Target::Path(path), Target::Pattern { .. }) => b.target.covers(path),
    };
    // Where `b` ends, `a` must end too, or not reach at all.
    let ends = b.ends.iter().all(|end| {
        let disjoint = !end.path().is_within(a.target.path()) && !end.exempts_tree(a.target.path());
        disjoint || a.ends.iter().any(|earlier| earlier.holds(end))
    });
    // What `b` excepts, `a` must except too.
    let names = match (&a.except, &b.except) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => names_within(Some(b), Some(a)),
    };
    let size = b
        .beyond
        .is_none_or(|least| a.beyond.is_some_and(|bytes| least <= bytes));
    target && ends && names && size && b.rights.contains(a.rights)
}

/// The clauses that no other makes redundant; of equal ones the smallest. Clauses without a path are
/// few and compared with all.
fn maximal<T: Ord + Clone>(
    mut all: Vec<T>,
    path: impl Fn(&T) -> Option<&AbsPath>,
    within: impl Fn(&T, &T) -> bool,
) -> Vec<T> {
    all.sort();
    all.dedup();
    let mut by_path_index: Index<'_, usize> = Index::default();
    let mut without_path = Vec::new();
    for (i, clause) in all.iter().enumerate() {
        match path(clause) {
            Some(at) => by_path_index.insert(at, i),
            None => without_path.push(i),
        }
    }
    let everything: Vec<usize> = (0..all.len()).collect();
    let redundant = |i: usize| {
        let covered = |j: usize| j != i && within(&all[i], &all[j]) && (j < i || !within(&all[j], &all[i]));
        match path(&all[i]) {
            Some(at) => by_path_index.above(at).chain(&without_path).any(|&j| covered(j)),
            None => everything.iter().any(|&j| covered(j)),
        }
    };
    (0..all.len())
        .filter(|&i| !redundant(i))
        .map(|i| all[i].clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::policy::{Environment, Limits, Network, Origin, Pattern, UnixSockets};
    use crate::profile::intersect;

    #[test]
    fn a_pattern_below_what_another_pattern_denies_is_idle() {
        let deny = |root: &str, pattern| Deny {
            target: Target::Pattern {
                root: AbsPath::new(root).unwrap(),
                pattern,
            },
            ..Deny::tree(AbsPath::root(), Rights::EXECUTE, Origin::Builtin("test"))
        };
        let redundant = deny("/k.gz", Pattern::Name("other".into()));
        let all = deny("/", Pattern::Suffix("z".into()));
        assert!(deny_within(&redundant, &all) && !deny_within(&all, &redundant));
        assert!(!deny_within(&deny("/k", Pattern::Name("other".into())), &all));
    }
    #[test]
    fn a_pattern_takes_what_an_idle_deny_by_path_below_it_took() {
        let origin = || Origin::Builtin("test");
        let profile = |grant: &AbsPath, denies| Profile {
            grants: vec![Grant::tree(grant.clone(), Rights::WRITE, origin())],
            denies,
            identities: BTreeMap::new(),
            network: Network::Off,
            unix_sockets: UnixSockets::None,
            limits: Limits::default(),
            environment: Environment::default(),
        };
        let file = AbsPath::new("/k.tar.gz").unwrap();
        let gz = Deny {
            target: Target::Pattern {
                root: AbsPath::root(),
                pattern: Pattern::Suffix(".gz".into()),
            },
            ..Deny::tree(AbsPath::root(), Rights::ALL, origin())
        };
        let (wide, all) = (profile(&AbsPath::root(), vec![gz]), profile(&AbsPath::root(), vec![]));
        let own = profile(&file, vec![Deny::tree(file.clone(), Rights::WRITE, origin())]);
        let remaining = intersect(&intersect(&wide, &own), &all);
        assert_eq!(remaining, intersect(&wide, &intersect(&own, &all)));
        assert_eq!(remaining.grants, []);
    }
}
