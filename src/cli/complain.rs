//! What failed, why, and what to do: the form of every error a person sees.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::exit::Exit;
use super::readers;

/// An error at the edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Complaint {
    what: String,
    remedies: Vec<String>,
    exit: Exit,
    output: Output,
}

/// Whether standard output takes what is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Open,
    Broken,
}

impl Complaint {
    /// Stockade could not: exit code 125.
    pub(super) fn failed(what: impl std::fmt::Display) -> Self {
        Self {
            what: what.to_string(),
            remedies: Vec::new(),
            exit: Exit::Failed,
            output: Output::Open,
        }
    }

    /// It ends with this row of the table.
    pub(super) fn ending(what: impl std::fmt::Display, exit: Exit) -> Self {
        Self {
            exit,
            ..Self::failed(what)
        }
    }

    /// Adds what the person can do.
    #[must_use]
    pub(super) fn remedy(mut self, remedy: impl std::fmt::Display) -> Self {
        self.remedies.push(remedy.to_string());
        self
    }

    /// Whether standard output can take no word about it: one would stand in the middle of another.
    pub(super) fn is_of_output(&self) -> bool {
        self.output == Output::Broken
    }

    /// Prints it to standard error.
    pub(super) fn tell(self) -> Exit {
        let (text, exit) = self.into_parts();
        say(&format!("stockade: {text}\n"));
        exit
    }

    /// Prints it to standard output, for a program.
    pub(super) fn print_object(self) -> Result<Exit, Self> {
        let Self {
            what, remedies, exit, ..
        } = self;
        let object = serde_json::json!({"ok": false, "error": what.trim_end(), "remedies": remedies});
        print(&format!("{object}\n"))?;
        Ok(exit)
    }

    /// What a person reads, and the exit code.
    pub(super) fn into_parts(self) -> (String, Exit) {
        let mut text = self.what.trim_end().to_owned();
        for remedy in &self.remedies {
            text.push_str("\n  → ");
            text.push_str(remedy);
        }
        (text, self.exit)
    }
}

/// Writes to standard error; a closed one is nobody's loss.
pub(super) fn say(text: &str) {
    let whole = std::io::stderr().lock();
    let _closed = write_all(std::io::stderr().as_fd(), text.as_bytes());
    drop(whole);
}

/// Writes to standard output.
pub(super) fn print(text: &str) -> Result<(), Complaint> {
    print_bytes(text.as_bytes())
}

/// Writes bytes of any kind to standard output.
pub(super) fn print_bytes(bytes: &[u8]) -> Result<(), Complaint> {
    match write_all(std::io::stdout().as_fd(), bytes) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Complaint {
            output: Output::Broken,
            ..Complaint::failed(format!("failed to write the output: {error}"))
        }),
    }
}

/// Writes all of it. One who does not read is waited for until a moment after a stop; then it is as if he had closed it.
fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    /// What a pipe that takes anything takes at once; see `pipe(7)`.
    const PIECE: usize = 4096;
    let begun = Instant::now();
    while !bytes.is_empty() {
        let mut fds = [PollFd::new(fd, PollFlags::POLLOUT)];
        match poll(&mut fds, PollTimeout::from(100_u8)) {
            Ok(0) if readers::waits_for_readers(begun) => continue,
            Ok(0) => return Err(io::ErrorKind::BrokenPipe.into()),
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        let piece = bytes.get(..PIECE).unwrap_or(bytes);
        match nix::unistd::write(fd, piece) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            // Somebody else was faster, or made the stream non-blocking.
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
