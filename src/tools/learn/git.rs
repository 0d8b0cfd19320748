//! What git would run or obey in a place that is a part of a repository, where the guard of protected names does not see the repository.
//!
//! The guard reads the git directories that lie in a writable root. A smaller root has none in it, while the repository
//! around it may lead git there: by `core.hooksPath`, by `include.path`. So who wants to write there without a question must
//! not be led to by anything.

use std::path::{Path, PathBuf};

use crate::policy::AbsPath;
use crate::policy::path::display;

/// The longest config that is looked at.
const MOST_BYTES: u64 = 1 << 20;
/// What leads git to other files, in small letters; more than that may be meant, and costs a question.
const LEADS: [&str; 6] = [
    "hookspath",
    "[include",
    "fsmonitor",
    "sshcommand",
    "pager",
    "attributesfile",
];

/// Whether git would take a directory for its own.
pub(super) fn is_git_directory(directory: &AbsPath) -> bool {
    let holds = |name: &str| {
        directory
            .child(name)
            .is_some_and(|entry| std::fs::symlink_metadata(entry).is_ok())
    };
    holds("HEAD") && (holds("commondir") || (holds("objects") && holds("refs")))
}

/// Why writing below `root` may change what git runs or obeys, if it may.
pub(super) fn objection(root: &AbsPath, homes: &[AbsPath]) -> Option<String> {
    let own = homes.iter().flat_map(|home| {
        [
            home.as_path().join(".gitconfig"),
            home.as_path().join(".config/git/config"),
        ]
    });
    for config in own.chain([PathBuf::from("/etc/gitconfig")]) {
        // The user's own may hold all kinds of things; only the hooks of every repository are looked for.
        if let Some(why) = leads(&config, &LEADS[..1]) {
            return Some(why);
        }
    }
    // Where the entry lies in the root, the guard sees it.
    for around in root.ancestors().skip(1) {
        let entry = around.as_path().join(".git");
        let Ok(found) = std::fs::symlink_metadata(&entry) else {
            continue;
        };
        let why = if found.is_dir() {
            in_directory(&entry)
        } else {
            in_elsewhere(&entry)
        };
        if why.is_some() {
            return why;
        }
    }
    // A root that is a whole worktree, with its git directory elsewhere.
    let entry = root.as_path().join(".git");
    match std::fs::symlink_metadata(&entry) {
        Ok(found) if !found.is_dir() => in_elsewhere(&entry),
        Ok(_) | Err(_) => None,
    }
}

fn in_directory(directory: &Path) -> Option<String> {
    let configs = [directory.join("config"), directory.join("config.worktree")];
    configs.iter().find_map(|config| leads(config, &LEADS))
}

/// What a file in the place of a git directory names.
fn in_elsewhere(file: &Path) -> Option<String> {
    let unclear = || {
        Some(format!(
            "{} names a git directory that cannot be followed",
            display(file)
        ))
    };
    let Some(directory) = named(file, "gitdir:") else {
        return unclear();
    };
    let shared = directory.join("commondir");
    let shared = match std::fs::symlink_metadata(&shared) {
        Ok(_) => match named(&shared, "") {
            Some(shared) => Some(shared),
            None => return unclear(),
        },
        Err(_) => None,
    };
    in_directory(&directory).or_else(|| shared.as_deref().and_then(in_directory))
}

/// The directory that such a file names.
fn named(file: &Path, before: &str) -> Option<PathBuf> {
    let about = std::fs::symlink_metadata(file).ok()?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return None;
    }
    let text = std::fs::read_to_string(file).ok()?;
    let path = text.trim().strip_prefix(before)?.trim();
    let named = file.parent()?.join(path);
    named.is_dir().then_some(named)
}

/// Whether a config says one of these; one that cannot be read may.
fn leads(config: &Path, words: &[&str]) -> Option<String> {
    let cannot = || Some(format!("{} cannot be read, and git may obey it", display(config)));
    let about = match std::fs::metadata(config) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(_) => return cannot(),
    };
    if !about.is_file() || about.len() > MOST_BYTES {
        return cannot();
    }
    let Ok(bytes) = std::fs::read(config) else {
        return cannot();
    };
    let text = bytes.to_ascii_lowercase();
    let says = |word: &&&str| text.windows(word.len()).any(|window| window == word.as_bytes());
    let word = words.iter().find(says)?;
    Some(format!(
        "{} has git run or read other files (`{}`), which may lie here",
        display(config),
        word.trim_start_matches('[')
    ))
}
