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

/// How long an answer may take beyond the deadline of the request.
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

/// What came of asking for a moment.
#[derive(Debug)]
pub enum Progress {
    /// The last word.
    Answered(FileReply),
    /// It takes longer; whoever can wait goes on.
    Pending(Pending),
}

/// A request that is under way.
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

    /// Asks, hands over the parts of a stream as they come, and returns the last word. Blocks the thread.
    ///
    /// After an error the server is of no use any more: what it would say next may belong to this request.
    pub fn request(&self, request: &FileRequest, take: Take<'_>) -> Result<FileReply, ConfineError> {
        let lock = Arc::clone(&self.0.lock).blocking_lock_owned();
        self.begin(request, lock)?.finish(take)
    }

    /// The same, where the thread is not blocked for longer than `time`: most answers are there by then, and waking
    /// another thread for them takes longer than they do.
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

    /// Whether nobody can ask any more.
    pub fn is_over(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    /// Hangs up: a request under way fails, and so does every later one.
    pub fn hang_up(&self) {
        self.0.closed.store(true, Ordering::Release);
        // One that is closed already needs no more.
        let _closed = self.0.socket.shutdown(Shutdown::Both);
    }
}

impl Pending {
    /// Waits for the last word. Blocks the thread.
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
