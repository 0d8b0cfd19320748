//! What each standard stream of a command is.
//!
//! | the caller's stdin | the command's stdin |
//! |---|---|
//! | a terminal, and stdout is one too | Stockade's own pseudo-terminal, for all streams that are terminals |
//! | a regular file or a FIFO with a name, open for reading only | that very descriptor |
//! | `/dev/null` | `/dev/null`, for reading |
//! | anything else: a pipe, open for writing too, a socket, a device, a terminal in a pipeline | a pipe that Stockade fills |
//!
//! The descriptor itself is passed where it can be, because what the command leaves unread belongs to the next
//! reader: `while read f; do stockade run -- check "$f"; done < list` must not lose the list.
//!
//! Output goes to pipes. Where the caller's stdout and stderr are one file (`2>&1`), the command gets one pipe for
//! both, so that its lines stay in order.
//!
//! An anonymous pipe is never passed on, although what the command leaves unread is lost then: a process may
//! open the other end of an anonymous pipe that it holds through `/proc/self/fd`, and Landlock has no say. A
//! script that a shell reads from a pipe could be rewritten that way.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::statfs::{FsType, fstatfs};
use nix::unistd::{isatty, pipe2};
use serde::{Deserialize, Serialize};

use super::delivery::Delivery;
use super::error::IoError;
use super::pause::Pause;
use super::terminal::Terminal;

/// `PIPEFS_MAGIC` of `linux/magic.h`.
const PIPEFS_MAGIC: libc::c_long = 0x5049_5045;

/// Where a command's input comes from.
#[derive(Debug)]
pub enum Stdin {
    /// From the caller's own stdin, as the table in this module's head says.
    Inherit,
    /// From nowhere: end of file at once.
    Null,
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
}

/// Where a command's output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    /// To the caller's stdout and stderr, while it flows.
    Stream,
    /// Into memory, for an outcome.
    Capture,
}

/// The descriptors that a command gets. The parent drops them once they are sent: an end kept open here would keep
/// the other end from ever seeing the end of the output.
#[derive(Debug)]
pub struct ChildEnds {
    /// Descriptor 0.
    pub stdin: OwnedFd,
    /// Descriptor 1.
    pub stdout: OwnedFd,
    /// Descriptor 2.
    pub stderr: OwnedFd,
    /// What `stdin` is.
    pub input: InputKind,
}

/// What a command's standard input is. Its output is always a pipe, or the same terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputKind {
    /// A pipe or a socket that Stockade made.
    Pipe,
    /// `/dev/null`.
    Null,
    /// A file of the host's, or a FIFO, with a name.
    File,
    /// Stockade's own pseudo-terminal, which the command must make its controlling one (setsid, then TIOCSCTTY).
    Terminal,
}

/// The descriptors that stay, and what is to be done with them; see [`ParentEnds::relay`].
#[derive(Debug)]
pub struct ParentEnds {
    pub(super) input: Input,
    /// The reading ends; `None` where another stream carries the output too.
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
    pub(super) terminal: Option<Terminal>,
    pub(super) mode: OutputMode,
    pub(super) own: Streams,
    pub(super) pause: Pause,
    pub(super) delivery: Delivery,
}

impl ParentEnds {
    /// What counts the output that its reader has not taken.
    pub fn delivery(&self) -> Delivery {
        self.delivery.clone()
    }

    /// Pauses the relay during a question.
    pub fn pause(&self) -> Pause {
        self.pause.clone()
    }
}

/// What the parent has to feed to the command.
#[derive(Debug)]
pub(super) enum Input {
    /// Nothing; or the command has the descriptor itself.
    Nothing,
    /// Bytes at hand.
    Bytes { bytes: Vec<u8>, to: OwnedFd },
    /// What comes from the caller's stdin.
    Pumped { from: OwnedFd, to: OwnedFd },
}

/// Copies of three descriptors of the caller's, in the places of stdin, stdout and stderr.
#[derive(Debug)]
pub struct Streams {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

impl Streams {
    /// The process's own.
    pub fn own() -> Result<Self, IoError> {
        Self::of(io::stdin().as_fd(), io::stdout().as_fd(), io::stderr().as_fd())
    }

    /// Copies of any three.
    pub fn of(stdin: BorrowedFd<'_>, stdout: BorrowedFd<'_>, stderr: BorrowedFd<'_>) -> Result<Self, IoError> {
        let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map_err(IoError::Copy);
        Ok(Self {
            stdin: copy(stdin)?,
            stdout: copy(stdout)?,
            stderr: copy(stderr)?,
        })
    }
}

/// Makes a command's streams from the process's own; see [`prepare_from`].
pub fn prepare(stdin: Stdin, mode: OutputMode) -> Result<(ChildEnds, ParentEnds), IoError> {
    prepare_from(Streams::own()?, stdin, mode)
}

/// Makes both ends of a command's streams: what the command gets, and what the parent keeps to serve them.
pub fn prepare_from(own: Streams, stdin: Stdin, mode: OutputMode) -> Result<(ChildEnds, ParentEnds), IoError> {
    let (kind, stdin, input) = match stdin {
        Stdin::Inherit => match Kind::of(own.stdin.as_fd()) {
            Kind::Terminal if mode == OutputMode::Stream && isatty(&own.stdout).unwrap_or(false) => {
                return on_terminal(own);
            }
            Kind::Passable => (InputKind::File, copy(&own.stdin)?, Input::Nothing),
            Kind::Null => (InputKind::Null, null()?, Input::Nothing),
            Kind::Terminal | Kind::Other => {
                let (ours, theirs) = pipe()?;
                (
                    InputKind::Pipe,
                    ours,
                    Input::Pumped {
                        from: copy(&own.stdin)?,
                        to: theirs,
                    },
                )
            }
        },
        Stdin::Null => (InputKind::Null, null()?, Input::Nothing),
        Stdin::Bytes(bytes) => {
            let (ours, theirs) = pipe()?;
            (InputKind::Pipe, ours, Input::Bytes { bytes, to: theirs })
        }
    };
    let (from_stdout, stdout) = pipe()?;
    let (from_stderr, stderr) = if mode == OutputMode::Stream && same_file(&own.stdout, &own.stderr) {
        (None, copy(&stdout)?)
    } else {
        let (ours, theirs) = pipe()?;
        (Some(ours), theirs)
    };
    let child = ChildEnds {
        stdin,
        stdout,
        stderr,
        input: kind,
    };
    Ok((
        child,
        ParentEnds {
            input,
            stdout: Some(from_stdout),
            stderr: from_stderr,
            terminal: None,
            mode,
            own,
            pause: Pause::default(),
            delivery: Delivery::default(),
        },
    ))
}

/// Streams on a pseudo-terminal; stderr is one too, unless the caller sent it elsewhere.
fn on_terminal(own: Streams) -> Result<(ChildEnds, ParentEnds), IoError> {
    let (terminal, slave) = Terminal::open(own.stdin.as_fd())?;
    let (from_stderr, stderr) = if isatty(&own.stderr).unwrap_or(false) {
        (None, copy(&slave)?)
    } else {
        let (ours, theirs) = pipe()?;
        (Some(ours), theirs)
    };
    let child = ChildEnds {
        stdin: copy(&slave)?,
        stdout: slave,
        stderr,
        input: InputKind::Terminal,
    };
    let parent = ParentEnds {
        input: Input::Nothing,
        stdout: None,
        stderr: from_stderr,
        terminal: Some(terminal),
        mode: OutputMode::Stream,
        own,
        pause: Pause::default(),
        delivery: Delivery::default(),
    };
    Ok((child, parent))
}

/// What the caller's stdin is, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Terminal,
    /// Open for reading only, and a file or FIFO whose name Landlock judges when it is opened again.
    Passable,
    Null,
    Other,
}

impl Kind {
    /// Everything that cannot be found out counts as `Other`, which is never passed on.
    fn of(fd: BorrowedFd<'_>) -> Self {
        if isatty(fd).unwrap_or(false) {
            return Self::Terminal;
        }
        let (Ok(file), Ok(flags)) = (fd.try_clone_to_owned().map(File::from), fcntl(fd, FcntlArg::F_GETFL)) else {
            return Self::Other;
        };
        let Ok(metadata) = file.metadata() else {
            return Self::Other;
        };
        let flags = OFlag::from_bits_retain(flags);
        let read_only = flags & OFlag::O_ACCMODE == OFlag::O_RDONLY && !flags.contains(OFlag::O_PATH);
        let kind = metadata.file_type();
        if kind.is_char_device() && metadata.rdev() == nix::sys::stat::makedev(1, 3) {
            Self::Null
        } else if read_only && (kind.is_fifo() || kind.is_file()) && has_a_name(&file, &metadata) {
            Self::Passable
        } else {
            Self::Other
        }
    }
}

/// Whether opening the file again, through `/proc/self/fd`, is something Landlock judges: the file lies in a
/// directory. A command could open an anonymous pipe or a memfd for writing, and so feed whoever reads
/// the caller's input after it.
fn has_a_name(file: &File, metadata: &std::fs::Metadata) -> bool {
    let Ok(file_system) = fstatfs(file) else { return false };
    metadata.nlink() > 0 && file_system.filesystem_type() != FsType(PIPEFS_MAGIC)
}

fn same_file(a: &OwnedFd, b: &OwnedFd) -> bool {
    let identity = |fd: &OwnedFd| nix::sys::stat::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
}

fn null() -> Result<OwnedFd, IoError> {
    Ok(File::open("/dev/null").map_err(IoError::Null)?.into())
}

/// A pipe's reading and writing end.
pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd), IoError> {
    pipe2(OFlag::O_CLOEXEC).map_err(|errno| IoError::Pipe(errno.into()))
}

fn copy(fd: &OwnedFd) -> Result<OwnedFd, IoError> {
    fd.try_clone().map_err(IoError::Copy)
}
