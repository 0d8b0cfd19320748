//! Who may use a protected entry besides what its mode says: its group, and its access lists (acl(5)).
//!
//! A command may give neither. But what it makes in a directory with a default list or the set-gid bit gets them, and it may
//! move that onto a protected name, with the same content and mode.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, fchmodat, fstatat};
use nix::unistd::{Gid, fchownat};

use super::at::{self, split};
use super::roots::Root;
use super::{ProtectError, shown};

/// Who may use the file, and what new files in the directory get.
const LISTS: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];

/// The group of a file or directory, and its access lists, where it has some.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Access {
    group: u32,
    lists: [Option<Vec<u8>>; 2],
}

/// An entry that is a file or a directory.
struct Found {
    parent: OwnedFd,
    stat: FileStat,
    /// A name by which only the last component can be a link, and that is none.
    place: PathBuf,
}

impl Access {
    /// That of the entry `path`; none of what is neither file nor directory, or is not there.
    pub(super) fn of(root: &Root, path: &[u8]) -> Result<Option<Self>, ProtectError> {
        let (directory, _) = split(path);
        let access = at::insisting(&root.fd, directory, None, || {
            let found = find(root, path)?;
            found.map(|found| Self::read(&found)).transpose()
        });
        access.map_err(|error| ProtectError::io("look at the access lists of", shown(root, path), error))
    }

    fn read(found: &Found) -> nix::Result<Self> {
        let [access, default] = LISTS.map(|list| read(&found.place, list));
        Ok(Self {
            group: found.stat.st_gid,
            lists: [access?, default?],
        })
    }

    /// Gives the entry `path` this group and these lists, if it has others; whether it had. Its mode stays.
    pub(super) fn restore(&self, root: &Root, path: &[u8]) -> Result<bool, ProtectError> {
        let (directory, name) = split(path);
        let restored = at::insisting(&root.fd, directory, None, || {
            let Some(found) = find(root, path)? else {
                return Ok(false);
            };
            let now = Self::read(&found)?;
            if now == *self {
                return Ok(false);
            }
            if now.group != self.group {
                let group = Some(Gid::from_raw(self.group));
                fchownat(&found.parent, name, None, group, AtFlags::AT_SYMLINK_NOFOLLOW)?;
            }
            for ((list, had), has) in LISTS.into_iter().zip(&self.lists).zip(&now.lists) {
                let done = match had {
                    _ if had == has => continue,
                    Some(had) => xattr::set(&found.place, list, had),
                    None => xattr::remove(&found.place, list),
                };
                done.map_err(|error| errno(&error))?;
            }
            // A list has a say in the mode.
            let mode = Mode::from_bits_truncate(at::permissions(&found.stat));
            fchmodat(&found.parent, name, mode, FchmodatFlags::NoFollowSymlink)?;
            Ok(true)
        });
        restored.map_err(|error| ProtectError::io("restore the group and access lists of", shown(root, path), error))
    }
}

fn find(root: &Root, path: &[u8]) -> nix::Result<Option<Found>> {
    let (directory, name) = split(path);
    let found = at::open_place(&root.fd, directory)
        .and_then(|parent| Ok((fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?, parent)));
    match found {
        Ok((stat, parent)) if matches!(at::kind(&stat), libc::S_IFREG | libc::S_IFDIR) => Ok(Some(Found {
            place: Path::new(&format!("/proc/self/fd/{}", parent.as_raw_fd())).join(OsStr::from_bytes(name)),
            parent,
            stat,
        })),
        Ok(_) | Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(place: &Path, list: &str) -> nix::Result<Option<Vec<u8>>> {
    match xattr::get(place, list) {
        Ok(found) => Ok(found),
        Err(error) => match errno(&error) {
            // The file system has none.
            Errno::EOPNOTSUPP => Ok(None),
            error => Err(error),
        },
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
