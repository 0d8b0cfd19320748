//! The hooks of git: what they are called, and where it finds them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::error::ProtectError;
use super::leads::{Trail, leads_to, plain, trail};
use super::roots::{Root, inside};
use super::ways::is_firm;

/// What git runs of a directory of hooks.
pub(super) const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
];
/// What husky's hooks read that lie in the same directory.
const OF_HUSKY: &[&str] = &["h", "husky.sh"];

/// The single scripts in a root that hooks in a directory outside of the roots are links to.
pub(super) fn scripts_of(
    roots: &[Root],
    hooks: &Path,
    on_the_way: &mut BTreeSet<PathBuf>,
) -> Result<BTreeSet<PathBuf>, ProtectError> {
    let mut scripts = BTreeSet::new();
    for name in HOOKS.iter().chain(OF_HUSKY) {
        if hooks.join(name).read_link().is_ok() {
            let way = trail(hooks, Path::new(name));
            is_firm(roots, &hooks.join(name), &way)?;
            let Trail { links, end, .. } = way;
            on_the_way.extend(links);
            scripts.extend(end.filter(|end| inside(roots, end).is_some()));
        }
    }
    Ok(scripts)
}

/// Where the hooks lie that those of husky in this directory, `_`, run.
fn beside(hooks: &Path) -> Option<&Path> {
    let above = hooks.parent().filter(|_| hooks.file_name() == Some(OsStr::new("_")))?;
    // Before husky has run, nothing but the name tells.
    let is_of_husky = [".husky", "husky"]
        .map(OsStr::new)
        .map(Some)
        .contains(&above.file_name());
    let has = |name| std::fs::symlink_metadata(hooks.join(name)).is_ok();
    (is_of_husky || has("h") || has("husky.sh")).then_some(above)
}

/// What is protected of a directory of hooks: all of it, and what lies beside that of husky. What holds the repository itself cannot
/// be kept as it is, but the hooks in it can.
pub(super) fn of_directory(directory: &Path, holds_repository: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    if holds_repository(directory) {
        return HOOKS.iter().map(|hook| directory.join(hook)).collect();
    }
    let beside = beside(directory).filter(|beside| !holds_repository(beside));
    beside.into_iter().chain([directory]).map(Path::to_owned).collect()
}

/// What a relative `core.hooksPath` leads to in a work tree.
pub(super) fn in_work_tree(place: &Path, value: &Path) -> BTreeSet<PathBuf> {
    let written = place.join(value);
    let targets = [plain(&written)].into_iter().chain(leads_to(&written));
    targets
        .flat_map(|target| of_directory(&target, |path| place.starts_with(path)))
        .collect()
}
