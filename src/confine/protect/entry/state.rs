//! What is at a protected path: enough to tell whether it changed, and to put it back.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, fchmod, fchmodat, fstat, fstatat};

use super::nofollow;

/// Longest protected file that can be restored, in bytes.
pub(crate) const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Bytes of protected files in all.
pub(crate) const MAX_TOTAL: u64 = 64 * 1024 * 1024;

/// An entry as it is or was.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum State {
    /// A regular file. Modification time and number of links are not compared.
    File {
        mode: u32,
        modified: Modified,
        #[serde(skip)]
        links: LinkCount,
        content: Vec<u8>,
    },
    /// A symlink.
    Symlink { target: Vec<u8> },
    /// A protected directory; its entries have states of their own.
    Directory { mode: u32 },
    /// A FIFO, socket or device.
    Special { mode: u32, device: u64 },
    /// An entry that is not protected: whatever becomes of it stays.
    Ignored,
}

impl State {
    /// How many hard links it has, if it is a file.
    pub(crate) fn links(&self) -> LinkCount {
        match self {
            Self::File { links, .. } => *links,
            Self::Symlink { .. } | Self::Directory { .. } | Self::Special { .. } | Self::Ignored => {
                LinkCount::default()
            }
        }
    }

    /// The same file with other content; `None` if it is no file.
    pub(crate) fn with_content(&self, content: Vec<u8>) -> Option<Self> {
        match self {
            Self::File { mode, modified, .. } => Some(Self::File {
                mode: *mode,
                modified: *modified,
                links: LinkCount::default(),
                content,
            }),
            Self::Symlink { .. } | Self::Directory { .. } | Self::Special { .. } | Self::Ignored => None,
        }
    }

    /// Bytes of content.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::File { content, .. } => content.len() as u64,
            Self::Symlink { .. } | Self::Directory { .. } | Self::Special { .. } | Self::Ignored => 0,
        }
    }
}

/// A modification time; equal to every other, so that states compare by what they hold.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(crate) struct Modified {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: i64,
}

impl PartialEq for Modified {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Modified {}

/// How many hard links a file has, 0 where that is not known; equal to every other, like a [`Modified`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LinkCount(pub(crate) u64);

impl PartialEq for LinkCount {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for LinkCount {}

impl LinkCount {
    /// Whether a hard link was added since.
    pub(crate) fn exceeds(self, earlier: Self) -> bool {
        self.0 > earlier.0.max(1)
    }
}

/// What is at the path of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Absent,
    /// This.
    Present(State),
    /// A regular file longer than the limit that was given; its mode and length.
    TooLong { length: u64 },
    /// Something that cannot be read.
    Unreadable(Errno),
}

impl Found {
    /// Bytes of content that were read.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Present(state) => state.length(),
            Self::Absent | Self::TooLong { .. } | Self::Unreadable(_) => 0,
        }
    }
}

/// Reads the entry `path` of a root, also where a directory above it is closed; see [`read_entry`].
pub(crate) fn observe(root: impl AsFd, path: &[u8], limit: u64) -> Found {
    let (directory, name) = nofollow::split(path);
    let root = root.as_fd();
    let observed = nofollow::as_owner(root, directory, None, || {
        match read_entry(nofollow::open_path(root, directory)?, name, limit) {
            Found::Unreadable(error @ (Errno::EACCES | Errno::EPERM)) => Err(error),
            observed => Ok(observed),
        }
    });
    match observed {
        Ok(observed) => observed,
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Found::Absent,
        Err(error) => Found::Unreadable(error),
    }
}

/// Looks at the entry `name` of the open directory, reading at most `limit` bytes of a file.
///
/// Never follows a symlink and never waits for the other end of a FIFO.
fn read_entry(directory: impl AsFd, name: &[u8], limit: u64) -> Found {
    match try_read_entry(directory, name, limit) {
        Ok(observed) => observed,
        Err(Errno::ENOENT | Errno::ENOTDIR) => Found::Absent,
        Err(error) => Found::Unreadable(error),
    }
}

fn try_read_entry(directory: impl AsFd, name: &[u8], limit: u64) -> nix::Result<Found> {
    let directory = directory.as_fd();
    let stat = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    let mode = nofollow::permissions(&stat);
    Ok(match nofollow::kind(&stat) {
        libc::S_IFREG => return read_file(directory, name, &stat, limit),
        libc::S_IFLNK => Found::Present(State::Symlink {
            target: readlinkat(directory, name)?.into_vec(),
        }),
        libc::S_IFDIR => Found::Present(State::Directory { mode }),
        _ => Found::Present(State::Special {
            mode: stat.st_mode,
            device: stat.st_rdev,
        }),
    })
}

fn read_file(directory: BorrowedFd<'_>, name: &[u8], observed: &FileStat, limit: u64) -> nix::Result<Found> {
    let mut file = File::from(open(directory, name, observed)?);
    let stat = fstat(&file)?;
    if nofollow::kind(&stat) != libc::S_IFREG {
        return Err(Errno::EAGAIN);
    }
    let length = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    if length > limit {
        return Ok(Found::TooLong { length });
    }
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    let read = Read::by_ref(&mut file)
        .take(limit.saturating_add(1))
        .read_to_end(&mut content);
    read.map_err(nofollow::errno)?;
    let length = content.len() as u64;
    if length > limit {
        return Ok(Found::TooLong { length });
    }
    Ok(Found::Present(State::File {
        mode: nofollow::permissions(&stat),
        modified: Modified {
            seconds: stat.st_mtime,
            nanoseconds: stat.st_mtime_nsec,
        },
        links: LinkCount(stat.st_nlink),
        content,
    }))
}

/// Opens a file for reading; one of our own that its owner may not read gets that right for the moment.
///
/// Nothing is hidden by a mode, neither what a command wrote nor what is to be put back.
fn open(directory: BorrowedFd<'_>, name: &[u8], observed: &FileStat) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let mode = Mode::from_bits_truncate(nofollow::permissions(observed));
    let first = match openat(directory, name, flags, Mode::empty()) {
        Err(error @ Errno::EACCES) if !mode.contains(Mode::S_IRUSR) => error,
        opened => return opened,
    };
    let set = |mode| fchmodat(directory, name, mode, FchmodatFlags::NoFollowSymlink);
    set(mode | Mode::S_IRUSR).map_err(|_| first)?;
    let opened = openat(directory, name, flags, Mode::empty());
    match &opened {
        Ok(file) if nofollow::Identity::of(&fstat(file)?) == nofollow::Identity::of(observed) => fchmod(file, mode)?,
        // Another file has come there; the caller looks again.
        Ok(_) => return Err(Errno::EAGAIN),
        Err(_) => set(mode)?,
    }
    opened
}
