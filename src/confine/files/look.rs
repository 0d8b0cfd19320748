//! Resolving an agent's path.
//!
//! As the kernel would, component by component, but also past the point where nothing exists, as long as plain names follow. A
//! change on the disk meanwhile is harmless: the result is opened without following a symlink.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::readlink;
use nix::sys::stat::lstat;

use super::failure::{About, Answer, failure};
use super::location::is_plain;
use super::protocol::{Found, Last, Look, State, Why};
use super::state::{self, FileKind, PathHandle, kind};

/// As many symlinks as the kernel follows.
const MAX_LINKS: u32 = 40;

/// Resolves a path, and reads the state there.
pub(super) fn look(look: &Look) -> Answer<Found> {
    look_with_handle(look).map(|(found, _)| found)
}

/// The same, with the opened file, where no symlink was on the way.
pub(super) fn look_with_handle(look: &Look) -> Answer<(Found, Option<PathHandle>)> {
    if let Some(handle) = open_plain(look) {
        let (state, _content) = handle.state(&look.path, look.hash)?;
        let parent = Path::new(&look.path).parent().unwrap_or(Path::new("/"));
        let found = Found {
            path: look.path.clone(),
            state,
            existing: parent.as_os_str().to_owned(),
            is_of_process: false,
        };
        return Ok((found, Some(handle)));
    }
    look_by_component(look).map(|found| (found, None))
}

/// Opens a path without symlinks, as most are, in one call.
fn open_plain(look: &Look) -> Option<PathHandle> {
    let handle = is_plain(&look.path)
        .then(|| PathHandle::at(&look.path).ok())
        .flatten()?;
    match (handle.kind(), look.last) {
        (FileKind::Symlink, Last::Target) => None,
        (FileKind::Symlink, Last::Itself) | (FileKind::File | FileKind::Directory | FileKind::Special(_), _) => {
            Some(handle)
        }
    }
}

fn look_by_component(look: &Look) -> Answer<Found> {
    let bytes = look.path.as_bytes();
    if !bytes.starts_with(b"/") || bytes.contains(&0) {
        return Err(failure(&look.path, Why::Malformed("not an absolute path".to_owned())));
    }
    let ResolvedPath {
        path,
        existing,
        is_of_process,
    } = resolve(&look.path, look.last).about(&look.path)?;
    let state = state::at(path.as_os_str(), look.hash).map_err(|failed| failure(&look.path, failed.why))?;
    if let (State::File(_) | State::Other(_), Some(b'/')) = (&state, bytes.last()) {
        return Err(failure(&look.path, Why::NotDirectory));
    }
    Ok(Found {
        path: path.into_os_string(),
        state,
        existing: existing.into_os_string(),
        is_of_process,
    })
}

/// A path without symlinks, the nearest directory above it that exists, and whether a link of /proc was on the way.
struct ResolvedPath {
    path: PathBuf,
    existing: PathBuf,
    is_of_process: bool,
}

fn resolve(path: &OsStr, last: Last) -> Result<ResolvedPath, Why> {
    let mut is_of_process = false;
    let (path, existing) = walk(path, last, &mut is_of_process)?;
    Ok(ResolvedPath {
        path,
        existing,
        is_of_process,
    })
}

fn walk(path: &OsStr, last: Last, is_of_process: &mut bool) -> Result<(PathBuf, PathBuf), Why> {
    let mut at = PathBuf::from("/");
    let mut names = names(path);
    let mut links = 0;
    while let Some(name) = names.pop_front() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&name);
        let stat = match lstat(&next) {
            Ok(stat) => stat,
            Err(Errno::ENOENT) => return missing(at, &name, &names),
            Err(Errno::ELOOP) => return Err(Why::Loop),
            Err(errno) => return Err(errno.into()),
        };
        match kind(&stat) {
            FileKind::Directory => at = next,
            FileKind::Symlink if !(names.is_empty() && last == Last::Itself) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Why::Loop);
                }
                *is_of_process |= next.starts_with("/proc");
                follow(&next, &mut at, &mut names)?;
            }
            FileKind::File | FileKind::Symlink | FileKind::Special(_) if names.is_empty() => return Ok((next, at)),
            FileKind::File | FileKind::Symlink | FileKind::Special(_) => return Err(Why::NotDirectory),
        }
    }
    let parent = at.parent().unwrap_or(&at).to_owned();
    Ok((at, parent))
}

/// Puts what a symlink names before the names that are left.
fn follow(link: &Path, at: &mut PathBuf, left: &mut VecDeque<OsString>) -> Result<(), Why> {
    let target = readlink(link).map_err(|errno| match errno {
        // It is no symlink any more.
        Errno::EINVAL => Why::Changed,
        errno => errno.into(),
    })?;
    if target.as_bytes().starts_with(b"/") {
        *at = PathBuf::from("/");
    }
    let mut first = names(&target);
    // The kernel would not take a longer one either; this bounds what a chain of links can add up to.
    if first.len() + left.len() > 4096 {
        return Err(Why::System(libc::ENAMETOOLONG));
    }
    first.append(left);
    *left = first;
    Ok(())
}

/// Nothing is at `name` in `at`: what is left must be plain names.
fn missing(at: PathBuf, name: &OsStr, left: &VecDeque<OsString>) -> Result<(PathBuf, PathBuf), Why> {
    if left.iter().any(|name| name == "..") {
        return Err(Why::Missing);
    }
    let mut path = at.join(name);
    path.extend(left);
    Ok((path, at))
}

/// The names in a path, with those left out that lead nowhere.
fn names(path: &OsStr) -> VecDeque<OsString> {
    path.as_bytes()
        .split(|byte| *byte == b'/')
        .filter(|name| !matches!(*name, [] | b"."))
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect()
}
