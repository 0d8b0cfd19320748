//! The parent's handle on a file server.

use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::exchange::{Exchange, Take};
use super::protocol::{FileReply, FileRequest};
use crate::confine::error::ConfineError;

/// How long a reply may take beyond the deadline of the request.
const REPLY_GRACE: Duration = Duration::from_secs(30);

/// One end of the socket to a file server; one request is answered at a time.
#[derive(Debug, Clone)]
pub struct FileServer(Arc<Connection>);

#[derive(Debug)]
struct Connection {
    socket: UnixStream,
    lock: Arc<Mutex<()>>,
    closed: AtomicBool,
}

/// The result of a request with a short wait.
#[derive(Debug)]
pub enum Progress {
    /// The last reply.
    Answered(FileReply),
    /// It takes longer.
    Pending(Pending),
}

/// A request that waits for its reply.
#[derive(Debug)]
pub struct Pending {
    server: FileServer,
    exchange: Exchange,
    _lock: OwnedMutexGuard<()>,
}

impl FileServer {
    /// A handle, and the server's end of the socket.
    pub fn pair() -> Result<(Self, OwnedFd), ConfineError> {
        let (ours, theirs) = UnixStream::pair().map_err(ConfineError::Spawn)?;
        let connection = Connection {
            socket: ours,
            lock: Arc::default(),
            closed: AtomicBool::new(false),
        };
        Ok((Self(Arc::new(connection)), theirs.into()))
    }

    /// Sends a request, passes on the parts of a stream, and returns the last reply. Blocks the thread.
    ///
    /// After an error the server cannot be used: its next reply may belong to this request.
    pub fn request(&self, request: &FileRequest, take: Take<'_>) -> Result<FileReply, ConfineError> {
        let lock = Arc::clone(&self.0.lock).blocking_lock_owned();
        self.begin(request, lock)?.finish(take)
    }

    /// The same, without blocking for longer than `time`. Most replies come by then, sooner than another thread could wake.
    pub fn request_within(
        &self,
        time: Duration,
        request: &FileRequest,
        take: Take<'_>,
    ) -> Result<Option<Progress>, ConfineError> {
        let Ok(lock) = Arc::clone(&self.0.lock).try_lock_owned() else {
            return Ok(None);
        };
        let mut pending = self.begin(request, lock)?;
        let until = Instant::now().checked_add(time);
        Ok(Some(match pending.advance(until, take)? {
            Some(last) => Progress::Answered(last),
            None => Progress::Pending(pending),
        }))
    }

    fn begin(&self, request: &FileRequest, lock: OwnedMutexGuard<()>) -> Result<Pending, ConfineError> {
        let patience = Duration::from_millis(request.deadline_ms).saturating_add(REPLY_GRACE);
        Ok(Pending {
            server: self.clone(),
            // A time too long to express never ends.
            exchange: Exchange::new(request, Instant::now().checked_add(patience))?,
            _lock: lock,
        })
    }

    /// Whether it was closed.
    pub fn is_over(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    /// Hangs up: a request under way fails, and so does every later one.
    pub fn hang_up(&self) {
        self.0.closed.store(true, Ordering::Release);
        let _closed = self.0.socket.shutdown(Shutdown::Both);
    }
}

impl Pending {
    /// Waits for the last reply. Blocks the thread.
    pub fn finish(mut self, take: Take<'_>) -> Result<FileReply, ConfineError> {
        self.advance(None, take)?.ok_or(ConfineError::Unresponsive)
    }

    fn advance(&mut self, until: Option<Instant>, take: Take<'_>) -> Result<Option<FileReply>, ConfineError> {
        let result = self.exchange.advance(&self.server.0.socket, until, take);
        if result.is_err() {
            self.server.hang_up();
        }
        result
    }
}
