//! Repositories that no walk sees: around a root, behind a `.git` that leads elsewhere, and a person's own settings.
//!
//! A root may be a part of a repository, and what decides that lies above it. Nothing is walked there: a few names
//! are asked for in each directory on the way to the root. Those directories are no agent's to write, so links are
//! followed as git follows them, but only regular files are read, a limited length of them, and none that would have to
//! be waited for.

use std::ffi::{OsStr, OsString};
use std::fs::{Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{User, geteuid};

use super::super::entry::state::MAX_FILE;
use super::super::error::ProtectError;
use super::super::naming::markers::{if_present, is_git_directory};

/// Longest config, include or `.git` file that is read, in bytes.
pub(crate) const MAX_CONFIG: u64 = MAX_FILE;
/// Where a git is installed, as far as a config may name it.
const PREFIXES: [&str; 2] = ["/usr", "/usr/local"];
/// Where git's settings for everybody lie.
const SYSTEM: &str = "/etc/gitconfig";

/// Whose git may run or obey what lies in a root.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Person {
    /// What `~` may stand for.
    homes: Vec<OsString>,
    /// The settings of all their repositories.
    configs: Vec<OsString>,
}

impl Person {
    /// Who has these homes and these variables. No session protects what a variable names by a relative path: it is refused.
    ///
    /// A shell elsewhere need not have the variables, so what git reads without them counts as well.
    pub fn of<'a>(homes: impl IntoIterator<Item = &'a Path>, variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let mut person = Self::default();
        let mut configs: Vec<PathBuf> = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"]
            .into_iter()
            .filter_map(&variable)
            .collect();
        configs.extend(variable("XDG_CONFIG_HOME").map(|folder| folder.join("git/config")));
        for home in homes {
            person.homes.push(home.as_os_str().to_owned());
            configs.extend([home.join(".gitconfig"), home.join(".config/git/config")]);
        }
        configs.push(PathBuf::from(SYSTEM));
        configs.sort();
        configs.dedup();
        person.configs = configs.into_iter().map(PathBuf::into_os_string).collect();
        person
    }

    /// The files with settings for all repositories, whether they are there or not.
    pub fn configs(&self) -> impl Iterator<Item = &Path> {
        self.configs.iter().map(Path::new)
    }

    /// What a path in a config may be: git has `~` stand for a home, `~NAME` for that of a user, and `%(prefix)` for
    /// where it is installed.
    pub(crate) fn expand(&self, value: &[u8]) -> nix::Result<Vec<PathBuf>> {
        let value = value.strip_prefix(b":(optional)").unwrap_or(value);
        let below = |text: &[u8]| PathBuf::from(OsStr::from_bytes(text.strip_prefix(b"/").unwrap_or(text)));
        if let Some(rest) = value.strip_prefix(b"%(prefix)/") {
            return Ok(PREFIXES
                .iter()
                .map(|prefix| Path::new(prefix).join(below(rest)))
                .collect());
        }
        let Some(rest) = value.strip_prefix(b"~") else {
            return Ok(vec![PathBuf::from(OsStr::from_bytes(value))]);
        };
        let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        if name.is_empty() {
            return Ok(self
                .homes
                .iter()
                .map(|home| Path::new(home).join(below(rest)))
                .collect());
        }
        // A name that is no text is no user's.
        let Ok(name) = std::str::from_utf8(name) else {
            return Ok(Vec::new());
        };
        let user = User::from_name(name)?;
        Ok(user.map(|user| user.dir.join(below(rest))).into_iter().collect())
    }
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The directories hooks are run in.
    pub(crate) work_dirs: Vec<PathBuf>,
    /// Its git directory, and the one whose settings that shares.
    pub(crate) directories: Vec<PathBuf>,
}

impl Repository {
    /// Whether git takes it for one, and for somebody's whose settings it obeys.
    fn is_obeyed(&self, root: &Path, trusted: Trusted) -> bool {
        let Some(directory) = self.directories.first().filter(|directory| is_git_directory(directory)) else {
            return false;
        };
        match trusted {
            Trusted::Others => true,
            Trusted::Own => {
                let owner_of_directory = owner(directory);
                // Whose it is cannot be known: it may be anybody's.
                owner_of_directory.is_none()
                    || [Some(0), Some(geteuid().as_raw()), owner(root)].contains(&owner_of_directory)
            }
        }
    }

    /// Its git directory, and the one that it shares.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.directories.iter().map(PathBuf::as_path)
    }

    /// The configs that git obeys there, whether they are there or not.
    pub fn configs(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let of = |directory: &PathBuf| ["config", "config.worktree"].map(|name| directory.join(name));
        self.directories.iter().flat_map(of)
    }
}

/// Whose repositories git obeys, beside the user's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Trusted {
    /// Nobody's.
    #[default]
    Own,
    /// Others' too, because there is a `safe.directory`.
    Others,
}

/// The repositories that a directory is a part of, by what lies above it: those that git, run by the user, by root or by
/// whose the directory is, obeys.
pub(crate) fn enclosing(root: &Path, trusted: Trusted) -> Result<Vec<Repository>, ProtectError> {
    let mut found = Vec::new();
    for above in root.ancestors().skip(1) {
        let own = is_git_directory(above).then(|| at(above, above)).transpose();
        for one in [repository(&above.join(".git")), own] {
            match one {
                Ok(one) => found.extend(one.filter(|one| one.is_obeyed(root, trusted))),
                Err(error) if is_out_of_reach(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(found)
}

/// Whether git finds nothing either where this was met: what a user cannot reach, a git of theirs does not obey. Root may
/// be given it later.
pub(crate) fn is_out_of_reach(error: &ProtectError) -> bool {
    let ProtectError::Io { source, path, .. } = error else {
        return false;
    };
    let user = geteuid();
    // What a user closed they can open again.
    let is_closed_by_user = || path.ancestors().find_map(owner) == Some(user.as_raw());
    match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ELOOP | Errno::ENAMETOOLONG) => true,
        Some(Errno::EACCES) => !user.is_root() && !is_closed_by_user(),
        _ => false,
    }
}

fn owner(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|found| found.uid())
}

/// The repository that an entry called `.git` makes of the directory that holds it.
///
/// `None` where git finds none either: nothing is there, or it leads to nothing. What may be one and cannot be
/// looked at is an error.
pub fn repository(entry: &Path) -> Result<Option<Repository>, ProtectError> {
    let fail = ProtectError::failed("look at", &entry);
    let work_dir = entry.parent().unwrap_or(entry);
    let Some(found) = if_present(std::fs::metadata(entry)).map_err(&fail)? else {
        return Ok(None);
    };
    if found.is_dir() {
        return at(entry, work_dir).map(Some);
    }
    // Git takes nothing but a regular file for one that names a directory.
    let directory = if found.is_file() {
        named(entry, b"gitdir: ")?
    } else {
        None
    };
    directory.map(|directory| at(&directory, work_dir)).transpose()
}

/// The repository of a git directory that works in `work_dir`.
fn at(directory: &Path, work_dir: &Path) -> Result<Repository, ProtectError> {
    let shared = shared_by(directory)?;
    let own = real(directory)?.unwrap_or_else(|| directory.to_owned());
    Ok(Repository {
        work_dirs: vec![work_dir.to_owned()],
        directories: std::iter::once(own).chain(shared).collect(),
    })
}

/// The git directory whose settings and hooks another shares, if it names one.
pub(crate) fn shared_by(directory: &Path) -> Result<Option<PathBuf>, ProtectError> {
    named(&directory.join("commondir"), b"")
}

/// The directory that the text of a file names, if there is one.
fn named(file: &Path, before: &[u8]) -> Result<Option<PathBuf>, ProtectError> {
    let Some(text) = read(file)? else { return Ok(None) };
    let Some(path) = text.strip_prefix(before) else {
        return Ok(None);
    };
    let path = OsStr::from_bytes(without_line_end(path));
    let directory = real(&file.parent().unwrap_or(file).join(path))?;
    Ok(directory.filter(|directory| directory.is_dir()))
}

/// What git reads of a file that names a directory: it takes line ends off, and no blanks.
pub fn without_line_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
    end.and_then(|end| text.get(..=end)).unwrap_or_default()
}

/// Resolves a path; `None` where it certainly leads nowhere.
fn real(path: &Path) -> Result<Option<PathBuf>, ProtectError> {
    if_present(std::fs::canonicalize(path)).map_err(ProtectError::failed("look at", &path))
}

/// What git would read from a file there; `None` where it would read nothing.
pub fn read(file: &Path) -> Result<Option<Vec<u8>>, ProtectError> {
    let fail = ProtectError::failed("read", &file);
    let unclear = |why| ProtectError::Unclear(file.to_owned(), why);
    // A device is not even opened.
    let Some(found) = if_present(std::fs::metadata(file)).map_err(&fail)? else {
        return Ok(None);
    };
    if is_nothing(&found) {
        return Ok(None);
    }
    if !found.is_file() {
        return Err(unclear("is no regular file"));
    }
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let Some(mut opened) = if_present(options.open(file)).map_err(&fail)? else {
        return Ok(None);
    };
    let now = opened.metadata().map_err(&fail)?;
    if !now.is_file() {
        return Err(unclear("is no regular file"));
    }
    let mut content = Vec::with_capacity(usize::try_from(now.len().min(MAX_CONFIG)).unwrap_or(0));
    let read = Read::by_ref(&mut opened)
        .take(MAX_CONFIG.saturating_add(1))
        .read_to_end(&mut content);
    read.map_err(&fail)?;
    if content.len() as u64 > MAX_CONFIG {
        return Err(unclear("is too long to be read"));
    }
    Ok(Some(content))
}

/// A directory has no settings in it, and the null device is how people say that there are none.
fn is_nothing(found: &Metadata) -> bool {
    let null = libc::makedev(1, 3);
    found.is_dir() || (found.file_type().is_char_device() && found.rdev() == null)
}
