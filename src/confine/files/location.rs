//! Opening the paths that a look gave, without following symlinks.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, mkdirat};

use super::failure::{About, Answer, failure};
use super::protocol::Why;

/// An open directory, and a name in it.
#[derive(Debug)]
pub(super) struct Location {
    /// Opened with `O_PATH`.
    pub(super) directory: OwnedFd,
    pub(super) name: OsString,
}

/// A parent directory that was created.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) path: OsString,
    pub(super) location: Location,
}

impl Location {
    /// The location of a path whose directory exists.
    pub(super) fn of(path: &OsStr) -> Answer<Self> {
        let (directory, name) = split(path)?;
        Ok(Self {
            directory: open(directory, OFlag::O_PATH | OFlag::O_DIRECTORY).about(path)?,
            name: name.to_owned(),
        })
    }

    /// The location of a path. Missing parents are created, and added to `made`.
    pub(super) fn create_parents(path: &OsStr, made: &mut Vec<Made>) -> Answer<Self> {
        let (mut directory, name) = split(path)?;
        let mut missing = Vec::new();
        let mut at = loop {
            match open(directory, OFlag::O_PATH | OFlag::O_DIRECTORY) {
                Ok(at) => break at,
                Err(Errno::ENOENT) => {
                    missing.push(directory);
                    directory = split(directory)?.0;
                }
                Err(errno) => return Err(errno).about(path),
            }
        };
        for missing in missing.into_iter().rev() {
            let name = split(missing)?.1.to_owned();
            let location = Self { directory: at, name };
            at = make_directory(missing, location, made).about(path)?;
        }
        Ok(Self {
            directory: at,
            name: name.to_owned(),
        })
    }
}

/// Makes a directory and opens it. One that is there by now will do.
pub(super) fn make_directory(path: &OsStr, location: Location, made: &mut Vec<Made>) -> nix::Result<OwnedFd> {
    let result = mkdirat(
        &location.directory,
        location.name.as_os_str(),
        Mode::from_bits_truncate(0o777),
    );
    let opened = open_below(&location.directory, &location.name, OFlag::O_PATH | OFlag::O_DIRECTORY);
    match result {
        Ok(()) => made.push(Made {
            path: path.to_owned(),
            location,
        }),
        Err(Errno::EEXIST) => {}
        Err(errno) => return Err(errno),
    }
    opened
}

/// The directory and the name of a path that a look gave.
pub(super) fn split(path: &OsStr) -> Answer<(&OsStr, &OsStr)> {
    let bytes = path.as_bytes();
    match bytes.iter().rposition(|byte| *byte == b'/') {
        Some(slash) if is_plain(path) => {
            let (directory, name) = bytes.split_at(slash);
            let directory: &[u8] = if directory.is_empty() { b"/" } else { directory };
            Ok((
                OsStr::from_bytes(directory),
                OsStr::from_bytes(name.strip_prefix(b"/").unwrap_or(name)),
            ))
        }
        // The root directory is in no directory.
        Some(_) if bytes == b"/" => Err(failure(path, Why::NotPermitted)),
        Some(_) | None => Err(failure(path, Why::Malformed("not a plain absolute path".to_owned()))),
    }
}

/// Whether a path is absolute and has nothing but names; that of the root directory has none.
pub(super) fn is_plain(path: &OsStr) -> bool {
    path.as_bytes().strip_prefix(b"/").is_some_and(|rest| {
        rest.split(|byte| *byte == b'/')
            .all(|name| !matches!(name, [] | b"." | b"..") && !name.contains(&0))
    })
}

/// Opens an absolute path in which nothing may be a symlink.
pub(super) fn open(path: &OsStr, flags: OFlag) -> nix::Result<OwnedFd> {
    if !path.as_bytes().starts_with(b"/") {
        return Err(Errno::EINVAL);
    }
    open_how(AT_FDCWD, path, flags, ResolveFlag::empty(), Mode::empty())
}

/// Opens what lies below a directory, in the same mount, without symlinks on the way.
pub(super) fn open_below(directory: impl AsFd, path: &OsStr, flags: OFlag) -> nix::Result<OwnedFd> {
    let within = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_XDEV;
    open_how(directory, path, flags, within, Mode::empty())
}

/// Opens or makes a file in a directory.
pub(super) fn make_file(directory: impl AsFd, name: &OsStr, flags: OFlag, mode: Mode) -> nix::Result<OwnedFd> {
    open_how(directory, name, flags, ResolveFlag::RESOLVE_BENEATH, mode)
}

fn open_how(from: impl AsFd, path: &OsStr, flags: OFlag, extra: ResolveFlag, mode: Mode) -> nix::Result<OwnedFd> {
    // `O_PATH` takes no other flags.
    let always = if flags.contains(OFlag::O_PATH) {
        OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW
    } else {
        OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY
    };
    let how = OpenHow::new()
        .flags(flags | always)
        .mode(mode)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS | extra);
    loop {
        match openat2(&from, path, how) {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}
