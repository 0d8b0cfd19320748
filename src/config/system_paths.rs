//! System paths, which are no workspace, and whether one path contains another.
//!
//! A bind mount shows a directory under a second path. So paths are compared by identity too, and
//! file systems by type.

use std::os::unix::fs::MetadataExt as _;

use nix::errno::Errno;
use nix::sys::statfs::{self, FsType};

use super::path_cache::PathCache;
use super::paths::real;
use crate::policy::AbsPath;

/// File systems of the kernel, in which a write changes the host.
pub(crate) const PSEUDO: &[(FsType, &str)] = &[
    (statfs::PROC_SUPER_MAGIC, "proc"),
    (statfs::SYSFS_MAGIC, "sysfs"),
    (statfs::CGROUP_SUPER_MAGIC, "cgroup"),
    (statfs::CGROUP2_SUPER_MAGIC, "cgroup2"),
    (statfs::DEBUGFS_MAGIC, "debugfs"),
    (statfs::TRACEFS_MAGIC, "tracefs"),
    (statfs::SECURITYFS_MAGIC, "securityfs"),
    (statfs::SELINUX_MAGIC, "selinuxfs"),
    (statfs::SMACK_MAGIC, "smackfs"),
    (statfs::BPF_FS_MAGIC, "bpf"),
    (statfs::DEVPTS_SUPER_MAGIC, "devpts"),
    (statfs::RDTGROUP_SUPER_MAGIC, "resctrl"),
    (FsType(0xde5e_81e4), "efivarfs"),
    (FsType(0x1980_0202), "mqueue"),
    (FsType(0x6265_6570), "configfs"),
    (FsType(0x6165_676c), "pstore"),
    (FsType(0x4249_4e4d), "binfmt_misc"),
    (FsType(0x6573_5543), "fusectl"),
    (FsType(0x6e73_6673), "nsfs"),
    (FsType(0x6e66_7364), "nfsd"),
    (FsType(0x6759_6969), "rpc_pipefs"),
];

/// Directories that are no workspace, although a directory below them may be.
const TOPS: &[&str] = &[
    "/usr",
    "/usr/src",
    "/usr/local",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/local/lib",
    "/usr/local/libexec",
    "/usr/local/etc",
    "/usr/local/share",
    "/usr/local/include",
    "/usr/local/src",
    "/var",
    "/var/lib",
    "/var/log",
    "/var/cache",
    "/run",
    "/home",
    "/root",
    "/opt",
    "/srv",
    "/mnt",
    "/media",
    "/nix",
    "/gnu",
];

/// Directories that are no workspace, nor is anything below them.
const SYSTEM: &[&str] = &[
    "/etc",
    "/boot",
    "/efi",
    "/dev",
    "/proc",
    "/sys",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libx32",
    "/usr/libexec",
    "/usr/share",
    "/usr/include",
    "/usr/games",
    "/usr/etc",
    "/run",
    "/var/spool",
    "/nix/store",
    "/gnu/store",
];

/// Directories below [`SYSTEM`] that may contain a workspace.
const WITHIN_SYSTEM: &[&str] = &["/dev/shm", "/run/media"];

/// Whether `inner` is `outer` or lies below it, by path or by identity.
pub(crate) fn holds(outer: &AbsPath, inner: &AbsPath) -> bool {
    PathCache::default().holds(outer, inner)
}

/// The file system of the kernel that a path is on, if any; for a missing path, that of its parent.
pub(crate) fn pseudo_file_system(path: &AbsPath) -> Option<&'static str> {
    let mut at = path.clone();
    let kind = loop {
        match statfs::statfs(at.as_path()) {
            Ok(found) => break found.filesystem_type(),
            Err(Errno::ENOENT) => at = at.parent()?,
            // What cannot be checked is not writable.
            Err(_) => return Some("a file system that cannot be told"),
        }
    };
    if let Some((_, name)) = PSEUDO
        .iter()
        .find(|(pseudo_file_system, _)| *pseudo_file_system == kind)
    {
        return Some(name);
    }
    // devtmpfs calls itself tmpfs; its number is that of /dev, unless /dev is plain disk.
    let device = |path: &str| std::fs::metadata(path).map(|found| found.dev()).ok();
    let here = std::fs::symlink_metadata(&at).map(|found| found.dev()).ok();
    let shared = AbsPath::new("/dev/shm").is_ok_and(|shm| holds(&real(&shm), path));
    (here == device("/dev") && device("/dev") != device("/") && !shared).then_some("devtmpfs")
}

/// The system path that `path` is or lies in; `None` if it may be a workspace.
pub(crate) fn system_part(path: &AbsPath, cache: &PathCache) -> Option<AbsPath> {
    let existing = |list: &'static [&'static str]| {
        let listed = list.iter().filter_map(|listed| AbsPath::new(listed).ok());
        listed.map(|listed| cache.real(&listed))
    };
    let same =
        |top: &AbsPath| *top == *path || (cache.identity(top).is_some() && cache.identity(top) == cache.identity(path));
    if let Some(top) = existing(TOPS).find(same) {
        return Some(top);
    }
    if existing(WITHIN_SYSTEM).any(|work| !same(&work) && cache.holds(&work, path)) {
        return None;
    }
    existing(SYSTEM).find(|system| cache.holds(system, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    #[test]
    fn the_kernels_switches_are_told_from_files() {
        assert_eq!(pseudo_file_system(&at("/proc/sys/kernel")), Some("proc"));
        assert_eq!(pseudo_file_system(&at("/proc/sys/kernel/core_pattern")), Some("proc"));
        assert_eq!(pseudo_file_system(&at("/sys")), Some("sysfs"));
        let dir = tempfile::tempdir().unwrap();
        let missing = AbsPath::new(dir.path().join("a/b")).unwrap();
        assert_eq!(pseudo_file_system(&missing), None);
    }

    #[test]
    fn the_system_is_no_place_to_work_and_a_project_in_it_is() {
        for system in [
            "/etc",
            "/etc/ssl/certs",
            "/usr",
            "/usr/bin",
            "/usr/share/bash-completion/completions",
            "/usr/include",
            "/usr/src",
            "/bin",
            "/var",
            "/var/spool/cron",
            "/dev",
            "/run",
        ] {
            assert!(
                system_part(&real(&at(system)), &PathCache::default()).is_some(),
                "{system}"
            );
        }
        for project in [
            "/usr/local/src/x",
            "/usr/src/app",
            "/var/www",
            "/dev/shm/x",
            "/opt/x",
            "/srv/x",
            "/tmp",
        ] {
            assert_eq!(
                system_part(&real(&at(project)), &PathCache::default()),
                None,
                "{project}"
            );
        }
    }
}
