//! Pipes of a command that Stockade itself writes and reads while the command lives.
//!
//! The command may open the other end of each through `/proc/self/fd`, which gives it nothing new.

use std::io;

use super::channel::Channel;
use super::error::IoError;
use super::stdio::{ChildEnds, InputKind, pipe};

/// Stockade's ends.
#[derive(Debug)]
pub struct PipeEnds {
    /// What the command reads.
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
