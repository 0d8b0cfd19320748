//! Counts the bytes of an attempt, and notices when none move.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Duration, Instant, sleep_until};

use super::bounds::UNANSWERED;

/// The bytes that an attempt has moved, and when it moved the last.
#[derive(Debug)]
pub(super) struct Meter {
    begun: Instant,
    last: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// To the server.
    Up,
    /// To the client.
    Down,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            last: AtomicU64::new(0),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
        }
    }
}

impl Meter {
    const fn of(&self, way: Way) -> &AtomicU64 {
        match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        }
    }

    /// So many bytes were sent on.
    pub(super) fn count(&self, way: Way, bytes: usize) {
        self.of(way).fetch_add(bytes as u64, Ordering::Relaxed);
        self.moved();
    }

    /// How many that were, until now.
    pub(super) fn sent(&self, way: Way) -> u64 {
        self.of(way).load(Ordering::Relaxed)
    }

    /// Something was sent on that is counted elsewhere.
    pub(super) fn moved(&self) {
        let since = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(since, Ordering::Relaxed);
    }

    /// Returns when nothing has moved for so long, beginning now.
    pub(super) async fn idle(&self, time: Duration) {
        self.moved();
        loop {
            let last = self.begun + Duration::from_millis(self.last.load(Ordering::Relaxed));
            if last.elapsed() >= time {
                return;
            }
            sleep_until(last + time).await;
        }
    }
}

/// A connection to a server, of which every byte is counted: what is written as it is taken, what is read as it comes.
#[derive(Debug)]
pub(super) struct Metered<'a> {
    stream: TcpStream,
    meter: &'a Meter,
    answered: &'a AtomicBool,
    unanswered: u64,
}

impl<'a> Metered<'a> {
    /// `answered` says when the head of the answer is whole.
    pub(super) const fn new(stream: TcpStream, meter: &'a Meter, answered: &'a AtomicBool) -> Self {
        Self {
            stream,
            meter,
            answered,
            unanswered: 0,
        }
    }

    fn written(&self, taken: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let taken = ready!(taken)?;
        self.meter.count(Way::Up, taken);
        Poll::Ready(Ok(taken))
    }
}

impl AsyncRead for Metered<'_> {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = room.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(task, room))?;
        let came = room.filled().len() - before;
        self.meter.count(Way::Down, came);
        if !self.answered.load(Ordering::Relaxed) {
            self.unanswered = self.unanswered.saturating_add(came as u64);
            if self.unanswered > UNANSWERED {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Metered<'_> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let taken = Pin::new(&mut self.stream).poll_write(task, bytes);
        self.written(taken)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let taken = Pin::new(&mut self.stream).poll_write_vectored(task, pieces);
        self.written(taken)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}
