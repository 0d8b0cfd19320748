//! Roots that are not where they were: unmounted, renamed or removed.

use std::os::fd::AsFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};

use super::entry::nofollow::Identity;
use super::tree::inventory::root_creation_time;

/// Whether another directory, or none, is at this path; the recorded one may come back.
pub(super) fn is_missing(path: &Path, identity: Identity, created: Option<(i64, u32)>) -> bool {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    match open(path, flags, Mode::empty()) {
        Ok(fd) => is_other(fd, identity, created),
        Err(error) => matches!(error, Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP),
    }
}

/// Whether an open directory is another than the recorded one.
pub(super) fn is_other(fd: impl AsFd, identity: Identity, created: Option<(i64, u32)>) -> bool {
    let is_other = fstat(fd.as_fd()).is_ok_and(|found| Identity::of(&found) != identity);
    let now = root_creation_time(fd.as_fd());
    is_other || (created.is_some() && now.is_some() && now != created)
}
