//! The mounts of a profile, verified from inside: each is what was planned, and stays.
//!
//! bwrap resolves each path again when it mounts, so the result is compared with the survey, whoever mounted. A process on the
//! host that replaces or removes a file (as editors do) removes every mount on it in all namespaces, and the kernel notifies
//! about that. One that renames the file, or a directory above it, moves the mounts without a notice, so they are checked
//! regularly. Nothing inside can change a mount.
//!
//! Since Linux 6.8 mounts have unique ids, and the kernel tells where each is. Where it has none, or one is elsewhere, the whole
//! table of mounts is read.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::sys::statfs::{FsType, PROC_SUPER_MAGIC, TMPFS_MAGIC, fstatfs};
use nix::sys::statvfs::FsFlags;
use rustix::fs::{AtFlags, StatxFlags, statx};

use crate::backend::landlock::Beneath;
use crate::backend::namespaces::{BindAccess, Step as MountStep};
use crate::backend::{MadeBy, NamespacePlan};
use crate::confine::sys;
use crate::confine::wire::protocol::{StartFailure, Step};
use crate::policy::path::display;

/// `STATX_MNT_ID_UNIQUE`, which rustix does not name.
const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// The mounts of this namespace.
#[derive(Debug)]
pub(crate) struct Mounts {
    table: File,
    /// Mount points without which the profile is not enforced.
    points: BTreeSet<OsString>,
    /// Mount points that only cover protected names, or names of a pattern. Where one is missing, the next session gets others.
    protected: BTreeSet<OsString>,
    /// All of them by unique mount id, where the kernel has those.
    ids: Option<Vec<(u64, OsString)>>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Changed {
    /// All mounts are in place.
    Nothing,
    /// Only a cover of a protected name is missing.
    Protected,
    /// This mount point.
    Missing(OsString),
}

impl Mounts {
    /// Compares the mounts with the plan, for later checks.
    pub(crate) fn verify(namespace_plan: &NamespacePlan) -> Result<Self, StartFailure> {
        let failed = |errno| StartFailure::new(Step::Mounts, errno, "the table of mounts");
        let table = File::open("/proc/self/mountinfo").map_err(|error| failed(errno_of(&error)))?;
        let mut last: BTreeMap<&OsStr, &MountStep> = BTreeMap::new();
        for step in &namespace_plan.mounts.steps {
            match step {
                MountStep::Bind { path, .. }
                | MountStep::Copy { path, .. }
                | MountStep::MaskDirectory { path }
                | MountStep::MaskFile { path }
                | MountStep::Proc { path }
                | MountStep::Dev { path }
                | MountStep::Tmp { path, .. } => {
                    last.insert(path, step);
                }
                MountStep::Symlink { .. } | MountStep::Directory { .. } | MountStep::Freeze { .. } => {}
            }
        }
        let mut ids = Vec::new();
        for (path, step) in &last {
            let mount = compare(path, step, &namespace_plan.made_by)?;
            ids.push(mount_id(&mount).map(|id| (id, (*path).to_owned())));
        }
        for step in &namespace_plan.mounts.steps {
            match step {
                MountStep::Freeze { path } => drop(compare(path, step, &namespace_plan.made_by)?),
                MountStep::Bind { .. }
                | MountStep::Copy { .. }
                | MountStep::MaskDirectory { .. }
                | MountStep::MaskFile { .. }
                | MountStep::Symlink { .. }
                | MountStep::Directory { .. }
                | MountStep::Proc { .. }
                | MountStep::Dev { .. }
                | MountStep::Tmp { .. } => {}
            }
        }
        // A path that is not mounted cannot be reached and needs no cover.
        let covered = namespace_plan
            .protected
            .iter()
            .chain(&namespace_plan.matched)
            .filter(|path| last.contains_key(path.as_os_str()));
        let protected: BTreeSet<OsString> = covered.cloned().collect();
        let mut mounts = Self {
            table,
            points: last
                .into_keys()
                .map(OsStr::to_owned)
                .filter(|path| !protected.contains(path))
                .collect(),
            protected,
            ids: ids.into_iter().collect(),
        };
        match mounts.changed().map_err(failed)? {
            Changed::Nothing => Ok(mounts),
            Changed::Protected => Err(failed(Errno::ESTALE)),
            Changed::Missing(path) => Err(StartFailure::new(Step::Mounts, Errno::ESTALE, display(&path))),
        }
    }

    /// Checks that all mounts are in place.
    pub(crate) fn changed(&mut self) -> Result<Changed, Errno> {
        if self.all_are_present() {
            return Ok(Changed::Nothing);
        }
        self.read()
    }

    /// Whether the ids prove that all are in place.
    fn all_are_present(&self) -> bool {
        let is_present =
            |(id, path): &(u64, OsString)| sys::mount_point(*id).is_ok_and(|point| point == path.as_bytes());
        self.ids.as_ref().is_some_and(|all| all.iter().all(is_present))
    }

    /// Checks the table of mounts.
    fn read(&mut self) -> Result<Changed, Errno> {
        let mut text = Vec::new();
        self.table
            .rewind()
            .and_then(|()| self.table.read_to_end(&mut text))
            .map_err(|error| errno_of(&error))?;
        let there: BTreeSet<OsString> = text.split(|byte| *byte == b'\n').filter_map(mount_point).collect();
        if let Some(missing) = self.points.iter().find(|point| !there.contains(*point)) {
            return Ok(Changed::Missing(missing.clone()));
        }
        if self.protected.iter().all(|point| there.contains(point)) {
            Ok(Changed::Nothing)
        } else {
            Ok(Changed::Protected)
        }
    }
}

impl AsFd for Mounts {
    /// Has an urgent event when a mount comes or goes.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.table.as_fd()
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

/// The mount point of a line of `mountinfo`: its fifth field, with blanks and the like as octal escapes.
fn mount_point(line: &[u8]) -> Option<OsString> {
    let field = line.split(|byte| *byte == b' ').nth(4)?;
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let octal = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() {
            after.get(3..).unwrap_or_default()
        } else {
            after
        };
    }
    Some(OsString::from_vec(bytes))
}

/// The unique id of a mount; `None` before Linux 6.8.
fn mount_id(mount: &OwnedFd) -> Option<u64> {
    let source = statx(mount, c"", AtFlags::EMPTY_PATH, MNT_ID_UNIQUE).ok()?;
    StatxFlags::from_bits_retain(source.stx_mask)
        .contains(MNT_ID_UNIQUE)
        .then_some(source.stx_mnt_id)
}

/// Opens the mount at a path, if it is as planned.
fn compare(path: &OsStr, step: &MountStep, made_by: &MadeBy) -> Result<OwnedFd, StartFailure> {
    let at = |errno| StartFailure::new(Step::Mounts, errno, display(path));
    let fd = open(
        path,
        OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
        Mode::empty(),
    )
    .map_err(at)?;
    let stat = fstat(&fd).map_err(at)?;
    let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
    let system = fstatfs(&fd).map_err(at)?;
    let is = |expected: FsType| system.filesystem_type() == expected;
    let as_planned = match step {
        MountStep::Bind {
            device, inode, beneath, ..
        }
        | MountStep::Copy {
            device, inode, beneath, ..
        } => {
            let is_directory = kind == SFlag::S_IFDIR;
            stat.st_dev == *device && stat.st_ino == *inode && is_directory == (*beneath == Beneath::Directory)
        }
        MountStep::MaskDirectory { .. } => is(TMPFS_MAGIC) && Mode::from_bits_truncate(stat.st_mode).is_empty(),
        MountStep::MaskFile { .. } => kind == SFlag::S_IFCHR,
        MountStep::Proc { .. } => is(PROC_SUPER_MAGIC),
        MountStep::Dev { .. } | MountStep::Tmp { .. } => is(TMPFS_MAGIC),
        MountStep::Symlink { .. } | MountStep::Directory { .. } | MountStep::Freeze { .. } => true,
    };
    let missing = flags(step, made_by).difference(system.flags());
    if !missing.is_empty() {
        let what = format!("{} is mounted without {missing:?}", display(path));
        return Err(StartFailure::new(Step::SelfTest, Errno::EPERM, what));
    }
    if as_planned {
        return Ok(fd);
    }
    let what = format!("{} is not what it was when the config was read", display(path));
    Err(StartFailure::new(Step::Mounts, Errno::ESTALE, what))
}

/// The flags that the mount of a step must have.
fn flags(step: &MountStep, made_by: &MadeBy) -> FsFlags {
    let safe = FsFlags::ST_NOSUID | FsFlags::ST_NODEV;
    match step {
        MountStep::Bind { access, beneath, .. } => match access {
            BindAccess::ReadOnly => safe | FsFlags::ST_RDONLY,
            BindAccess::Writable => safe,
            BindAccess::Device => match (made_by, beneath) {
                (MadeBy::Stockade, Beneath::File) => FsFlags::ST_NOSUID | FsFlags::ST_RDONLY,
                (MadeBy::Stockade, Beneath::Directory) | (MadeBy::Bwrap(_), _) => FsFlags::ST_NOSUID,
            },
        },
        MountStep::MaskDirectory { .. } | MountStep::MaskFile { .. } | MountStep::Freeze { .. } => {
            safe | FsFlags::ST_RDONLY
        }
        MountStep::Proc { .. } => safe | FsFlags::ST_NOEXEC,
        MountStep::Copy { .. } | MountStep::Dev { .. } | MountStep::Tmp { .. } => safe,
        MountStep::Symlink { .. } | MountStep::Directory { .. } => FsFlags::empty(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_mount_point_of_any_bytes_is_read() {
        let line = b"36 35 98:0 /a /w/a\\040b\\134c\\012\\xff - ext4 /dev/root rw";
        assert_eq!(mount_point(line).unwrap().as_bytes(), b"/w/a b\\c\n\\xff");
        let line = b"36 35 98:0 /a /w/\xff rw - ext4 /dev/root rw";
        assert_eq!(mount_point(line).unwrap().as_bytes(), b"/w/\xff");
        assert_eq!(mount_point(b"36 35"), None);
    }

    fn mounts_at(points: &[&str], ids: Option<Vec<(u64, OsString)>>) -> Mounts {
        Mounts {
            table: File::open("/proc/self/mountinfo").unwrap(),
            points: points.iter().map(OsString::from).collect(),
            protected: BTreeSet::new(),
            ids,
        }
    }

    /// `None` before Linux 6.8, and where a filter refuses the call.
    fn id(path: &str) -> Option<u64> {
        let mount = open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).unwrap();
        let id = mount_id(&mount);
        match sys::mount_point(u64::MAX) {
            Err(Errno::ENOENT) => Some(id.unwrap()),
            source => {
                assert!(matches!(source, Err(Errno::ENOSYS | Errno::EPERM)), "{source:?}");
                None
            }
        }
    }

    #[test]
    fn a_mount_is_found_by_its_id() {
        for path in ["/", "/proc"] {
            if let Some(id) = id(path) {
                assert_eq!(sys::mount_point(id).unwrap(), path.as_bytes());
            }
        }
    }

    #[test]
    fn without_ids_the_table_shows_what_is_missing() {
        assert_eq!(mounts_at(&["/", "/proc"], None).changed(), Ok(Changed::Nothing));
        let missing = Changed::Missing("/proc/none".into());
        assert_eq!(mounts_at(&["/", "/proc/none"], None).changed(), Ok(missing));
    }

    #[test]
    fn a_mount_at_another_path_than_its_id_had_is_missing() {
        let mounts = [("/", "/"), ("/proc", "/proc/none")];
        let ids: Option<Vec<_>> = mounts
            .map(|(path, planned)| Some((id(path)?, planned.into())))
            .into_iter()
            .collect();
        let missing = Changed::Missing("/proc/none".into());
        assert_eq!(mounts_at(&["/", "/proc/none"], ids).changed(), Ok(missing));
    }

    #[test]
    fn an_unknown_id_falls_back_to_the_table() {
        let ids = vec![(u64::MAX, "/proc".into())];
        assert_eq!(mounts_at(&["/proc"], Some(ids)).changed(), Ok(Changed::Nothing));
    }
}
