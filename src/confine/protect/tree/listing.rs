//! The kinds of the entries that a directory lists.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;

use super::super::entry::nofollow;
use super::super::naming::class::Kind;

/// Why a directory could not be listed.
pub(crate) enum ListError {
    Io(Errno),
    TooMany,
}

impl From<Errno> for ListError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno)
    }
}

/// The kind of an entry, by what the directory lists.
pub(crate) fn entry_kind(fd: impl AsFd, name: &[u8], listed: u8) -> nix::Result<Kind> {
    Ok(match listed {
        libc::DT_DIR => Kind::Directory,
        libc::DT_LNK => Kind::Symlink,
        libc::DT_UNKNOWN => stat_kind(fd, name)?,
        libc::DT_FIFO | libc::DT_SOCK | libc::DT_CHR | libc::DT_BLK => Kind::Special,
        _ => Kind::Other,
    })
}

/// The kind of an entry of a file system that does not list kinds.
fn stat_kind(fd: impl AsFd, name: &[u8]) -> nix::Result<Kind> {
    match fstatat(fd, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(match nofollow::kind(&stat) {
            libc::S_IFDIR => Kind::Directory,
            libc::S_IFLNK => Kind::Symlink,
            libc::S_IFIFO | libc::S_IFSOCK | libc::S_IFCHR | libc::S_IFBLK => Kind::Special,
            _ => Kind::Other,
        }),
        Err(Errno::ENOENT) => Ok(Kind::Other),
        Err(error) => Err(error),
    }
}
