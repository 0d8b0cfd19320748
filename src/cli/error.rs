//! What failed, why, and what to do: the form of every error a person sees.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::exit::Exit;
use super::readers;
use crate::tools::RegimeLine;

/// An error as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CliError {
    what: String,
    remedies: Vec<String>,
    exit: Exit,
    output: Output,
}

/// Whether standard output can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Open,
    Broken,
}

impl CliError {
    /// Stockade could not: exit code 125.
    pub(super) fn failed(what: impl std::fmt::Display) -> Self {
        Self {
            what: what.to_string(),
            remedies: Vec::new(),
            exit: Exit::Failed,
            output: Output::Open,
        }
    }

    /// An error with this exit code.
    pub(super) fn with_exit(what: impl std::fmt::Display, exit: Exit) -> Self {
        Self {
            exit,
            ..Self::failed(what)
        }
    }

    /// Adds a remedy.
    #[must_use]
    pub(super) fn remedy(mut self, remedy: impl std::fmt::Display) -> Self {
        self.remedies.push(remedy.to_string());
        self
    }

    /// Whether standard output failed, so that nothing more may be printed there.
    pub(super) fn is_output_broken(&self) -> bool {
        self.output == Output::Broken
    }

    /// Prints it to standard error.
    pub(super) fn print(self) -> Exit {
        let (text, exit) = self.into_parts();
        print_notice(text);
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

    /// The text and the exit code.
    pub(super) fn into_parts(self) -> (String, Exit) {
        let mut text = self.what.trim_end().to_owned();
        for remedy in &self.remedies {
            text.push_str("\n  → ");
            text.push_str(remedy);
        }
        (text, self.exit)
    }
}

/// Prints a notice to standard error.
pub(super) fn print_notice(text: impl std::fmt::Display) {
    print_stderr(&format!("stockade: {text}\n"));
}

/// Prints the regime line to standard error, with paths as the reader sees them.
pub(super) fn print_regime(line: &RegimeLine) {
    let directory = std::env::current_dir().unwrap_or_default();
    print_stderr(&format!("{}\n", line.brief(&directory)));
}

/// Writes to standard error; that it is closed is no error.
pub(super) fn print_stderr(text: &str) {
    let lock = std::io::stderr().lock();
    let _closed = write_all(std::io::stderr().as_fd(), text.as_bytes());
    drop(lock);
}

/// Writes to standard output.
pub(super) fn print(text: &str) -> Result<(), CliError> {
    print_bytes(text.as_bytes())
}

/// Writes bytes of any kind to standard output.
pub(super) fn print_bytes(bytes: &[u8]) -> Result<(), CliError> {
    match write_all(std::io::stdout().as_fd(), bytes) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(CliError {
            output: Output::Broken,
            ..CliError::failed(format!("failed to write the output: {error}"))
        }),
    }
}

/// Writes all of it. A reader that does not read counts as closed shortly after a stop.
fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    /// `PIPE_BUF`: what a writable pipe takes at once; see `pipe(7)`.
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
            // Another process filled the pipe, or made the stream non-blocking.
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
