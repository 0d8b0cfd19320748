//! Rights on a path → the change of a root that gives them.

use std::collections::BTreeSet;
use std::path::Path;

use super::remedy::granted;
use crate::config::amend::{Change, NewRoot, Widened, Writing};
use crate::policy::{AbsPath, Demand, Origin, Policy, Right, Rights, Scope};

/// The change of the config in `file` that gives rights on a path, or why only a person can make it.
pub(super) fn root_change(
    (path, scope): (AbsPath, Scope),
    rights: Rights,
    (policy, file): (&Policy, Option<&Path>),
    writing: Writing,
    names: &mut BTreeSet<String>,
) -> Result<Change, String> {
    // A root speaks in the place of all that is around it, so it keeps what that gives.
    let granted_around = granted(policy, &path, scope);
    let new_root = |granted_around: Rights, names: &mut BTreeSet<String>| {
        let name = name(&path, names);
        names.insert(name.clone());
        Change::Root(NewRoot {
            name,
            rights: rights | granted_around | Rights::READ,
            path: path.clone(),
            scope,
            writing,
        })
    };
    let Some(root_around) = policy.root_for(&path) else {
        return Ok(new_root(granted_around, names));
    };
    let root = &root_around.name;
    if root_around.read_approval != Demand::None
        || (root_around.rights.has(Right::Write) && root_around.write_approval != Demand::None)
    {
        return Err(format!(
            "the root `{root}` is asked about, and something in it would not be"
        ));
    }
    if root_around.suffixes.is_some() || root_around.max_file_bytes.is_some() {
        return Err(format!(
            "the root `{root}` limits names or sizes; a person says what may go beyond that"
        ));
    }
    // A root of a file that is extended stands in another text.
    let is_own = match &root_around.origin {
        Origin::File { file: of, .. } => file == Some(of.as_path()),
        Origin::Preset { .. } | Origin::Flag(_) | Origin::Builtin(_) => false,
    };
    // A program that is rebuilt is another file each time.
    let is_rebuilt = rights.has(Right::Execute) && root_around.rights.has(Right::Write);
    if is_own && (root_around.path == path || is_rebuilt) {
        return Ok(Change::Widen(Widened {
            name: root_around.name.clone(),
            path: root_around.path.clone(),
            scope: root_around.scope,
            rights: rights.without(root_around.rights),
            writing,
        }));
    }
    if root_around.path == path && !root_around.denies.is_empty() {
        return Err(format!(
            "the root `{root}` ({}) forbids parts of itself; a person writes one in its place",
            root_around.origin
        ));
    }
    Ok(new_root(granted_around | root_around.rights, names))
}

/// A valid, unused name for a root.
fn name(path: &AbsPath, used: &BTreeSet<String>) -> String {
    let last = path.name().map(crate::policy::path::display).unwrap_or_default();
    let good = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let last: String = last.chars().filter(good).take(40).collect();
    let base = match last.trim_start_matches(['-', '.']) {
        "" => "learned".to_owned(),
        last => format!("learned-{last}"),
    };
    let numbered = (2_u32..).map(|number| format!("{base}-{number}"));
    let mut all = std::iter::once(base.clone()).chain(numbered);
    all.find(|name| !used.contains(name)).unwrap_or(base)
}
