//! What the supervisor is told of protected names, and what it answers.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::call::ToolError;
use super::plan::Surroundings;
use crate::backend::namespaces::PrivateCopy;
use crate::config::ABSENT;
use crate::confine::ConfineError;
use crate::confine::protect::{self, Names, Person, ProtectError};
use crate::confine::wire::protocol::{CoverScope, Covered, ProtectSetup};
use crate::policy::{AbsPath, Access, NamePattern, Operation, Policy, Protect, Right};
use crate::profile::{FileReach as _, Profile};

/// What protected names are looked for in, where there is anything to look for.
pub(super) fn setup(policy: &Policy, envelope: &Profile, store: &Path, person: &Person) -> Option<ProtectSetup> {
    let (extra, cover) = match &policy.protect {
        Protect::None => return None,
        Protect::Default(extra) => (extra, CoverScope::RunAtOnce),
        Protect::Prevent(extra) => (extra, CoverScope::Everything),
    };
    let writable: BTreeSet<OsString> = policy
        .roots
        .iter()
        .filter(|root| root.rights.has(Right::Write) && envelope.access(Operation::List, &root.path) != Access::Denied)
        .map(|root| root.path.as_path().as_os_str().to_owned())
        .collect();
    if writable.is_empty() {
        return None;
    }
    Some(ProtectSetup {
        roots: writable.into_iter().collect(),
        extra: extra.iter().map(|path| path.as_path().as_os_str().to_owned()).collect(),
        names: names(policy),
        cover,
        store: store.as_os_str().to_owned(),
        // Nobody refuses to work because it cannot be told.
        program: std::env::current_exe().ok().map(PathBuf::into_os_string),
        person: person.clone(),
    })
}

/// What the config makes of the list of names.
pub(crate) fn names(policy: &Policy) -> Names {
    let each = |patterns: &BTreeSet<NamePattern>| patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect();
    Names {
        add: each(&policy.names.add),
        except: each(&policy.names.except),
    }
}

/// The protected entries that a start would find now.
pub(super) fn present(policy: &Policy, envelope: &Profile, person: &Person) -> Result<Vec<PathBuf>, ProtectError> {
    let each = |list: Vec<OsString>| list.into_iter().map(Into::into).collect::<Vec<_>>();
    // Nothing is kept of it.
    setup(policy, envelope, Path::new(""), person).map_or(Ok(Vec::new()), |mut setup| {
        // What a start would make first has nothing in it.
        let to_be_made = |path: &OsString| {
            policy
                .roots
                .iter()
                .any(|root| root.identity == ABSENT && root.path.as_path() == Path::new(path))
        };
        setup.roots.retain(|path| !to_be_made(path));
        protect::present(&each(setup.roots), &each(setup.extra), &setup.names, &setup.person)
    })
}

/// The protected paths that the supervisor found, if they are what it was told to look for. It read them from
/// directories that an agent writes.
pub(super) fn covered(found: Vec<Covered>, setup: Option<&ProtectSetup>) -> Result<Surroundings, ToolError> {
    let malformed = || ToolError::Confine(ConfineError::Malformed);
    let (roots, extra) = setup.map_or((&[] as &[_], &[] as &[_]), |setup| (&setup.roots, &setup.extra));
    let is_expected = |path: &AbsPath| {
        let below = |root: &OsString| AbsPath::new(root).is_ok_and(|root| path.is_below(&root));
        roots.iter().any(below) || extra.iter().any(|file| path.as_path() == Path::new(file))
    };
    let mut around = Surroundings::default();
    for Covered { path, copy } in found {
        let path = AbsPath::new(path).ok().filter(is_expected).ok_or_else(malformed)?;
        match copy {
            None => around.protect.push(path),
            Some(copy) => around.copies.push(PrivateCopy {
                path,
                source: AbsPath::new(copy).map_err(|_| malformed())?,
            }),
        }
    }
    Ok(around)
}
