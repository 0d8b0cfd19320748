//! The oracle: what clauses mean, written a second time as plainly as can be. It shares no code with
//! the crate but the types, scans every clause for every question, and works on raw names.

use std::os::unix::ffi::OsStrExt;

use stockade::policy::{
    AbsPath, Access, Deny, Ending, Grant, Operation, Pattern, Policy, Rights, Root, Scope, SuffixSet, Target,
};
use stockade::profile::Profile;

/// A path as the list of its names.
pub(crate) type Names = Vec<Vec<u8>>;

pub(crate) fn names(path: &AbsPath) -> Names {
    path.as_bytes()
        .split(|&b| b == b'/')
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

fn parts(path: &AbsPath) -> impl Iterator<Item = &[u8]> {
    path.as_bytes().split(|&b| b == b'/').filter(|name| !name.is_empty())
}

/// How many names of `path` lie below `at`; `None` when `path` is elsewhere.
fn below(path: &Names, at: &AbsPath) -> Option<usize> {
    let mut left = path.iter();
    for part in parts(at) {
        if left.next()? != part {
            return None;
        }
    }
    Some(left.len())
}

fn right(operation: Operation) -> Rights {
    match operation {
        Operation::Read | Operation::List => Rights::READ,
        Operation::Write => Rights::WRITE,
        Operation::Execute => Rights::EXECUTE,
    }
}

fn has_suffix(set: &SuffixSet, path: &Names) -> bool {
    path.last().is_some_and(|name| {
        set.iter().any(|suffix| {
            let end = suffix.as_str().as_bytes();
            name.len() > end.len() && &name[name.len() - end.len()..] == end
        })
    })
}

fn grant_gives(grant: &Grant, operation: Operation, path: &Names) -> Access {
    let below = below(path, &grant.path);
    let reaches = match grant.scope {
        Scope::File => operation != Operation::List && below == Some(0),
        Scope::Tree => below.is_some(),
        Scope::Names => operation == Operation::List && below.is_some(),
    };
    let has = grant.rights.contains(right(operation));
    let named = operation == Operation::List || grant.suffixes.as_ref().is_none_or(|set| has_suffix(set, path));
    match (reaches && has && named, grant.max_file_bytes) {
        (false, _) => Access::Denied,
        (true, Some(most)) if operation == Operation::Write => Access::UpTo(most),
        (true, _) => Access::Full,
    }
}

fn deny_leaves(deny: &Deny, operation: Operation, path: &Names) -> Access {
    let covers = match &deny.target {
        Target::Path(at) => below(path, at).is_some(),
        Target::Pattern { root, pattern } => below(path, root).is_some_and(|count| {
            path[path.len() - count..].iter().any(|name| match pattern {
                Pattern::Name(exact) => name == exact.as_bytes(),
                Pattern::Suffix(end) => name.ends_with(end.as_bytes()),
            })
        }),
    };
    let excepted = deny
        .except
        .as_ref()
        .is_some_and(|set| operation == Operation::List || has_suffix(set, path));
    let ended = deny.ends.iter().any(|end| match end {
        Ending::Tree(at) => below(path, at).is_some(),
        Ending::File(at) => below(path, at) == Some(0),
    });
    if !covers || ended || !deny.rights.contains(right(operation)) || excepted {
        return Access::Full;
    }
    match deny.beyond {
        None => Access::Denied,
        Some(most) if operation == Operation::Write => Access::UpTo(most),
        Some(_) => Access::Full,
    }
}

pub(crate) fn profile(profile: &Profile, operation: Operation, path: &Names) -> Access {
    let given = profile
        .grants
        .iter()
        .map(|g| grant_gives(g, operation, path))
        .max()
        .unwrap_or(Access::Denied);
    profile
        .denies
        .iter()
        .map(|d| deny_leaves(d, operation, path))
        .fold(given, Ord::min)
}

/// The root that speaks: the one with the longest path. A file's root speaks for no listing.
pub(crate) fn speaker<'a>(policy: &'a Policy, operation: Operation, path: &Names) -> Option<&'a Root> {
    let above = policy.roots.iter().filter(|root| match root.scope {
        Scope::File => operation != Operation::List && below(path, &root.path) == Some(0),
        Scope::Tree | Scope::Names => below(path, &root.path).is_some(),
    });
    above.max_by_key(|root| parts(&root.path).count())
}

pub(crate) fn policy(policy: &Policy, operation: Operation, path: &Names) -> Access {
    let root = speaker(policy, operation, path);
    let mut given = root.map_or(Access::Denied, |root| grant_gives(&root.grant(), operation, path));
    for base in &policy.base {
        let at = names(&base.grant.path);
        let adds = root.is_none_or(|root| {
            let root = names(&root.path);
            at.len() > root.len() && at.starts_with(&root)
        });
        if adds {
            given = given.max(grant_gives(&base.grant, operation, path));
        }
    }
    let denies = policy.roots.iter().flat_map(|root| &root.denies);
    denies.map(|d| deny_leaves(d, operation, path)).fold(given, Ord::min)
}
