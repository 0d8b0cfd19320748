//! What of a policy that holds may surprise whoever wrote it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Inspection;
use crate::backend::Regime;
use crate::config::{CustomTool, Diagnostic};
use crate::policy::path::display;
use crate::policy::{AbsPath, Access, Operation, Origin, Policy, Right, Scope, Target};
use crate::profile::{FileReach as _, Profile};
use crate::tools::{offers_commands, shell, unseen_directory_warning};

/// The most directories that one warning names.
const MOST_NAMED: usize = 5;

/// A warning for each cause, for commands that are started in `directory`.
pub(crate) fn cautions(
    inspection: &Inspection,
    custom_tools: &[CustomTool],
    regime: &str,
    directory: Option<&AbsPath>,
) -> Vec<Diagnostic> {
    let Inspection { policy, approved, .. } = inspection;
    if !offers_commands(policy, custom_tools) {
        return Vec::new();
    }
    let unseen = directory.and_then(|directory| unseen_directory_warning(policy, directory));
    let unseen = unseen.map(|(what, remedy)| *Diagnostic::warning(what).hint(remedy));
    let mut all: Vec<Diagnostic> = no_program(approved).into_iter().chain(unseen).collect();
    all.extend(frozen_directories(policy, regime));
    all
}

/// That there is no program to run, or no shell.
fn no_program(approved: &Profile) -> Option<Diagnostic> {
    let mut grants = approved.grants.iter();
    let executes = grants.any(|grant| grant.rights.has(Right::Execute) && grant.scope != Scope::Names);
    let shell = Path::new(shell());
    let found = std::fs::canonicalize(shell).unwrap_or_else(|_| shell.to_owned());
    let has_shell = AbsPath::new(&found).is_ok_and(|path| approved.access(Operation::Execute, &path) > Access::Denied);
    let what = match (executes, has_shell) {
        (_, true) => return None,
        (false, false) => "commands have no program to run: nothing may be executed here, not even a shell".to_owned(),
        (true, false) => format!(
            "shell lines have no shell to run them: {} may not be executed",
            display(&found)
        ),
    };
    Some(
        *Diagnostic::warning(what).hint(
            "`extends: [system]` gives the programs of the system; a root with `execute: true` gives those in it",
        ),
    )
}

/// What a line of the config freezes.
#[derive(Debug, Default)]
struct Frozen {
    directories: BTreeSet<AbsPath>,
    /// The last name of what is denied.
    name: String,
}

/// How a deny inside a writable root holds the directories on the way to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hold {
    /// They are mount points.
    Mounts,
    /// Their entries are ruled one by one.
    Rules,
}

/// That a deny inside a writable root freezes the directories on the way to it; one for each line of the config.
fn frozen_directories(policy: &Policy, regime: &str) -> Vec<Diagnostic> {
    let is_landlock = regime == Regime::Landlock.name();
    if !is_landlock && regime != Regime::Namespaces.name() {
        return Vec::new();
    }
    let mut lines: BTreeMap<(String, &str, Hold), Frozen> = BTreeMap::new();
    for root in policy.roots.iter().filter(|root| root.rights.has(Right::Write)) {
        for deny in &root.denies {
            let (Target::Path(path), Origin::File { .. }) = (&deny.target, &deny.origin) else {
                continue;
            };
            // No mount covers what is not there.
            let is_mounted = !is_landlock && path.as_path().symlink_metadata().is_ok();
            let hold = if is_mounted { Hold::Mounts } else { Hold::Rules };
            let on_the_way = path
                .ancestors()
                .skip(1)
                .take_while(|directory| directory.is_within(&root.path));
            let frozen: Vec<AbsPath> = on_the_way
                .filter(|directory| hold == Hold::Rules || *directory != root.path)
                .collect();
            if frozen.is_empty() {
                continue;
            }
            let line = lines.entry((deny.origin.to_string(), &root.name, hold)).or_default();
            line.directories.extend(frozen);
            if line.name.is_empty() {
                line.name = path.name().map(display).unwrap_or_default();
            }
        }
    }
    let warning = |((origin, root, hold), frozen): ((String, &str, Hold), Frozen)| {
        let Frozen { directories, name } = frozen;
        let (what, hint) = match hold {
            Hold::Mounts => (
                "commands cannot rename or remove",
                format!("`deny: [{name}]`, without a `/`, denies that name at any depth and freezes no directory"),
            ),
            Hold::Rules => (
                "commands list nothing and make nothing in",
                "what is denied freezes nothing where it lies outside of the root".to_owned(),
            ),
        };
        let message = format!(
            "the deny in the root `{root}` ({origin}) freezes directories: {what} {}",
            listed(&directories)
        );
        *Diagnostic::warning(message).hint(hint)
    };
    lines.into_iter().map(warning).collect()
}

fn listed(paths: &BTreeSet<AbsPath>) -> String {
    let named: Vec<String> = paths.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    let more = paths.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        format!("{}, and {more} more", named.join(", "))
    } else {
        named.join(", ")
    }
}
