//! A command's streams that Stockade itself writes and reads, for as long as the command lives.
//!
//! The command may open the other end of each through `/proc/self/fd` where it has that: it hears and says
//! no more by it than it does already.

use std::io;

use super::channel::Channel;
use super::error::IoError;
use super::stdio::{ChildEnds, InputKind, pipe};

/// The descriptors that stay.
#[derive(Debug)]
pub struct PipeEnds {
    /// What is written here, the command reads.
    pub stdin: Pipe,
    /// What the command writes to its standard output.
    pub stdout: Pipe,
    /// What the command writes to its standard error.
    pub stderr: Pipe,
}

/// Stockade's end of one stream of a command.
#[derive(Debug)]
pub struct Pipe(Channel);

impl Pipe {
    /// The next bytes; 0 at the end. Takes nothing when dropped before it is done.
    pub async fn read(&self, piece: &mut [u8]) -> io::Result<usize> {
        self.0.read(piece).await
    }

    /// Writes all of it; some of it when dropped before it is done.
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await
    }
}

/// Makes both ends of a command's streams: what the command gets, and what Stockade keeps. Needs a running runtime.
pub fn make_pipes() -> Result<(ChildEnds, PipeEnds), IoError> {
    let (stdin, to_stdin) = pipe()?;
    let (from_stdout, stdout) = pipe()?;
    let (from_stderr, stderr) = pipe()?;
    let child = ChildEnds {
        stdin,
        stdout,
        stderr,
        input: InputKind::Pipe,
    };
    let ends = PipeEnds {
        stdin: Pipe(Channel::new(to_stdin)?),
        stdout: Pipe(Channel::new(from_stdout)?),
        stderr: Pipe(Channel::new(from_stderr)?),
    };
    Ok((child, ends))
}
