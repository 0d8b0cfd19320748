//! Withdraws a question from another thread.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::approver::ApproverError;

/// A handle that withdraws the questions of one approver: the open one, and every later one.
///
/// Get it from the `cancellable` method of an approver, and give it to
/// [`Session::withdrawing_with`](crate::Session::withdrawing_with), or call it from any thread. Clones withdraw the same
/// questions. Dropping one withdraws nothing.
///
/// ```
/// use stockade::TerminalApprover;
///
/// let (approver, handle) = TerminalApprover::new().cancellable()?;
/// // From here on `approver` fails with `ApproverError::Cancelled`.
/// handle.cancel();
/// # let _approver = approver;
/// # Ok::<(), std::io::Error>(())
/// ```
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
    /// An answer that was typed and not read yet does not count. It never blocks; a second call does nothing.
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
