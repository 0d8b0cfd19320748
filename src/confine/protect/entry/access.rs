//! Who may use a protected entry besides what its mode says: its group, and its access lists (acl(5)).
//!
//! A command may give neither. But what it makes in a directory with a default list or the set-gid bit gets them, and it may
//! move that onto a protected name, with the same content and mode. What stays of what it makes lets others do no more than
//! the umask permits.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, fchmodat, fstat, fstatat};
use nix::unistd::{Gid, fchownat, getegid};

use super::super::error::ProtectError;
use super::super::roots::{Root, absolute};
use super::nofollow::{self, errno, split};
use super::state::State;

/// Who may use the file, and what new files in the directory get.
const LISTS: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];

/// What the entries of an access list are for: the owner, the group, the most that all but the owner get, and everybody else.
const OWNER_ENTRY: u16 = 1;
const GROUP_ENTRY: u16 = 4;
const MASK_ENTRY: u16 = 16;
const OTHER_ENTRY: u16 = 32;
/// Who may write besides the owner.
const WRITE: u32 = 0o022;
/// The set-user-id and set-group-id bits.
const SET_ID: u32 = 0o6000;

/// The group of a file or directory, and its access lists, where it has some.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Access {
    group: u32,
    lists: [Option<Vec<u8>>; 2],
}

/// A file or directory, opened through its parent.
struct Entry {
    parent: OwnedFd,
    stat: FileStat,
    /// A path below `/proc/self/fd` in which no component is a link.
    proc_path: PathBuf,
}

impl Access {
    /// Reads the access of the entry `path`; `None` where there is no file or directory.
    pub(crate) fn of(root: &Root, path: &[u8]) -> Result<Option<Self>, ProtectError> {
        let (directory, _) = split(path);
        let access = nofollow::as_owner(&root.fd, directory, None, || {
            let entry = open_entry(root, path)?;
            entry.map(|entry| Self::read(&entry)).transpose()
        });
        access.map_err(|error| ProtectError::io("look at the access lists of", absolute(root, path), error))
    }

    fn read(entry: &Entry) -> nix::Result<Self> {
        let [access, default] = LISTS.map(|list| read(&entry.proc_path, list));
        Ok(Self {
            group: entry.stat.st_gid,
            lists: [access?, default?],
        })
    }

    /// Whether both are equal apart from what the mode repeats.
    fn is_like(&self, other: &Self) -> bool {
        let [own, own_default] = &self.lists;
        let [list, default] = &other.lists;
        let named = |list: &Option<Vec<u8>>| list.as_deref().map(without_mode);
        self.group == other.group && own_default == default && (own == list || named(own) == named(list))
    }

    /// Restores group and lists of the entry `path`, and returns whether they differed. The mode stays.
    pub(crate) fn restore(&self, root: &Root, path: &[u8]) -> Result<bool, ProtectError> {
        let (directory, name) = split(path);
        let restored = nofollow::as_owner(&root.fd, directory, None, || {
            let Some(entry) = open_entry(root, path)? else {
                return Ok(false);
            };
            let now = Self::read(&entry)?;
            if now.is_like(self) {
                return Ok(false);
            }
            if now.group != self.group {
                let group = Some(Gid::from_raw(self.group));
                fchownat(&entry.parent, name, None, group, AtFlags::AT_SYMLINK_NOFOLLOW)?;
            }
            for ((list, had), has) in LISTS.into_iter().zip(&self.lists).zip(&now.lists) {
                let done = match had {
                    _ if had == has => continue,
                    Some(had) => xattr::set(&entry.proc_path, list, had),
                    None => xattr::remove(&entry.proc_path, list),
                };
                done.map_err(errno)?;
            }
            // A list has a say in the mode.
            let mode = Mode::from_bits_truncate(nofollow::permissions(&entry.stat));
            fchmodat(&entry.parent, name, mode, FchmodatFlags::NoFollowSymlink)?;
            Ok(true)
        });
        restored.map_err(|error| ProtectError::io("restore the group and access lists of", absolute(root, path), error))
    }
}

/// The mode that a tracked entry gets which was there, where it has another. With the same content, and on a directory, that is
/// the one it had. What git puts there for a commit has what the umask leaves of all rights, and nobody gets more than that or
/// what there was. The owner loses nothing.
pub(crate) fn mode_of_tracked(before: &State, now: &State, access: Option<&Access>) -> Option<u32> {
    let (before, mode) = match (before, now) {
        (
            State::File {
                mode: before, content, ..
            },
            State::File { mode, content: now, .. },
        ) if content != now => (before, mode),
        (State::File { mode: before, .. }, State::File { mode, .. })
        | (State::Directory { mode: before }, State::Directory { mode }) => {
            return (mode != before).then_some(*before);
        }
        _ => return None,
    };
    let all = if mode & 0o100 == 0 { 0o666 } else { 0o777 };
    let mut fresh = all & !umask();
    // Where there is a list, the rights of the group are the most that it gives.
    if access.is_some_and(|access| access.lists[0].is_some()) {
        fresh &= !0o070;
    }
    let wanted = (mode & (before | fresh)) | (before & 0o600);
    (wanted != *mode).then_some(wanted)
}

/// Takes from an entry that a command made what lets others in: lists, a group that is neither ours nor that of the directory,
/// set-id bits, and the right to write that the umask takes. Whether it had any of that.
pub(crate) fn restrict(root: &Root, path: &[u8]) -> Result<bool, ProtectError> {
    let (directory, name) = split(path);
    let restricted = nofollow::as_owner(&root.fd, directory, None, || {
        let Some(entry) = open_entry(root, path)? else {
            return Ok(false);
        };
        let now = Access::read(&entry)?;
        let mode = nofollow::permissions(&entry.stat);
        let mut wanted = mode & !(WRITE & umask());
        // A directory hands its group on.
        wanted &= if nofollow::kind(&entry.stat) == libc::S_IFDIR {
            !0o4000
        } else {
            !SET_ID
        };
        if let Some(list) = &now.lists[0] {
            let group = entries(list)
                .find(|(tag, _)| *tag == GROUP_ENTRY)
                .map_or(0, |(_, rights)| u32::from(rights));
            wanted &= !0o070 | (group & 7) << 3;
        }
        let above = fstat(&entry.parent)?.st_gid;
        let is_foreign = now.group != getegid().as_raw() && now.group != above;
        if wanted == mode && !is_foreign && now.lists == [None, None] {
            return Ok(false);
        }
        let done = remove_access(&entry, name, &now, is_foreign, wanted);
        match done {
            // Not ours, or on a file system that keeps no modes: everything there is open to the same people.
            Err(Errno::EPERM | Errno::EOPNOTSUPP) => Ok(false),
            Err(error) => Err(error),
            Ok(()) => {
                let after = open_entry(root, path)?;
                Ok(after.is_none_or(|after| {
                    nofollow::permissions(&after.stat) != mode
                        || after.stat.st_gid != now.group
                        || now.lists != [None, None]
                }))
            }
        }
    });
    restricted.map_err(|error| ProtectError::io("restrict who may use", absolute(root, path), error))
}

fn remove_access(entry: &Entry, name: &[u8], now: &Access, is_foreign: bool, mode: u32) -> nix::Result<()> {
    // The mode first: without a list, the group would have what is the most that the list gives.
    let set = || {
        fchmodat(
            &entry.parent,
            name,
            Mode::from_bits_truncate(mode),
            FchmodatFlags::NoFollowSymlink,
        )
    };
    set()?;
    if is_foreign {
        fchownat(&entry.parent, name, None, Some(getegid()), AtFlags::AT_SYMLINK_NOFOLLOW)?;
    }
    for (list, _) in LISTS.into_iter().zip(&now.lists).filter(|(_, list)| list.is_some()) {
        xattr::remove(&entry.proc_path, list).map_err(errno)?;
    }
    // Who gives a file to a group takes its set-id bits, and a list has a say in the mode.
    set()
}

/// What this process takes from the rights of new files.
fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        // Without the line, others may write nothing.
        mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
            .unwrap_or(WRITE)
    })
}

/// The entries of a list: what each is for, and what it permits.
fn entries(list: &[u8]) -> impl Iterator<Item = (u16, u16)> + '_ {
    let all = list.get(4..).unwrap_or_default().chunks_exact(8);
    all.map(|entry| {
        (
            u16::from_le_bytes([entry[0], entry[1]]),
            u16::from_le_bytes([entry[2], entry[3]]),
        )
    })
}

/// A list without the entries that the mode repeats.
fn without_mode(list: &[u8]) -> Vec<u8> {
    let mut named = list.to_vec();
    for entry in named.get_mut(4..).unwrap_or_default().chunks_exact_mut(8) {
        if matches!(
            u16::from_le_bytes([entry[0], entry[1]]),
            OWNER_ENTRY | MASK_ENTRY | OTHER_ENTRY
        ) {
            entry[2..4].fill(0);
        }
    }
    named
}

fn open_entry(root: &Root, path: &[u8]) -> nix::Result<Option<Entry>> {
    let (directory, name) = split(path);
    let entry = nofollow::open_path(&root.fd, directory)
        .and_then(|parent| Ok((fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?, parent)));
    match entry {
        Ok((stat, parent)) if matches!(nofollow::kind(&stat), libc::S_IFREG | libc::S_IFDIR) => Ok(Some(Entry {
            proc_path: Path::new(&format!("/proc/self/fd/{}", parent.as_raw_fd())).join(OsStr::from_bytes(name)),
            parent,
            stat,
        })),
        Ok(_) | Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(proc_path: &Path, list: &str) -> nix::Result<Option<Vec<u8>>> {
    match xattr::get(proc_path, list) {
        Ok(entry) => Ok(entry),
        Err(error) => match errno(error) {
            // The file system has none.
            Errno::EOPNOTSUPP => Ok(None),
            error => Err(error),
        },
    }
}
