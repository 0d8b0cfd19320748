//! When a directory last changed, and which file systems can be believed about it.

use nix::sys::stat::FileStat;
use nix::sys::statfs::{self, FsType};

/// When a directory last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct Stamp {
    pub(crate) changed: (i64, i64),
    pub(crate) modified: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(stat: &FileStat) -> Self {
        Self {
            changed: (stat.st_ctime, stat.st_ctime_nsec),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
        }
    }
}

/// What the walk makes of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// Stamps changes by the kernel's clock, finely.
    Stamped,
    /// Anything else that holds files.
    Other,
    /// Made by the kernel: nobody can put a name into it.
    Kernel,
}

/// zfs, bcachefs and f2fs are absent from the list of stamped ones on purpose: untested.
pub(crate) fn classify(kind: FsType) -> FileSystem {
    const KERNEL: [FsType; 8] = [
        statfs::PROC_SUPER_MAGIC,
        statfs::SYSFS_MAGIC,
        statfs::CGROUP_SUPER_MAGIC,
        statfs::CGROUP2_SUPER_MAGIC,
        statfs::DEVPTS_SUPER_MAGIC,
        statfs::DEBUGFS_MAGIC,
        statfs::TRACEFS_MAGIC,
        statfs::SECURITYFS_MAGIC,
    ];
    const STAMPED: [FsType; 5] = [
        statfs::EXT4_SUPER_MAGIC,
        statfs::XFS_SUPER_MAGIC,
        statfs::BTRFS_SUPER_MAGIC,
        statfs::TMPFS_MAGIC,
        statfs::OVERLAYFS_SUPER_MAGIC,
    ];
    if KERNEL.contains(&kind) {
        FileSystem::Kernel
    } else if STAMPED.contains(&kind) {
        FileSystem::Stamped
    } else {
        FileSystem::Other
    }
}
