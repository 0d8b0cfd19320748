//! The parent's end of a command's pipe or terminal.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::error::IoError;
use crate::confine::sys;

/// The parent's end of a pipe or terminal that it made itself, and may therefore make non-blocking: the command's
/// end is another open file.
#[derive(Debug)]
pub(super) struct Channel(AsyncFd<OwnedFd>);

impl Channel {
    pub(super) fn new(fd: OwnedFd) -> Result<Self, IoError> {
        let flags = fcntl(&fd, FcntlArg::F_GETFL).map_err(|errno| IoError::Watch(errno.into()))?;
        let flags = OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK;
        fcntl(&fd, FcntlArg::F_SETFL(flags)).map_err(|errno| IoError::Watch(errno.into()))?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        Ok(Self(
            sys::watch_readiness(fd, interest).map_err(|(_closed, error)| IoError::Watch(error))?,
        ))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }

    pub(super) fn unread(&self) -> u64 {
        sys::unread(self.fd()).unwrap_or(0)
    }

    /// The next bytes; 0 at the end. Takes nothing when dropped before it is done.
    pub(super) async fn read(&self, piece: &mut [u8]) -> io::Result<usize> {
        // A fast writer must not starve other tasks.
        tokio::task::yield_now().await;
        loop {
            let mut ready = self.0.readable().await?;
            match ready.try_io(|fd| Ok(nix::unistd::read(fd.get_ref(), piece)?)) {
                Ok(Ok(count)) => return Ok(count),
                // A terminal's way of saying that its last slave was closed.
                Ok(Err(error)) if error.raw_os_error() == Some(Errno::EIO as i32) => return Ok(0),
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
    }

    /// Writes all of it; some of it when dropped before it is done.
    pub(super) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.write(bytes).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Writes some of it; nothing when dropped before it is done.
    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.writable().await?;
            match ready.try_io(|fd| Ok(nix::unistd::write(fd.get_ref(), bytes)?)) {
                Ok(Ok(count)) => return Ok(count),
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
    }
}
