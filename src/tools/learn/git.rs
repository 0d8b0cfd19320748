//! What git would run or obey in a place that is a part of a repository, where the guard of protected names does not see the repository.
//!
//! The guard reads the git directories that lie in a writable root. A smaller root has none in it, while the repository
//! around it may lead git there: by `core.hooksPath`, by `include.path`. So who wants to write there without a question must
//! not be led to by anything.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
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
/// What of that leads it there in every repository.
const LEADS_FOR_ALL: [&str; 2] = ["hookspath", "[include"];

/// Whether git would take a directory for its own.
pub(super) fn is_git_directory(directory: &AbsPath) -> bool {
    // What cannot be looked at may be there.
    let holds = |name: &str| {
        let entry = directory.as_path().join(name);
        !matches!(there(&entry), Ok(None))
    };
    holds("HEAD") && (holds("commondir") || (holds("objects") && holds("refs")))
}

/// Why writing below `root` may change what git runs or obeys, if it may.
pub(super) fn objection(root: &AbsPath, homes: &[AbsPath]) -> Option<String> {
    for config in everywhere(homes, &|name| std::env::var_os(name)) {
        // A person's own names pagers and the like; what could put the hooks of every repository elsewhere counts.
        if let Some(why) = leads(&config, &LEADS_FOR_ALL) {
            return Some(why);
        }
    }
    // Where the entry lies in the root, the guard sees it.
    root.ancestors().find_map(|place| {
        let entry = place.as_path().join(".git");
        match there(&entry) {
            Ok(None) => None,
            Ok(Some(found)) if found.is_dir() && place == *root => None,
            Ok(Some(found)) if found.is_dir() => in_directory(&entry),
            Ok(Some(_)) => in_elsewhere(&entry),
            Err(error) => Some(format!("{} cannot be looked at: {error}", display(&entry))),
        }
    })
}

/// The configs that git obeys in every repository, for a command started by this process.
fn everywhere(homes: &[AbsPath], variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let own = homes.iter().flat_map(|home| {
        [
            home.as_path().join(".gitconfig"),
            home.as_path().join(".config/git/config"),
        ]
    });
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let named = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter().filter_map(set);
    let xdg = set("XDG_CONFIG_HOME").map(|place| place.join("git/config"));
    own.chain([PathBuf::from("/etc/gitconfig")])
        .chain(named)
        .chain(xdg)
        .collect()
}

/// What there is under a name; that there is nothing must be certain.
fn there(entry: &Path) -> io::Result<Option<Metadata>> {
    match std::fs::symlink_metadata(entry) {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
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
    let shared = match there(&shared) {
        Ok(None) => None,
        Ok(Some(_)) | Err(_) => match named(&shared, "") {
            Some(shared) => Some(shared),
            None => return unclear(),
        },
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
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configs_that_variables_name_are_obeyed_too() {
        let home = AbsPath::new("/home/me").unwrap();
        let set = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some("/x".into()),
            "GIT_CONFIG_GLOBAL" => Some("/g".into()),
            _ => Some(OsString::new()),
        };
        let all = everywhere(std::slice::from_ref(&home), &set);
        for path in [
            "/home/me/.gitconfig",
            "/home/me/.config/git/config",
            "/etc/gitconfig",
            "/g",
            "/x/git/config",
        ] {
            assert!(all.contains(&PathBuf::from(path)), "{path}");
        }
        // What is set to nothing is not set.
        assert_eq!(all.len(), 5);
        assert_eq!(everywhere(&[home], &|_| None).len(), 3);
    }
}
