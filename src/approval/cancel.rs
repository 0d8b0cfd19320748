//! Withdraws a question from another thread.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::approver::ApproverError;

/// Withdraws the questions of an approver: the one that is open, and every later one.
#[derive(Debug, Clone)]
pub struct CancelHandle(Arc<Shared>);

/// The approver's side of a [`CancelHandle`].
#[derive(Debug)]
pub(super) struct Cancelled(Arc<Shared>);

/// Has both ends of the pipe, so that dropping a handle withdraws nothing.
#[derive(Debug)]
struct Shared {
    cancelled: AtomicBool,
    reader: PipeReader,
    writer: PipeWriter,
}

impl CancelHandle {
    pub(super) fn new() -> io::Result<(Self, Cancelled)> {
        let (reader, writer) = io::pipe()?;
        let shared = Arc::new(Shared {
            cancelled: AtomicBool::new(false),
            reader,
            writer,
        });
        Ok((Self(Arc::clone(&shared)), Cancelled(shared)))
    }

    /// Makes the open question fail at once with [`ApproverError::Cancelled`], and every later one.
    ///
    /// An answer that was typed but not read yet does not count. May be called from any thread, and again.
    pub fn cancel(&self) {
        // One byte keeps the pipe readable; more could fill it.
        if !self.0.cancelled.swap(true, Ordering::SeqCst) {
            // Cannot fail: the pipe is empty and its reader lives. The flag alone denies the answer.
            let _infallible = (&self.0.writer).write_all(b"!");
        }
    }
}

impl Cancelled {
    /// An error once it was cancelled.
    pub(super) fn check(&self) -> Result<(), ApproverError> {
        if self.0.cancelled.load(Ordering::SeqCst) {
            Err(ApproverError::Cancelled)
        } else {
            Ok(())
        }
    }
}

/// Readable once it was cancelled.
impl AsFd for Cancelled {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.reader.as_fd()
    }
}
