//! Files of the tree that the config of a repository makes git run or read.
//!
//! `core.hooksPath` and `include.path` may lead to ordinary files beside the sources. Where an existing config
//! does, those files are as good as hooks and config, and are protected by path: the config of a repository in a root,
//! of one that a root is a part of, and of the person whose git it is. A config is theirs and
//! may hold anything, so it is read generously: too much found costs nothing but a file that stays as it is. One that is there
//! and cannot be read may lead anywhere, and is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;

use super::ProtectError;
use super::at::{insisting, join, split};
use super::names::is_dot_git;
use super::place::Patterns;
use super::repository::{self, MAX_CONFIG, Person, Repository, around, real, repository};
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
/// How many includes deep, as git limits it to a like number.
const MAX_NESTED: usize = 10;
/// Targets in all.
const MAX_TARGETS: usize = 10_000;

/// The absolute paths in the roots that git is led to, beyond what the patterns protect. One that a root lies in
/// stands for all of that root.
pub(super) fn of(
    roots: &[Root],
    patterns: &Patterns,
    sight: &Sight,
    person: &Person,
) -> Result<BTreeSet<PathBuf>, ProtectError> {
    let reader = Reader { roots, person };
    let everywhere = reader.everywhere()?;
    let mut files = everywhere.files.clone();
    let mut hooks = BTreeSet::new();
    // In whichever repository somebody works.
    hooks.extend(everywhere.hooks.iter().filter(|path| path.is_absolute()).cloned());
    let mut repositories = in_sight(roots, sight)?;
    for root in roots {
        repositories.extend(around(&root.path)?);
    }
    for known in &repositories {
        let Repository { places, directories } = known;
        let mut leads = Leads::default();
        for config in known.configs() {
            reader.follow(&config, MAX_NESTED, &mut leads)?;
        }
        for place in places.iter().chain(&leads.worktrees) {
            for value in leads.hooks.iter().chain(&everywhere.hooks) {
                let target = plain(&place.join(value));
                if place.starts_with(&target) || directories.iter().any(|git| git.starts_with(&target)) {
                    // What holds the repository itself cannot be kept as it is, but the hooks in it can.
                    files.extend(HOOKS.iter().map(|hook| target.join(hook)));
                } else {
                    hooks.insert(target);
                }
            }
        }
        files.append(&mut leads.files);
        if files.len() + hooks.len() > MAX_TARGETS {
            return Err(ProtectError::TooMany);
        }
    }
    let is_open = |root: &Root, below: &Path| !patterns.covers(root.context, below.as_os_str().as_bytes());
    let mut found = led(files);
    found.retain(|path| inside(roots, path).is_some_and(|(root, below)| is_open(root, below)));
    found.extend(led(hooks).into_iter().filter(|path| {
        match inside(roots, path) {
            Some((root, below)) => is_open(root, below),
            None => roots
                .iter()
                .any(|root| root.path.starts_with(path) && root.context != root.context.whole()),
        }
    }));
    Ok(found)
}

/// The paths, and where links lead them. Who cannot reach what is there runs nothing of it.
fn led(paths: BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let leads: Vec<PathBuf> = paths.iter().filter_map(|path| real(path).ok().flatten()).collect();
    let mut all = paths;
    all.extend(leads);
    all
}

/// The repositories whose git directory lies in a root, and those that something called `.git` in a root makes.
fn in_sight(roots: &[Root], sight: &Sight) -> Result<Vec<Repository>, ProtectError> {
    let gits = sight.git_directories();
    let mut found: BTreeMap<PathBuf, Repository> = BTreeMap::new();
    for (number, git) in &gits {
        let Some(root) = roots.get(usize::from(*number)) else {
            continue;
        };
        let git_path = root.path.join(OsStr::from_bytes(git));
        let (above, name) = split(git);
        let mut places = vec![if is_dot_git(name) {
            root.path.join(OsStr::from_bytes(above))
        } else {
            git_path.clone()
        }];
        // The worktrees that share the config, each of which says where it is.
        let worktrees = join(git, b"worktrees");
        for (_, other) in gits.iter().filter(|(n, p)| n == number && split(p).0 == worktrees) {
            if let Seen::Present(State::File { content, .. }) = glance(&root.fd, &join(other, b"gitdir"), MAX_CONFIG) {
                let back = Path::new(OsStr::from_bytes(content.trim_ascii()));
                let worktree = root.path.join(OsStr::from_bytes(other)).join(back);
                places.extend(worktree.parent().map(Path::to_owned));
            }
        }
        let directories = vec![git_path.clone()];
        found.insert(git_path, Repository { places, directories });
    }
    for (number, link) in sight.git_links() {
        let Some(root) = roots.get(usize::from(number)) else {
            continue;
        };
        let entry = root.path.join(OsStr::from_bytes(&link));
        let linked = insisting(&root.fd, split(&link).0, None, || match repository(&entry) {
            Err(ProtectError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                Err(Errno::EACCES)
            }
            found => Ok(found),
        });
        let Some(linked) = linked.map_err(|error| ProtectError::io("look at", entry.clone(), error))?? else {
            continue;
        };
        let Some(git) = linked.directories.first().cloned() else {
            continue;
        };
        let known = found.entry(git).or_insert_with(|| Repository {
            places: Vec::new(),
            directories: linked.directories,
        });
        known.places.extend(linked.places);
    }
    Ok(found.into_values().collect())
}

/// The root a path lies in, and its path there.
fn inside<'a>(roots: &'a [Root], path: &'a Path) -> Option<(&'a Root, &'a Path)> {
    roots.iter().find_map(|root| {
        let below = path.strip_prefix(&root.path).ok()?;
        (!below.as_os_str().is_empty()).then_some((root, below))
    })
}

/// What configs lead git to.
#[derive(Debug, Default)]
struct Leads {
    /// Directories of hooks, below wherever they are run if not absolute.
    hooks: Vec<PathBuf>,
    /// Where else hooks are run.
    worktrees: Vec<PathBuf>,
    /// Files with more settings.
    files: BTreeSet<PathBuf>,
}

struct Reader<'a> {
    roots: &'a [Root],
    person: &'a Person,
}

impl Reader<'_> {
    /// What a person's own settings lead git to in all repositories.
    fn everywhere(&self) -> Result<Leads, ProtectError> {
        let mut leads = Leads::default();
        for config in self.person.configs() {
            match self.follow(config, MAX_NESTED, &mut leads) {
                Ok(()) => {}
                // Git does without settings of a person that it is not permitted to read; root it may permit later.
                Err(ProtectError::Io { source, .. })
                    if source.kind() == io::ErrorKind::PermissionDenied && !nix::unistd::geteuid().is_root() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(leads)
    }

    /// Reads a config and what it includes.
    fn follow(&self, config: &Path, nested: usize, leads: &mut Leads) -> Result<(), ProtectError> {
        let Some(content) = self.content(config, leads)? else {
            return Ok(());
        };
        let here = config.parent().unwrap_or(config);
        for (section, key, value) in settings(&content) {
            match (section.as_slice(), key.as_slice()) {
                (b"core", b"worktree") => {
                    leads.worktrees.push(plain(&here.join(OsStr::from_bytes(&value))));
                }
                (b"core", b"hookspath") => leads.hooks.extend(self.person.expand(&value)),
                (b"include" | b"includeif", b"path") => {
                    for path in self.person.expand(&value) {
                        let target = plain(&here.join(path));
                        if nested > 0 && leads.files.insert(target.clone()) {
                            self.follow(&target, nested - 1, leads)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What git reads there, if anything.
    fn content(&self, file: &Path, leads: &mut Leads) -> Result<Option<Vec<u8>>, ProtectError> {
        let mut led = || {
            // A link may lead to a file that has another name in a root.
            leads.files.insert(file.to_owned());
            repository::read(file)
        };
        let Some((root, below)) = inside(self.roots, file) else {
            return led();
        };
        match glance(&root.fd, below.as_os_str().as_bytes(), MAX_CONFIG) {
            Seen::Present(State::File { content, .. }) => Ok(Some(content)),
            Seen::Present(State::Symlink { .. }) => led(),
            Seen::Absent | Seen::Present(State::Directory { .. } | State::Special { .. }) => Ok(None),
            Seen::Long { .. } => Err(ProtectError::Unclear(file.to_owned(), "is too long to be read")),
            Seen::Unreadable(error) => Err(ProtectError::io("read", file.to_owned(), error)),
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
