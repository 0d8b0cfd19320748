//! A requested change of attributes: judged and made.
//!
//! What is refused with `EPERM` beyond the plan: everything that is not a file, directory, symlink,
//! FIFO or socket with a path (device nodes, pipes, anonymous inodes); everything on proc; setuid on
//! anything and setgid on anything but a directory, so that an agent running as root plants no program
//! that gives its user away; an owner or group that is neither the object's nor the command's own; and every extended
//! attribute but `user.*` and access lists, of which `acl` says what they may be.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, SFlag, fchmodat, fstat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use nix::unistd::{Gid, Uid, fchownat, getegid};

use super::acl;
use super::caller::Proc;
use super::permission;
use crate::backend::attributes::AttributePlan;
use crate::confine::sys::attributes as sys;

/// One attribute change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// chmod.
    Mode(u32),
    /// chown; `None` leaves the id alone.
    Owner {
        /// The new user.
        user: Option<Uid>,
        /// The new group.
        group: Option<Gid>,
    },
    /// utime: access, then modification.
    Times([libc::timespec; 2]),
    /// setxattr.
    SetXattr {
        /// Its name.
        name: CString,
        /// Its value.
        value: Vec<u8>,
        /// `XATTR_CREATE` or `XATTR_REPLACE` or 0.
        flags: i32,
    },
    /// removexattr.
    RemoveXattr {
        /// Its name.
        name: CString,
    },
}

impl Change {
    /// `EPERM` unless the plan permits this change of `object`.
    pub(super) fn judge(&self, plan: &AttributePlan, proc: &Proc, object: &OwnedFd) -> Result<(), Errno> {
        let stat = fstat(object).map_err(|_| Errno::EPERM)?;
        let filesystem = fstatfs(object).map_err(|_| Errno::EPERM)?;
        if filesystem.filesystem_type() == PROC_SUPER_MAGIC {
            return Err(Errno::EPERM);
        }
        if !permission::permitted(plan, proc, object) {
            return Err(Errno::EPERM);
        }
        self.suits(&stat)?;
        self.widens_no_list(object)
    }

    /// Whether objects of that kind may have this change at all.
    fn suits(&self, stat: &FileStat) -> Result<(), Errno> {
        let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
        let directory = kind == SFlag::S_IFDIR;
        let plain = [SFlag::S_IFREG, SFlag::S_IFLNK, SFlag::S_IFIFO, SFlag::S_IFSOCK].contains(&kind);
        if !directory && !plain {
            return Err(Errno::EPERM);
        }
        match self {
            Self::Mode(mode) => {
                let setuid = mode & libc::S_ISUID != 0;
                let setgid = mode & libc::S_ISGID != 0 && !directory;
                if setuid || setgid { Err(Errno::EPERM) } else { Ok(()) }
            }
            // The kernel would take any group that the user is in, and of a protected name the group is not put back.
            Self::Owner { group, .. } => match group {
                Some(group) if group.as_raw() != stat.st_gid && *group != getegid() => Err(Errno::EPERM),
                Some(_) | None => Ok(()),
            },
            Self::Times(_) => Ok(()),
            Self::SetXattr { name, .. } | Self::RemoveXattr { name } => xattr_may_change(name),
        }
    }

    /// Whether an access list lets in nobody whom the present one and the mode do not show.
    fn widens_no_list(&self, object: &OwnedFd) -> Result<(), Errno> {
        let (name, new) = match self {
            Self::SetXattr { name, value, .. } => (name, value.as_slice()),
            Self::RemoveXattr { name } => (name, [].as_slice()),
            Self::Mode(_) | Self::Owner { .. } | Self::Times(_) => return Ok(()),
        };
        let Some(kind) = acl::Kind::of(name) else {
            return Ok(());
        };
        let path = own_path(object)?;
        let path = OsStr::from_bytes(path.to_bytes());
        let present = match xattr::get_deref(path, OsStr::from_bytes(name.to_bytes())) {
            Ok(present) => present.unwrap_or_default(),
            // The file system has no lists; the kernel says so.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(()),
            Err(_) => return Err(Errno::EPERM),
        };
        kind.judge(&acl::List::parse(&present)?, &acl::List::parse(new)?)
    }

    /// Makes the change. The errors are the kernel's own.
    pub(super) fn perform(&self, object: &OwnedFd) -> Result<(), Errno> {
        match self {
            Self::Mode(mode) => change_mode(object, *mode),
            Self::Owner { user, group } => fchownat(object, c"", *user, *group, AtFlags::AT_EMPTY_PATH),
            Self::Times(times) => sys::change_times(object, times),
            Self::SetXattr { name, value, flags } => sys::set_xattr(&own_path(object)?, name, value, *flags),
            Self::RemoveXattr { name } => sys::remove_xattr(&own_path(object)?, name),
        }
    }
}

/// Where the kernel has no fchmodat2 (before Linux 6.6), or a filter of the surroundings does not know it, chmod follows the
/// descriptor's link in `/proc`.
fn change_mode(object: &OwnedFd, mode: u32) -> Result<(), Errno> {
    match sys::change_mode(object, mode) {
        Err(Errno::ENOSYS | Errno::EPERM) => {}
        done => return done,
    }
    // Some file systems would change the mode of a symlink, and then say that they cannot.
    if SFlag::from_bits_truncate(fstat(object)?.st_mode) & SFlag::S_IFMT == SFlag::S_IFLNK {
        return Err(Errno::EOPNOTSUPP);
    }
    let path = own_path(object)?;
    fchmodat(
        AT_FDCWD,
        path.as_c_str(),
        Mode::from_bits_truncate(mode),
        FchmodatFlags::FollowSymlink,
    )
}

/// The xattr calls take no `O_PATH` descriptor, but its link in `/proc` leads to the very same object.
fn own_path(object: &OwnedFd) -> Result<CString, Errno> {
    CString::new(format!("/proc/self/fd/{}", object.as_raw_fd())).map_err(|_| Errno::EPERM)
}

fn xattr_may_change(name: &CStr) -> Result<(), Errno> {
    let name = name.to_bytes();
    if name.starts_with(b"user.") || name == b"system.posix_acl_access" || name == b"system.posix_acl_default" {
        return Ok(());
    }
    let guarded = [b"security.".as_slice(), b"trusted.", b"system."]
        .iter()
        .any(|class| name.starts_with(class));
    // What the kernel says of a class that a file system does not have.
    Err(if guarded { Errno::EPERM } else { Errno::EOPNOTSUPP })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_user_attributes_and_acls_may_change() {
        for name in [c"user.x", c"system.posix_acl_access", c"system.posix_acl_default"] {
            assert_eq!(xattr_may_change(name), Ok(()), "{name:?}");
        }
        for name in [
            c"security.capability",
            c"trusted.x",
            c"system.posix_acl_accessx",
            c"system.nfs4_acl",
        ] {
            assert_eq!(xattr_may_change(name), Err(Errno::EPERM), "{name:?}");
        }
        assert_eq!(xattr_may_change(c"USER.x"), Err(Errno::EOPNOTSUPP));
    }
}
