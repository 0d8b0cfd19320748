//! A work tree whose git directory lies elsewhere: a linked work tree, a submodule.
//!
//! Its `.git` is a file that names the git directory, and lies where a command may have written it. So it is believed where the
//! git directory names the work tree in its turn: nobody but who may write there can have it do so. Then all that git writes
//! for this work tree is one root, the git directory of the repository, in which protected names hold as in any other.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::{self, ConfigError, Context, Diagnostic, Loaded, PresetChanges};
use crate::confine::protect::{
    git_settings, is_git_directory, metadata_if_present, read, repository, without_line_end,
};
use crate::policy::path::display;
use crate::policy::{AbsPath, Access, Operation, Origin, Policy};
use crate::profile::{FileReach, Profile};

/// The preset whose workspace is a place that a person works in.
const WORKSPACE: &str = "workspace-write";
/// Longest text that names a directory.
const LONGEST: usize = 8192;

/// A built-in preset on its own, with `workspace` for its `.` and what flags change of it. The workspace of
/// `workspace-write` gets its git directory, too.
pub fn preset(name: &str, workspace: &Path, changes: &PresetChanges, context: &Context) -> Result<Loaded, ConfigError> {
    with_git_directory(name, workspace, |git| {
        config::changed_preset(name, workspace, git, changes, context)
    })
}

/// What `load` makes of the preset, and of the git directory of the workspace where that lies elsewhere and may be a root.
pub(in crate::tools) fn with_git_directory(
    name: &str,
    workspace: &Path,
    load: impl Fn(Option<&AbsPath>) -> Result<Loaded, ConfigError>,
) -> Result<Loaded, ConfigError> {
    if name != WORKSPACE {
        return load(None);
    }
    let (why, named) = match of(workspace) {
        GitDirectory::Nowhere => return load(None),
        GitDirectory::Mutual(git) => match load(Some(&git)) {
            Ok(loaded) => return Ok(loaded),
            Err(error) => {
                let why = error.to_string();
                (
                    why.lines().next().unwrap_or_default().to_owned(),
                    git.into_os_string().into(),
                )
            }
        },
        GitDirectory::Doubtful(named, why) => (why.to_owned(), named),
    };
    let mut loaded = load(None)?;
    let warning = format!(
        "git finds no repository here: `.git` names {}, and that is no root, because {why}",
        display(&named)
    );
    let hint = "look at that file before you believe it: a command may have written it; `git worktree repair` mends what you moved";
    loaded.warnings.push(*Diagnostic::warning(warning).hint(hint));
    Ok(loaded)
}

#[derive(Debug, PartialEq, Eq)]
enum GitDirectory {
    /// In it, or it has none.
    Nowhere,
    /// Here, and each names the other.
    Mutual(AbsPath),
    /// Its `.git` names this, which is not believed.
    Doubtful(PathBuf, &'static str),
}

fn of(workspace: &Path) -> GitDirectory {
    let Ok(walked) = config::walk(workspace) else {
        return GitDirectory::Nowhere;
    };
    let (work_tree, Some(link)) = (&walked.path, walked.path.child(".git")) else {
        return GitDirectory::Nowhere;
    };
    let Ok(Some(found)) = metadata_if_present(link.as_path()) else {
        return GitDirectory::Nowhere;
    };
    if found.is_symlink() {
        return GitDirectory::Doubtful(
            link.into_os_string().into(),
            "it is a symlink, and nothing there names this work tree",
        );
    }
    let Some(named) = text(link.as_path()).and_then(|text| text.strip_prefix(b"gitdir: ").map(<[u8]>::to_vec)) else {
        return GitDirectory::Nowhere;
    };
    let named = PathBuf::from(OsStr::from_bytes(&named));
    let Ok(walked) = config::walk(&work_tree.as_path().join(&named)) else {
        return GitDirectory::Doubtful(named, "it cannot be looked at");
    };
    let Some(git) = &walked.found else {
        return GitDirectory::Doubtful(named, "it does not exist");
    };
    if walked.path.is_within(work_tree) {
        return GitDirectory::Nowhere;
    }
    let root = match shared(&walked.path) {
        Ok(Some(common)) if leads(&walked.path, b"gitdir", &link) => common,
        Ok(None) if works_in(&walked.path, work_tree) => walked.path.clone(),
        Ok(_) => return GitDirectory::Doubtful(named, "it does not name this work tree in its turn"),
        Err(why) => return GitDirectory::Doubtful(named, why),
    };
    let owners = [
        Some(git.uid()),
        metadata_if_present(root.as_path())
            .ok()
            .flatten()
            .map(|root| root.uid()),
    ];
    if owners.iter().any(|owner| *owner != Some(found.uid())) {
        return GitDirectory::Doubtful(named, "it belongs to another user than this work tree");
    }
    if work_tree.is_within(&root) || root.is_within(work_tree) || !is_git_directory(root.as_path()) {
        return GitDirectory::Doubtful(named, "it is not the git directory of a repository");
    }
    // A command could have made one of any directory, for a later session to reach what lies there.
    if !is_called_so(&root) {
        return GitDirectory::Doubtful(
            named,
            "it is not called as git directories are (`.git`, `NAME.git`, `.git/modules/NAME`)",
        );
    }
    GitDirectory::Mutual(root)
}

/// Whether a git directory has a name that nothing but git directories have.
fn is_called_so(root: &AbsPath) -> bool {
    let is_module = || {
        let parts: Vec<&OsStr> = root.as_path().iter().collect();
        parts
            .windows(2)
            .any(|pair| pair == [OsStr::new(".git"), OsStr::new("modules")])
    };
    root.as_bytes().ends_with(b".git") || is_module()
}

/// The git directory that a further work tree shares; none where it shares none.
fn shared(git: &AbsPath) -> Result<Option<AbsPath>, &'static str> {
    let common = git.child("commondir");
    match common.as_ref().map(|common| metadata_if_present(common.as_path())) {
        Some(Ok(None)) => return Ok(None),
        Some(Ok(Some(_))) => {}
        Some(Err(_)) | None => return Err("it cannot be looked at"),
    }
    let above = git
        .parent()
        .filter(|above| above.name() == Some(OsStr::new("worktrees")));
    match above.and_then(|above| above.parent()) {
        Some(common) if leads(git, b"commondir", &common) => Ok(Some(common)),
        Some(_) | None => Err("it does not lie in the repository that it names"),
    }
}

/// Whether a file of a git directory names this path.
fn leads(git: &AbsPath, file: &[u8], to: &AbsPath) -> bool {
    let named = text(&git.as_path().join(OsStr::from_bytes(file)));
    named.is_some_and(|named| is_at(git, &named, to))
}

/// Whether the config of a git directory says that its work tree is there.
fn works_in(git: &AbsPath, work_tree: &AbsPath) -> bool {
    let config = git.as_path().join("config");
    let is_file = metadata_if_present(&config).is_ok_and(|found| found.is_some_and(|found| found.is_file()));
    let settings = read(&config)
        .ok()
        .flatten()
        .filter(|_| is_file)
        .and_then(|text| git_settings(&text));
    let mut settings = settings.into_iter().flatten().rev();
    let set = settings.find(|one| one.section == b"core" && one.subsection.is_none() && one.key == b"worktree");
    set.is_some_and(|set| is_at(git, &set.value, work_tree))
}

/// Whether a path, from a git directory, leads to this place.
fn is_at(git: &AbsPath, path: &[u8], to: &AbsPath) -> bool {
    let walked = config::walk(&git.as_path().join(OsStr::from_bytes(path)));
    walked.is_ok_and(|walked| walked.found.is_some() && walked.path == *to)
}

/// Whether the `.git` file of a work tree names this git directory.
pub(super) fn leads_back(file: &Path, git: &AbsPath) -> bool {
    let named = text(file).and_then(|text| text.strip_prefix(b"gitdir: ").map(<[u8]>::to_vec));
    let (Some(named), Some(work_tree)) = (named, file.parent()) else {
        return false;
    };
    let walked = config::walk(&work_tree.join(OsStr::from_bytes(&named)));
    walked.is_ok_and(|walked| walked.path == *git)
}

/// The line that a regular file holds; no link is followed.
pub(super) fn text(file: &Path) -> Option<Vec<u8>> {
    let found = metadata_if_present(file).ok()??;
    if !found.is_file() || found.len() > LONGEST as u64 {
        return None;
    }
    let text = read(file).ok()??;
    let text = without_line_end(&text);
    (!text.is_empty() && !text.contains(&b'\n')).then(|| text.to_vec())
}

/// Which part of the repository around a directory a command may not read, and what to do.
pub(super) fn out_of_reach(directory: &Path, policy: &Policy, profile: &Profile) -> Option<String> {
    const NONE: &str = "git finds no repository here:";
    let is_read =
        |path: &Path| AbsPath::new(path).is_ok_and(|path| profile.access(Operation::Read, &path) > Access::Denied);
    let has_entry = |above: &&Path| matches!(metadata_if_present(&above.join(".git")), Ok(Some(_)));
    let work_tree = directory.ancestors().find(has_entry)?;
    if !is_read(work_tree) {
        return Some(format!(
            "{NONE} {} is in no root; start there, or name it as one",
            display(work_tree)
        ));
    }
    let found = repository(&work_tree.join(".git")).ok()??;
    let missed = found.directories().find(|git| !is_read(git))?;
    match of(work_tree) {
        GitDirectory::Mutual(git) => Some(format!(
            "{NONE} its git directory {git} is in no root; name it as one (`git: {{root: {git}, mode: rw}}`)"
        )),
        // It was told when the policy was chosen.
        GitDirectory::Nowhere | GitDirectory::Doubtful(..) if is_workspace(policy, work_tree) => None,
        // Nobody is told to let commands reach what a command may have named.
        GitDirectory::Doubtful(_, why) => Some(format!("{NONE} {} is in no root, and {why}", display(missed))),
        GitDirectory::Nowhere => Some(format!("{NONE} {} is in no root", display(missed))),
    }
}

fn is_workspace(policy: &Policy, work_tree: &Path) -> bool {
    let is_of_preset = |origin: &Origin| matches!(origin, Origin::Preset { name, .. } if **name == *WORKSPACE);
    let mut roots = policy.roots.iter();
    roots.any(|root| root.path.as_path() == work_tree && is_of_preset(&root.origin))
}
