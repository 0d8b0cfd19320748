//! The work trees of a repository that lie outside of the roots.
//!
//! A mount namespace does not show them, so git would take them for deleted, and `git worktree prune`, or `git gc` after some
//! months, would delete what it keeps of them: their index, their HEAD, their stash of staged files. So their `.git` file is
//! covered inside by a mask: git sees that it is there, and no command can open it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::elsewhere::{leads_back, text};
use crate::config;
use crate::policy::AbsPath;

/// The most work trees that are shown: each is a mount.
const MAX_WORK_TREES: usize = 300;
/// The most entries of a repository's list that are looked at: a command can write as many as it likes.
const MOST_LOOKED_AT: usize = 10_000;

/// What to show of the work trees of repositories whose settings these are, and of those of the roots: their `.git` files,
/// and the links on the way to them.
/// What is seen anyway is left out, so that a command which makes many does not push out others.
pub(in crate::tools) fn work_trees<'a>(
    roots: impl IntoIterator<Item = &'a AbsPath>,
    settings: impl IntoIterator<Item = &'a AbsPath>,
    is_visible: impl Fn(&AbsPath) -> bool,
) -> Vec<AbsPath> {
    let of_roots = roots
        .into_iter()
        .flat_map(|root| [Some(root.clone()), root.child(".git")])
        .flatten();
    let of_settings = settings
        .into_iter()
        .filter(|path| path.name() == Some(OsStr::new("config")))
        .filter_map(AbsPath::parent);
    let mut repositories: Vec<AbsPath> = of_roots.chain(of_settings).collect();
    repositories.sort();
    repositories.dedup();
    let mut shown = Vec::new();
    let mut left = MAX_WORK_TREES;
    for repository in &repositories {
        let listed = std::fs::read_dir(repository.as_path().join("worktrees"));
        for entry in listed.into_iter().flatten().flatten().take(MOST_LOOKED_AT) {
            if left == 0 {
                return shown;
            }
            let Some(mut paths) = AbsPath::new(entry.path()).ok().and_then(|git| of(&git)) else {
                continue;
            };
            paths.retain(|path| !is_visible(path));
            if !paths.is_empty() {
                left -= 1;
                shown.extend(paths);
            }
        }
    }
    shown.sort();
    shown.dedup();
    shown
}

/// The `.git` file of a work tree, if it leads back to this directory in `worktrees`, and the links on the way to it.
fn of(git: &AbsPath) -> Option<Vec<AbsPath>> {
    let named = text(&git.as_path().join("gitdir"))?;
    let named: PathBuf = git.as_path().join(OsStr::from_bytes(&named));
    if named.file_name() != Some(OsStr::new(".git")) {
        return None;
    }
    let walked = config::walk(&named).ok()?;
    let is_file = walked.found.as_ref().is_some_and(std::fs::Metadata::is_file);
    if !is_file || !leads_back(walked.path.as_path(), git) {
        return None;
    }
    Some([walked.links, vec![walked.path]].concat())
}
