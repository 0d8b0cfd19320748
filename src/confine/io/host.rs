//! The caller's own streams, read and written without blocking the runtime and without `O_NONBLOCK`.
//!
//! That flag belongs to the open file, which the caller's shell shares: setting it would break others, and a killed
//! Stockade would leave it set. So reading asks for readiness first, and nothing is taken that was not asked for
//! (input that the command does not live to see stays for the next reader). Writing, where readiness promises too
//! little, is done by a thread that is started at the first byte and is handed one piece at a time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{getpgrp, tcgetpgrp};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use super::delivery::Delivery;
use super::pause::Pause;
use crate::confine::sys;

/// How often a background job looks whether it has become the foreground job.
const BACKGROUND_TICK: Duration = Duration::from_millis(200);

/// A stream of the caller's that is read when it has something.
#[derive(Debug)]
pub(crate) enum HostReader {
    /// A pipe, socket, terminal: the kernel says when there is input.
    Watched(AsyncFd<OwnedFd>),
    /// A file or device that is always ready.
    Ready(OwnedFd),
}

impl HostReader {
    /// A reader of `fd`. Needs a running runtime.
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        match sys::watch_readiness(fd, Interest::READABLE) {
            Ok(watched) => Ok(Self::Watched(watched)),
            // EPERM is epoll's answer to files that never make a reader wait.
            Err((fd, error)) if error.raw_os_error() == Some(libc::EPERM) => Ok(Self::Ready(fd)),
            Err((_closed, error)) => Err(error),
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Watched(fd) => fd.get_ref().as_fd(),
            Self::Ready(fd) => fd.as_fd(),
        }
    }

    /// Waits until a read would not block.
    pub(crate) async fn ready(&self) -> io::Result<()> {
        let Self::Watched(fd) = self else {
            return Ok(());
        };
        loop {
            let mut guard = fd.readable().await?;
            if has_input(fd.get_ref().as_fd())? {
                // Readiness is kept: it is only known to be gone when poll says so.
                return Ok(());
            }
            guard.clear_ready();
        }
    }

    /// The next bytes; 0 at the end of input. Takes nothing when dropped before it is done.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // A source that is always ready must not starve other tasks.
        tokio::task::yield_now().await;
        loop {
            self.ready().await?;
            match nix::unistd::read(self.fd(), buffer) {
                Ok(count) => return Ok(count),
                Err(Errno::EINTR) => {}
                // Another reader was faster on a stream that somebody made non-blocking.
                Err(Errno::EAGAIN) => tokio::task::yield_now().await,
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// As [`read`](Self::read), for a terminal: waits while Stockade is a background job, while the relay is paused for a question, and
    /// while `permit` gives none.
    pub(crate) async fn read_in_foreground<Permit>(
        &self,
        buffer: &mut [u8],
        pause: &Pause,
        permit: impl Fn() -> Option<Permit>,
    ) -> io::Result<usize> {
        loop {
            self.ready().await?;
            let pass = pause.pass().await;
            let permit = in_foreground(self.fd()).then(&permit).flatten();
            if permit.is_none() {
                drop(pass);
                tokio::time::sleep(BACKGROUND_TICK).await;
            } else if has_input(self.fd())? {
                return self.read(buffer).await;
            }
            // Otherwise another process has read it: an answer to a question.
        }
    }
}

/// Whether the caller's terminal `fd` is Stockade's to use now. A terminal that is not the controlling one always is.
pub(crate) fn in_foreground(fd: BorrowedFd<'_>) -> bool {
    tcgetpgrp(fd).map_or(true, |group| group == getpgrp())
}

fn has_input(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::ZERO) {
        Ok(count) => Ok(count > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// A stream of the caller's that is written by a thread of its own.
///
/// At most one piece is on its way, so a slow reader holds the command up and not the runtime.
#[derive(Debug)]
pub(crate) struct HostWriter {
    fd: Arc<OwnedFd>,
    delivery: Delivery,
    thread: Option<Thread>,
}

#[derive(Debug)]
struct Thread {
    pieces: mpsc::Sender<Vec<u8>>,
    results: mpsc::Receiver<io::Result<()>>,
}

impl HostWriter {
    pub(super) fn new(fd: OwnedFd, delivery: Delivery) -> Self {
        Self {
            fd: Arc::new(fd),
            delivery,
            thread: None,
        }
    }

    /// Writes all of `piece`. A closed pipe is an error of kind `BrokenPipe`.
    pub(crate) async fn write(&mut self, piece: Vec<u8>) -> io::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => Thread::start(Arc::clone(&self.fd), self.delivery.clone())?,
        };
        let thread = self.thread.insert(thread);
        self.delivery.queued(piece.len());
        let ended = || io::Error::other("the writing thread ended");
        thread.pieces.send(piece).await.map_err(|_closed| ended())?;
        thread.results.recv().await.ok_or_else(ended)?
    }
}

impl Thread {
    fn start(fd: Arc<OwnedFd>, delivery: Delivery) -> io::Result<Self> {
        let (pieces, mut inbox) = mpsc::channel::<Vec<u8>>(1);
        let (outbox, results) = mpsc::channel(1);
        // Not joined: a write that waits for a reader must not keep Stockade from ending.
        std::thread::Builder::new().name("output".to_owned()).spawn(move || {
            while let Some(piece) = inbox.blocking_recv() {
                if outbox.blocking_send(write_all(fd.as_fd(), &piece, &delivery)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { pieces, results })
    }
}

fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8], delivery: &Delivery) -> io::Result<()> {
    while !bytes.is_empty() {
        match nix::unistd::write(fd, bytes) {
            Ok(count) => {
                delivery.written(count);
                bytes = &bytes[count..];
            }
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                // Somebody else made the stream non-blocking.
                let mut fds = [PollFd::new(fd, PollFlags::POLLOUT)];
                match poll(&mut fds, PollTimeout::NONE) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
