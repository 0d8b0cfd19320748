//! A temporary file beside the one that it replaces.
//!
//! Dropping it removes what its name stands for: the new content where a change failed, the old content after an exchange.

use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{Mode, fchmod, fstat};
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use super::location::make_file;
use super::protocol::Why;

const MAX_ATTEMPTS: u32 = 16;

/// A file that has no name yet, or a hidden one that nobody else uses.
#[derive(Debug)]
pub(super) struct Temporary {
    directory: OwnedFd,
    /// Its name; empty while it has none.
    pub(super) name: OsString,
    /// The file, while it has no name.
    nameless: Option<File>,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        self.discard();
    }
}

/// A hidden name that nobody else uses.
pub(super) fn hidden_name() -> OsString {
    let mut hasher = RandomState::new().build_hasher();
    // A forked process has its parent's random numbers.
    hasher.write_u32(std::process::id());
    format!(".stockade-{:016x}", hasher.finish()).into()
}

impl Temporary {
    /// Writes `content` to disk beside what it shall replace. `mode` is that of the file it takes the place of.
    pub(super) fn write(directory: BorrowedFd<'_>, content: &[u8], mode: Option<u32>) -> Result<Self, Why> {
        match Self::nameless(directory, content, mode) {
            Ok(temporary) => Ok(temporary),
            // Not every file system has `O_TMPFILE`. Any other error repeats.
            Err(_) => Self::named(directory, content, mode),
        }
    }

    fn nameless(directory: BorrowedFd<'_>, content: &[u8], mode: Option<u32>) -> Result<Self, Why> {
        let flags = OFlag::O_TMPFILE | OFlag::O_RDWR;
        let mut file = File::from(make_file(directory, OsStr::new("."), flags, made_with(mode))?);
        fill(&mut file, content, mode)?;
        Ok(Self {
            directory: directory.try_clone_to_owned()?,
            name: OsString::new(),
            nameless: Some(file),
        })
    }

    /// Gives the file a name, as late as possible: a process that is killed before leaves nothing behind.
    pub(super) fn give_name(&mut self) -> Result<(), Why> {
        let Some(mut file) = self.nameless.take() else {
            return Ok(());
        };
        let there = self.directory.as_fd();
        let named = with_free_name(|name| linkat(&file, "", there, name, AtFlags::AT_EMPTY_PATH));
        if let Ok(((), name)) = named {
            self.name = name;
            return Ok(());
        }
        // Not every kernel lets such a file have a name later.
        let mode = fstat(file.as_fd())?.st_mode & 0o7777;
        let mut content = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut content)?;
        let named = Self::named(there, &content, Some(mode))?;
        *self = named;
        Ok(())
    }

    /// Removes whatever stands at its name.
    pub(super) fn discard(&mut self) {
        let name = std::mem::take(&mut self.name);
        if !name.is_empty() {
            // Nothing is left to do about one that cannot be removed, nor about one that is not there any more.
            let _removed = unlinkat(&self.directory, name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
    }

    fn named(directory: BorrowedFd<'_>, content: &[u8], mode: Option<u32>) -> Result<Self, Why> {
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY;
        let (file, name) = with_free_name(|name| make_file(directory, name, flags, made_with(mode)))?;
        let temporary = Self::at(directory, name)?;
        fill(&mut File::from(file), content, mode)?;
        Ok(temporary)
    }

    fn at(directory: BorrowedFd<'_>, name: OsString) -> Result<Self, Why> {
        match directory.try_clone_to_owned() {
            Ok(directory) => Ok(Self {
                directory,
                name,
                nameless: None,
            }),
            Err(error) => {
                let _removed = unlinkat(directory, name.as_os_str(), UnlinkatFlags::NoRemoveDir);
                Err(error.into())
            }
        }
    }
}

/// Tries names until one is free.
pub(super) fn with_free_name<T>(mut attempt: impl FnMut(&OsStr) -> nix::Result<T>) -> nix::Result<(T, OsString)> {
    let mut left = MAX_ATTEMPTS;
    loop {
        let name = hidden_name();
        match attempt(&name) {
            Ok(done) => return Ok((done, name)),
            Err(Errno::EEXIST) if left > 0 => left -= 1,
            Err(errno) => return Err(errno),
        }
    }
}

/// The mode that the new content gets: set-uid and set-gid bits end with the old content.
fn without_setid(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode & 0o1777)
}

fn made_with(mode: Option<u32>) -> Mode {
    mode.map_or(Mode::from_bits_truncate(0o666), without_setid)
}

fn fill(file: &mut File, content: &[u8], mode: Option<u32>) -> Result<(), Why> {
    if let Some(mode) = mode.map(without_setid)
        && Mode::from_bits_truncate(fstat(file.as_fd())?.st_mode & 0o7777) != mode
    {
        fchmod(file.as_fd(), mode)?;
    }
    file.write_all(content)?;
    file.sync_all()?;
    Ok(())
}
