//! The targets of protected symlinks.
//!
//! The link itself is put back like any other protected entry, and none may be made. What it led to before the command is
//! protected as the name is: a file, a directory with everything in it, or the place where there is nothing yet. So is every
//! link on the way there. Where a directory on the way to protected names is a link, those names are protected in what it
//! leads to, and nothing else there. A link that leads out of all roots leads to nothing that a command may write.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::entry::nofollow::join;
use super::super::error::ProtectError;
use super::super::naming::class::Role;
use super::super::naming::patterns::Patterns;
use super::super::roots::{Root, root_of};
use super::super::tree::inventory::Inventory;
use super::git_paths::refuse_detour;
use super::hooks::HOOKS;
use super::resolve::resolve_from;
use super::targets::Targets;

/// Adds what the protected links lead to. `followed` are links on the way of others, which are put back and lead nowhere by
/// themselves.
pub(crate) fn follow(
    roots: &[Root],
    patterns: &Patterns,
    inventory: &Inventory,
    followed: &mut BTreeSet<PathBuf>,
    targets: &mut Targets,
) -> Result<(), ProtectError> {
    let is_new = |path: &Path| {
        root_of(roots, path).is_some_and(|(root, below)| !patterns.covers(root.context, below.as_os_str().as_bytes()))
    };
    let (mut targets_of_links, mut intermediate) = (Vec::new(), BTreeSet::new());
    for (directory, above, name, role) in inventory.links() {
        let Some(root) = roots.get(usize::from(directory.root)) else {
            continue;
        };
        let link = root.path.join(OsStr::from_bytes(&join(&above, name)));
        if followed.contains(&link) {
            continue;
        }
        let resolution = resolve_from(link.parent().unwrap_or(&link), Path::new(OsStr::from_bytes(name)));
        if matches!(role, Role::GitHook | Role::GitConfig) || targets.live.contains(&link) {
            refuse_detour(roots, &link, &resolution)?;
        }
        let end = resolution.end;
        let new = resolution
            .links
            .into_iter()
            .filter(|path| *path != link && is_new(path));
        intermediate.extend(new);
        // A loop has no target as long as its links stay.
        targets_of_links.extend(end.map(|end| (directory, name, role, link, end)));
    }
    followed.append(&mut intermediate.clone());
    targets.others.append(&mut intermediate);
    for (directory, name, role, link, end) in targets_of_links {
        let below = match role {
            Role::LinkOnPath => patterns.protected_below(directory.context, name),
            _ => Vec::new(),
        };
        let found: Vec<PathBuf> = match role {
            // Of `modules` and `worktrees` of a git directory nothing: what is one is known by what it holds.
            Role::LinkOnPath if !below.iter().any(Vec::is_empty) => {
                below.iter().map(|path| end.join(OsStr::from_bytes(path))).collect()
            }
            // Known by what it holds, wherever it is.
            Role::GitDirectory | Role::GitLink if !end.is_file() => Vec::new(),
            Role::GitHook if holds(&end, &link, roots) => HOOKS.iter().map(|hook| end.join(hook)).collect(),
            _ if holds(&end, &link, roots) => {
                let why = "is a link to a directory that holds it or a writable root, all of which it would protect";
                return Err(ProtectError::Unclear(link, why));
            }
            _ => vec![end.clone()],
        };
        followed.retain(|path| !found.contains(path));
        // What git runs or obeys by another name is that also where its own name is protected.
        let is_of_git = matches!(role, Role::GitHook | Role::GitConfig);
        let is_target = |path: &PathBuf| {
            if is_of_git {
                root_of(roots, path).is_some()
            } else {
                is_new(path)
            }
        };
        let found = found.into_iter().filter(is_target);
        // A mount on a script would keep git from replacing it at a checkout: that is watched.
        if role == Role::GitConfig || role == Role::GitHook && end.is_dir() {
            targets.live.extend(found);
        } else {
            targets.others.extend(found);
        }
    }
    Ok(())
}

/// Whether the place holds the link or a root.
fn holds(end: &PathBuf, link: &Path, roots: &[Root]) -> bool {
    link.starts_with(end) || roots.iter().any(|root| root.path.starts_with(end))
}
