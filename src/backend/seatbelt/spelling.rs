//! A profile in the spellings that the kernel of a Mac uses.
//!
//! The kernel matches the path of the file that was reached, not the requested path. `/tmp`, `/var` and `/etc` are links
//! into `/private`, and files of the data volume also appear below `/System/Volumes/Data`. A grant in another spelling has no
//! effect; a deny in another spelling is a hole. So grants are written in the kernel's spelling, and denies in every spelling. Names
//! on a Mac are UTF-8: a path that is not is not granted, and is denied together with the directory around it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::backend::clauses::obstacles::at;
use crate::policy::{AbsPath, Deny, Grant, Operation, Pattern, Right, Rights, Scope, Target};
use crate::profile::Profile;

const LINKS: [&str; 3] = ["tmp", "var", "etc"];
const DATA: &str = "/System/Volumes/Data";

/// The profile that is lowered, and that the text is checked against. On a Mac, where several spellings are one file, it is at least
/// as strict as `profile`.
pub(super) fn canonical(profile: &Profile) -> Profile {
    let grants: Vec<Grant> = profile.grants.iter().filter_map(canonical_grant).collect();
    let denies: Vec<Deny> = profile.denies.iter().flat_map(canonical_denies).collect();
    let moved = wherever_moved(&denies, &grants);
    let denies: BTreeSet<Deny> = denies.into_iter().chain(moved).collect();
    Profile {
        grants,
        denies: denies.into_iter().collect(),
        ..profile.clone()
    }
}

/// The grant in the kernel's spelling; `None` where its path is not UTF-8.
pub(super) fn canonical_grant(grant: &Grant) -> Option<Grant> {
    is_spellable(&grant.path).then(|| Grant {
        path: canonical_path(&grant.path),
        ..grant.clone()
    })
}

/// The deny in every spelling.
pub(super) fn canonical_denies(deny: &Deny) -> Vec<Deny> {
    let except = deny.except.clone().filter(|except| except.iter().next().is_some());
    let targets: Vec<Target> = match &deny.target {
        Target::Path(path) => spellings(&spellable(path)).into_iter().map(Target::Path).collect(),
        Target::Pattern { root, pattern } => {
            let spelled = is_spellable(root) && name_of(pattern).to_str().is_some();
            let target = |root| {
                let pattern = pattern.clone();
                if spelled {
                    Target::Pattern { root, pattern }
                } else {
                    Target::Path(root)
                }
            };
            spellings(&spellable(root)).into_iter().map(target).collect()
        }
    };
    let denies = targets.into_iter().map(|target| Deny {
        target,
        except: except.clone(),
        // The deny also applies in roots inside, which is stricter than the clause.
        ends: BTreeSet::new(),
        ..deny.clone()
    });
    denies.collect()
}

/// The denies of names in every writable tree. An entry keeps its name when a directory around it is moved, so a deny of names
/// must also apply where that directory could be moved to.
fn wherever_moved(denies: &[Deny], grants: &[Grant]) -> Vec<Deny> {
    let writable: BTreeSet<&AbsPath> = grants
        .iter()
        .filter(|grant| grant.scope == Scope::Tree && grant.rights.has(Right::Write))
        .map(|grant| &grant.path)
        .collect();
    // One deny may have several roots: the spellings of one root.
    let mut roots: BTreeMap<Deny, BTreeSet<&AbsPath>> = BTreeMap::new();
    for deny in denies.iter().filter(|deny| !deny.rights.is_empty()) {
        if let Target::Pattern { root, pattern } = &deny.target {
            let same = below(deny, AbsPath::root(), pattern);
            roots.entry(same).or_default().insert(root);
        }
    }
    let mut more = Vec::new();
    for (deny, roots) in &roots {
        if let Target::Pattern { pattern, .. } = &deny.target {
            let missed = writable
                .iter()
                .filter(|path| !path.ancestors().any(|above| roots.contains(&above)));
            more.extend(missed.map(|path| below(deny, (*path).clone(), pattern)));
        }
    }
    more
}

fn below(deny: &Deny, root: AbsPath, pattern: &Pattern) -> Deny {
    let pattern = pattern.clone();
    Deny {
        target: Target::Pattern { root, pattern },
        ..deny.clone()
    }
}

/// Whether the deny also applies in other writable trees than its own.
pub(super) fn is_moved_elsewhere(deny: &Deny, grants: &[Grant]) -> bool {
    !wherever_moved(&canonical_denies(deny), grants).is_empty()
}

/// The profile of moves: an entry may be moved away where it may be read and written and no deny applies. So no move gives more
/// access to a file.
pub(super) fn moves(canonical: &Profile) -> Profile {
    let mut moves = canonical.clone();
    moves.grants.retain(|grant| {
        grant.rights.has(Right::Read)
            && grant.rights.has(Right::Write)
            && grant.suffixes.is_none()
            && grant.max_file_bytes.is_none()
    });
    moves.denies.retain(|deny| !deny.rights.is_empty());
    for deny in &mut moves.denies {
        deny.rights = Rights::ALL;
        deny.except = None;
        deny.beyond = None;
    }
    moves
}

/// The directories above denied paths that a command could otherwise move away or create again.
pub(super) fn ways(canonical: &Profile) -> BTreeSet<AbsPath> {
    let grants: BTreeSet<&AbsPath> = canonical
        .grants
        .iter()
        .filter(|grant| grant.rights.has(Right::Write))
        .map(|grant| &grant.path)
        .collect();
    let mut ways = BTreeSet::new();
    for deny in canonical.denies.iter().filter(|deny| !deny.rights.is_empty()) {
        // A pattern applies at any depth below its root, so only the directories above the root matter.
        let path = at(deny);
        let Some(outermost) = path.ancestors().filter(|above| grants.contains(above)).last() else {
            continue;
        };
        ways.extend(path.ancestors().skip(1).take_while(|above| above.is_within(&outermost)));
    }
    ways
}

/// Whether the deny applies to the operation. A text does not distinguish reading from listing, and cannot limit sizes: with a
/// limit nothing may be written.
pub(super) fn touches(deny: &Deny, operation: Operation) -> bool {
    deny.rights.has(operation.right()) && (operation == Operation::Write || deny.beyond.is_none())
}

/// The number of names in a path.
pub(super) fn depth(path: &AbsPath) -> usize {
    path.as_path().iter().count() - 1
}

fn name_of(pattern: &Pattern) -> &std::ffi::OsStr {
    match pattern {
        Pattern::Name(name) => name,
        Pattern::Suffix(end) => end,
    }
}

pub(super) fn is_spellable(path: &AbsPath) -> bool {
    path.as_path().to_str().is_some()
}

/// The path, or the nearest directory above it that is UTF-8.
fn spellable(path: &AbsPath) -> AbsPath {
    path.ancestors().find(is_spellable).unwrap_or_else(AbsPath::root)
}

pub(super) fn canonical_path(path: &AbsPath) -> AbsPath {
    let data = path.as_path().strip_prefix(DATA).map(|rest| join("/", rest));
    let path = data.unwrap_or_else(|_| path.clone());
    let link = LINKS
        .iter()
        .find(|link| path.as_path().starts_with(Path::new("/").join(link)));
    match (link, path.as_path().strip_prefix("/")) {
        (Some(_), Ok(rest)) => join("/private", rest),
        _ => path,
    }
}

fn spellings(path: &AbsPath) -> Vec<AbsPath> {
    let one = canonical_path(path);
    let mut all = BTreeSet::from([path.clone(), one.clone()]);
    if let Ok(rest) = one.as_path().strip_prefix("/private")
        && LINKS.iter().any(|link| rest.starts_with(link))
    {
        all.insert(join("/", rest));
    }
    if let Ok(rest) = one.as_path().strip_prefix("/")
        && !one.as_path().starts_with("/System")
        && !rest.as_os_str().is_empty()
    {
        all.insert(join(DATA, rest));
    }
    all.into_iter().collect()
}

fn join(front: &str, rest: &Path) -> AbsPath {
    let joined = AbsPath::new(Path::new(front).join(rest));
    // Both parts are normal paths.
    joined.unwrap_or_else(|_| AbsPath::root())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    #[test]
    fn links_of_the_system_are_written_as_what_they_lead_to() {
        for (path, canonical) in [
            ("/tmp/x", "/private/tmp/x"),
            ("/etc", "/private/etc"),
            ("/tmpx", "/tmpx"),
            ("/private/var/x", "/private/var/x"),
            ("/System/Volumes/Data/Users/u", "/Users/u"),
            ("/System/Volumes/Data/tmp", "/private/tmp"),
            ("/", "/"),
        ] {
            assert_eq!(canonical_path(&at(path)), at(canonical), "{path}");
        }
    }

    #[test]
    fn a_deny_holds_in_every_spelling() {
        let all: Vec<String> = spellings(&at("/var/x")).iter().map(AbsPath::to_string).collect();
        assert_eq!(all, ["/System/Volumes/Data/private/var/x", "/private/var/x", "/var/x"]);
        assert_eq!(spellings(&at("/")), [at("/")]);
        assert_eq!(spellings(&at("/System/Library")), [at("/System/Library")]);
    }

    #[test]
    fn what_cannot_be_spelled_is_denied_with_the_directory_around_it() {
        use std::os::unix::ffi::OsStrExt;
        let odd = at("/r").child(std::ffi::OsStr::from_bytes(b"\xff")).unwrap();
        assert_eq!(spellable(&odd), at("/r"));
    }
}
