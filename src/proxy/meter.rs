//! Counts the bytes of an attempt, and detects idle time.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Duration, Instant, sleep_until};

use super::bounds::UNANSWERED;

/// The byte counts of an attempt, and the time of the last transfer.
#[derive(Debug)]
pub(super) struct Meter {
    begun: Instant,
    last: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
}

/// A direction.
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

    /// Counts bytes.
    pub(super) fn count(&self, way: Way, bytes: usize) {
        self.of(way).fetch_add(bytes as u64, Ordering::Relaxed);
        self.moved();
    }

    /// The count so far.
    pub(super) fn sent(&self, way: Way) -> u64 {
        self.of(way).load(Ordering::Relaxed)
    }

    /// Notes a transfer that is counted elsewhere.
    pub(super) fn moved(&self) {
        let since = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(since, Ordering::Relaxed);
    }

    /// Returns after this time without a transfer.
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

/// A connection to a server with its bytes counted.
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
