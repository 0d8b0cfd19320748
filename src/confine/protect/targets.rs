//! Files of the tree that the config of a repository there makes git run or read.
//!
//! `core.hooksPath` and `include.path` may lead to ordinary files beside the sources. Where an existing config
//! does, those files are as good as hooks and config, and are protected by path. The config is the user's and
//! may hold anything, so it is read generously: too much found costs nothing but a file that stays as it is.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::at::{is_within, join, split};
use super::names::is_dot_git;
use super::place::Patterns;
use super::roots::Root;
use super::sight::Sight;
use super::state::{Seen, State, glance};

/// What git runs of a directory of hooks.
const HOOKS: &[&str] = &[
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
];
/// Longest config or include that is read, in bytes.
const MAX_CONFIG: u64 = 1024 * 1024;
/// How many includes deep, as git limits it to a like number.
const MAX_NESTED: usize = 10;
/// Targets in all.
const MAX_TARGETS: usize = 1000;

/// The absolute paths in the roots that repositories there lead git to, beyond what the patterns protect.
pub(super) fn of(roots: &[Root], patterns: &Patterns, sight: &Sight) -> BTreeSet<PathBuf> {
    let gits = sight.git_directories();
    let mut found = BTreeSet::new();
    for (number, git) in &gits {
        let Some(root) = roots.get(usize::from(*number)) else {
            continue;
        };
        let git_path = root.path.join(OsStr::from_bytes(git));
        let mut repository = Repository {
            roots,
            places: Vec::new(),
            found: BTreeSet::new(),
        };
        let (above, name) = split(git);
        repository.places.push(if is_dot_git(name) {
            root.path.join(OsStr::from_bytes(above))
        } else {
            git_path.clone()
        });
        // The worktrees that share the config, each of which says where it is.
        let worktrees = join(git, b"worktrees");
        for (_, other) in gits.iter().filter(|(n, p)| n == number && split(p).0 == worktrees) {
            if let Seen::Present(State::File { content, .. }) = glance(&root.fd, &join(other, b"gitdir"), MAX_CONFIG) {
                let back = Path::new(OsStr::from_bytes(content.trim_ascii()));
                let worktree = root.path.join(OsStr::from_bytes(other)).join(back);
                repository.places.extend(worktree.parent().map(Path::to_owned));
            }
        }
        for config in ["config", "config.worktree"] {
            repository.read(&git_path.join(config), MAX_NESTED);
        }
        for target in repository.found {
            if is_within(git_path.as_os_str().as_bytes(), target.as_os_str().as_bytes()) {
                // What holds the git directory itself cannot be kept as it is, but the hooks in it can.
                found.extend(HOOKS.iter().map(|hook| target.join(hook)));
            } else {
                found.insert(target);
            }
        }
        if found.len() > MAX_TARGETS {
            break;
        }
    }
    found.retain(|path| {
        let place = inside(roots, path);
        place.is_some_and(|(root, below)| !patterns.covers(root.context, below.as_os_str().as_bytes()))
    });
    found
}

/// The root a path lies in, and its path there.
fn inside<'a>(roots: &'a [Root], path: &'a Path) -> Option<(&'a Root, &'a Path)> {
    roots.iter().find_map(|root| {
        let below = path.strip_prefix(&root.path).ok()?;
        (!below.as_os_str().is_empty()).then_some((root, below))
    })
}

struct Repository<'a> {
    roots: &'a [Root],
    /// The directories hooks are run in.
    places: Vec<PathBuf>,
    found: BTreeSet<PathBuf>,
}

impl Repository<'_> {
    /// Reads a config and what it includes.
    fn read(&mut self, config: &Path, nested: usize) {
        let Some((root, below)) = inside(self.roots, config) else {
            return;
        };
        let Seen::Present(State::File { content, .. }) = glance(&root.fd, below.as_os_str().as_bytes(), MAX_CONFIG)
        else {
            return;
        };
        let here = config.parent().unwrap_or(config).to_owned();
        for (section, key, value) in settings(&content) {
            let value = Path::new(OsStr::from_bytes(&value));
            match (section.as_slice(), key.as_slice()) {
                (b"core", b"worktree") => self.places.push(plain(&here.join(value))),
                (b"core", b"hookspath") => {
                    let targets: Vec<PathBuf> = self.places.iter().map(|place| plain(&place.join(value))).collect();
                    self.found.extend(targets);
                }
                (b"include" | b"includeif", b"path") => {
                    let target = plain(&here.join(value));
                    if nested > 0 && self.found.insert(target.clone()) {
                        self.read(&target, nested - 1);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Normal(_) | Component::Prefix(_) => plain.push(component),
        }
    }
    plain
}

/// Section, key and value of every setting; section and key in lower case, without the subsection.
fn settings(text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    let mut section = Vec::new();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in text.split(|&b| b == b'\n') {
        let mut line = line.trim_ascii();
        if let Some(header) = line.strip_prefix(b"[") {
            let end = header
                .iter()
                .position(|&b| b == b'"' || b == b']' || b == b' ')
                .unwrap_or(header.len());
            section = header[..end].trim_ascii().to_ascii_lowercase();
            // A setting may follow on the same line; a bracket within the subsection is not its end.
            let close = header
                .iter()
                .rposition(|&b| b == b']')
                .map_or(header.len(), |at| at + 1);
            line = header[close..].trim_ascii();
        }
        if let Some(equals) = line.iter().position(|&b| b == b'=') {
            let key = line[..equals].trim_ascii().to_ascii_lowercase();
            all.push((section.clone(), key, value(&line[equals + 1..])));
        }
    }
    all
}

/// A value without quotes, escapes and comment.
fn value(text: &[u8]) -> Vec<u8> {
    let mut value = Vec::new();
    let mut quoted = false;
    let mut bytes = text.trim_ascii().iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' => value.extend(bytes.next()),
            b'#' | b';' if !quoted => break,
            _ => value.push(byte),
        }
    }
    value.trim_ascii().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_however_they_are_written() {
        for text in [
            "[core]\n\thooksPath = tools/x",
            "[CORE] HooksPath=\"tools/x\" ; why",
            "[core]\nhookspath = \"tools\"/x # why",
        ] {
            assert_eq!(
                settings(text.as_bytes()),
                [(b"core".to_vec(), b"hookspath".to_vec(), b"tools/x".to_vec())],
                "{text}"
            );
        }
        let conditional = settings(b"[includeIf \"gitdir:~/a]b/\"]\n\tpath = ../x\n");
        assert_eq!(
            conditional,
            [(b"includeif".to_vec(), b"path".to_vec(), b"../x".to_vec())]
        );
    }
}
