//! The hooks of git: what they are called, and where it finds them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::super::error::ProtectError;
use super::super::roots::{Root, root_of};
use super::git_paths::refuse_detour;
use super::resolve::{Resolution, normalize, resolve, resolve_from};

/// What git runs of a directory of hooks.
pub(crate) const HOOKS: &[&str] = &[
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
/// Whether git, in this version or a later one, may call a hook so; on a file system that folds case too.
pub(crate) fn may_be_called_hook(name: &[u8]) -> bool {
    name.iter()
        .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-' || !byte.is_ascii())
}

/// What husky's hooks read that lie in the same directory.
const OF_HUSKY: &[&str] = &["h", "husky.sh"];

/// The single scripts in a root that hooks in a directory outside of the roots are links to.
pub(crate) fn linked_scripts(
    roots: &[Root],
    hooks: &Path,
    passed: &mut BTreeSet<PathBuf>,
) -> Result<BTreeSet<PathBuf>, ProtectError> {
    let mut scripts = BTreeSet::new();
    for name in HOOKS.iter().chain(OF_HUSKY) {
        if hooks.join(name).read_link().is_ok() {
            let resolution = resolve_from(hooks, Path::new(name));
            refuse_detour(roots, &hooks.join(name), &resolution)?;
            let Resolution { links, end, .. } = resolution;
            passed.extend(links);
            scripts.extend(end.filter(|end| root_of(roots, end).is_some()));
        }
    }
    Ok(scripts)
}

/// The directory of the hooks that husky's own, in `_`, run. Before husky has run, nothing but that name tells.
fn husky_hooks(hooks: &Path) -> Option<&Path> {
    hooks.parent().filter(|_| hooks.file_name() == Some(OsStr::new("_")))
}

/// What is protected of a directory of hooks: all of it, and what lies beside that of husky. What holds the repository itself cannot
/// be kept as it is, but the hooks in it can.
pub(crate) fn protected_hooks(directory: &Path, holds_repository: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let protected = |directory: &Path| {
        if holds_repository(directory) {
            HOOKS.iter().map(|hook| directory.join(hook)).collect()
        } else {
            vec![directory.to_owned()]
        }
    };
    husky_hooks(directory)
        .into_iter()
        .chain([directory])
        .flat_map(protected)
        .collect()
}

/// The hooks that a relative `core.hooksPath` names in a work tree.
pub(crate) fn hooks_in_work_tree(work_tree: &Path, value: &Path) -> BTreeSet<PathBuf> {
    let written = work_tree.join(value);
    let targets = [normalize(&written)].into_iter().chain(resolve(&written));
    targets
        .flat_map(|target| protected_hooks(&target, |path| work_tree.starts_with(path)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::protected_hooks;

    /// A script of husky in `_` runs the hook of that name one directory above.
    #[test]
    fn the_hooks_beside_those_of_husky_are_protected_where_their_directory_holds_the_repository() {
        let temporary = tempfile::tempdir().unwrap();
        let work_tree = temporary.path();
        let found = protected_hooks(&work_tree.join("_"), |path| work_tree.starts_with(path));
        for (path, expected) in [("_", true), ("pre-commit", true), ("README", false), ("", false)] {
            let path = work_tree.join(path);
            assert_eq!(found.contains(&path), expected, "{}", path.display());
        }
    }
}
