//! One reader at a time on one terminal: a question, or a command that the keys go to, of whatever thread or process.
//!
//! Two at once would be more than unsightly: the answer to the one could be taken by the other. The lock is
//! on the terminal's own device. It is not on `/dev/tty`, which all terminals share, so that a question on one would
//! hold up those on the others, and which a confined command may open, and lock for good. A lock on the device goes
//! with whoever holds it, and leaves nothing behind. Whoever holds it and is no longer in the foreground reads nothing, be it
//! stopped or moved to the background, and holds up nobody.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::sys::stat::{major, minor};
use nix::unistd::tcgetpgrp;

/// The right to ask and to read, until it is dropped.
#[derive(Debug)]
pub enum Turn {
    /// The lock.
    Held {
        /// It goes when this is dropped.
        _lock: Flock<File>,
    },
    /// The lock is that of one who cannot read now.
    Beside,
}

/// The controlling terminal, as a thing to be locked.
#[derive(Debug)]
pub struct Queue(File);

impl Queue {
    /// The queue of the controlling terminal. Where its device is not to be had (another user's, or not in this
    /// mount namespace), it is that of all such terminals: questions then wait longer, and never overlap.
    pub fn of_terminal() -> std::io::Result<Self> {
        device().map_or_else(|| open("/dev/tty"), Ok).map(Self)
    }

    /// The queue of the controlling terminal's own device, where that is to be had: for whoever keeps its turn long,
    /// and must hold up nobody at another terminal.
    pub fn of_own_device() -> Option<Self> {
        device().map(Self)
    }

    /// The turn, or the queue again if it is another's.
    pub fn try_take(self) -> Result<Result<Turn, Self>, Errno> {
        match Flock::lock(self.0, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Ok(Turn::Held { _lock: lock })),
            Err((file, Errno::EWOULDBLOCK)) if is_idle(&file) => Ok(Ok(Turn::Beside)),
            Err((file, Errno::EWOULDBLOCK | Errno::EINTR)) => Ok(Err(Self(file))),
            Err((_, errno)) => Err(errno),
        }
    }
}

/// Whether the lock on this terminal is held by one that is not in its foreground. Where that cannot be told, it is taken for
/// one that reads.
fn is_idle(terminal: &File) -> bool {
    let group = || {
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        let holder = holder(&locks, &terminal.metadata().ok()?)?;
        let stat = std::fs::read(format!("/proc/{holder}/stat")).ok()?;
        field(&String::from_utf8_lossy(&stat), GROUP)
    };
    match (group(), tcgetpgrp(terminal)) {
        (Some(group), Ok(foreground)) => group != i64::from(foreground.as_raw()),
        (None, _) | (_, Err(_)) => false,
    }
}

/// Who holds the lock on a file, from `/proc/locks`.
fn holder(locks: &str, file: &Metadata) -> Option<u32> {
    let (major, minor) = (major(file.dev()), minor(file.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", file.ino());
    let mut all = locks
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    all.find_map(|words| match words.as_slice() {
        // Whoever waits has an arrow in its second place.
        [_, "FLOCK", _, _, holder, at, ..] if *at == place => holder.parse().ok(),
        _ => None,
    })
}

fn open(path: &str) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOCTTY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(path)
}

fn device() -> Option<File> {
    let stat = std::fs::read("/proc/self/stat").ok()?;
    let number = controlling(&String::from_utf8_lossy(&stat))?;
    let file = open(&name(number)?).ok()?;
    let metadata = file.metadata().ok()?;
    (metadata.file_type().is_char_device() && metadata.rdev() == number).then_some(file)
}

/// The device number of the controlling terminal, from a process's `stat`.
fn controlling(stat: &str) -> Option<u64> {
    // The name of the program may hold blanks and brackets; behind the last one are numbers.
    u64::try_from(field(stat, TERMINAL)?).ok().filter(|number| *number != 0)
}

/// Places of fields in a process's `stat`, counted from behind its name.
const GROUP: usize = 2;
const TERMINAL: usize = 4;

fn field(stat: &str, place: usize) -> Option<i64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(place)?.parse().ok()
}

fn name(number: u64) -> Option<String> {
    let (major, minor) = (major(number), minor(number));
    match major {
        4 if minor < 64 => Some(format!("/dev/tty{minor}")),
        4 => Some(format!("/dev/ttyS{}", minor - 64)),
        136..=143 => Some(format!("/dev/pts/{}", (major - 136) * 256 + minor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_is_found_whatever_the_program_is_called() {
        assert_eq!(controlling("7 (a) 1 (b c) S 1 7 7 34817 7 0"), Some(34817));
        assert_eq!(controlling("7 (cat) S 1 7 7 0 -1 0"), None);
        for bad in ["", "7 cat S", "7 (cat) S 1", "7 (cat) S 1 7 7 x 7"] {
            assert_eq!(controlling(bad), None, "{bad:?}");
        }
        assert_eq!(name(34817).as_deref(), Some("/dev/pts/1"));
        assert_eq!(name(0x402).as_deref(), Some("/dev/tty2"));
        assert_eq!(name(0x440).as_deref(), Some("/dev/ttyS0"));
        assert_eq!(name(0x501), None);
    }

    #[test]
    fn whoever_holds_a_lock_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let metadata = file.as_file().metadata().unwrap();
        let locks = || std::fs::read_to_string("/proc/locks").unwrap();
        assert_eq!(holder(&locks(), &metadata), None);
        let queue = Queue(File::open(file.path()).unwrap());
        let turn = queue.try_take().unwrap().unwrap();
        assert_eq!(holder(&locks(), &metadata), Some(std::process::id()));
        drop(turn);
        assert_eq!(holder(&locks(), &metadata), None);
        let waiting = "1: -> FLOCK  ADVISORY  WRITE 7 00:18:3 0 EOF\n2: POSIX  ADVISORY  WRITE 8 00:18:3 0 EOF\n";
        assert_eq!(holder(waiting, &metadata), None);
        assert_eq!(field("7 (a) 1 (b c) S 1 70 7 34817 7 0", GROUP), Some(70));
    }

    #[test]
    fn a_turn_is_one_s_alone_until_it_is_dropped() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let queue = || Queue(File::open(file.path()).unwrap());
        let first = queue().try_take().unwrap().unwrap();
        let waiting = queue().try_take().unwrap().unwrap_err();
        drop(first);
        let second = waiting.try_take().unwrap().unwrap();
        assert!(queue().try_take().unwrap().is_err());
        drop(second);
        assert!(queue().try_take().unwrap().is_ok());
    }
}
