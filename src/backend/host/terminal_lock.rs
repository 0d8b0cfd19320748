//! A lock on the terminal, so that one question or command reads it at a time, in all threads and processes.
//!
//! With two readers, the answer to one question could go to the other. The lock is on the device of the terminal. `/dev/tty`
//! would be shared by all terminals, and a confined command could lock it for good. A lock on the device ends with its
//! holder. A holder that is stopped or in the background reads nothing, so it blocks nobody.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use nix::sys::stat::{major, minor};
use nix::unistd::tcgetpgrp;

/// The right to read the terminal, until it is dropped.
#[derive(Debug)]
pub enum TerminalLock {
    /// The lock.
    Held {
        /// Released on drop.
        _lock: Flock<File>,
    },
    /// No lock: its holder is not in the foreground.
    HolderIdle,
}

/// The controlling terminal, not locked yet.
#[derive(Debug)]
pub struct ControllingTerminal(File);

impl ControllingTerminal {
    /// The device of the controlling terminal, or `/dev/tty` if it cannot be opened (another user's, or not in this mount
    /// namespace). All such terminals share that lock: questions wait longer, and never overlap.
    pub fn find() -> std::io::Result<Self> {
        device().map_or_else(|| open("/dev/tty"), Ok).map(Self)
    }

    /// The device of the controlling terminal, if it can be opened: for a lock that is held long and must not block other
    /// terminals.
    pub fn find_device() -> Option<Self> {
        device().map(Self)
    }

    /// Locks the terminal, or returns it if another process has the lock.
    pub fn try_lock(self) -> Result<Result<TerminalLock, Self>, Errno> {
        match Flock::lock(self.0, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Ok(TerminalLock::Held { _lock: lock })),
            Err((file, Errno::EWOULDBLOCK)) if is_idle(&file) => Ok(Ok(TerminalLock::HolderIdle)),
            Err((file, Errno::EWOULDBLOCK | Errno::EINTR)) => Ok(Err(Self(file))),
            Err((_, errno)) => Err(errno),
        }
    }
}

/// Whether the holder of the lock is not in the foreground; `false` if that is unknown.
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
    let position = format!("{major:02x}:{minor:02x}:{}", file.ino());
    let mut all = locks
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    all.find_map(|fields| match fields.as_slice() {
        // A waiting process has an arrow in the second field.
        [_, "FLOCK", _, _, holder, at, ..] if *at == position => holder.parse().ok(),
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

/// Indices of fields in `stat` of a process, counted from behind its name.
const GROUP: usize = 2;
const TERMINAL: usize = 4;

fn field(stat: &str, position: usize) -> Option<i64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(position)?.parse().ok()
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
        let terminal = ControllingTerminal(File::open(file.path()).unwrap());
        let terminal_lock = terminal.try_lock().unwrap().unwrap();
        assert_eq!(holder(&locks(), &metadata), Some(std::process::id()));
        drop(terminal_lock);
        assert_eq!(holder(&locks(), &metadata), None);
        let waiting = "1: -> FLOCK  ADVISORY  WRITE 7 00:18:3 0 EOF\n2: POSIX  ADVISORY  WRITE 8 00:18:3 0 EOF\n";
        assert_eq!(holder(waiting, &metadata), None);
        assert_eq!(field("7 (a) 1 (b c) S 1 70 7 34817 7 0", GROUP), Some(70));
    }

    #[test]
    fn a_turn_is_one_s_alone_until_it_is_dropped() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let terminal = || ControllingTerminal(File::open(file.path()).unwrap());
        let first = terminal().try_lock().unwrap().unwrap();
        let waiting = terminal().try_lock().unwrap().unwrap_err();
        drop(first);
        let second = waiting.try_lock().unwrap().unwrap();
        assert!(terminal().try_lock().unwrap().is_err());
        drop(second);
        assert!(terminal().try_lock().unwrap().is_ok());
    }
}
