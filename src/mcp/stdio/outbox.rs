//! What is said to the client: one line after the other, and what is short and awaited before what is long.
//!
//! A client may read slowly, or nothing. Nobody who reads what it sends waits for that: what is to be said is put here, and a
//! task of its own writes it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, oneshot};

/// The most bytes of errors that the server answers by itself and that are not read yet. Whoever leaves more unread is told
/// no further ones.
const MOST_REFUSALS: usize = 1024 * 1024;

/// What of a message decides when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// Before all data: answers to pings and the like, questions, cancellations, errors.
    Control,
    /// The answers of calls, and how far they have come.
    Data,
}

/// What is not written yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queues: Mutex<Queues>,
    more: Notify,
    less: Notify,
}

#[derive(Debug, Default)]
struct Queues {
    control: VecDeque<Outgoing>,
    data: VecDeque<Outgoing>,
    /// How many bytes of the first are refusals.
    refusals: usize,
    /// A line is being written.
    writing: bool,
    end: End,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum End {
    #[default]
    NotYet,
    /// Nothing comes any more; what is there is written.
    Closing,
    /// Nobody reads any more.
    Broken,
}

#[derive(Debug)]
struct Outgoing {
    line: Vec<u8>,
    why: Why,
}

#[derive(Debug)]
enum Why {
    /// Somebody waits until it is written.
    Sent(oneshot::Sender<io::Result<()>>),
    /// Nobody does.
    Refusal,
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the client reads nothing any more")
}

impl Outbox {
    /// An empty one that writes to `output`. Needs a running runtime.
    pub(super) fn to(output: impl AsyncWrite + Send + Unpin + 'static) -> Arc<Self> {
        let outbox = Arc::new(Self::default());
        tokio::spawn(write(Arc::clone(&outbox), output));
        outbox
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message in line; what is given tells when it is written.
    pub(super) fn send(&self, mut line: Vec<u8>, rank: Rank) -> oneshot::Receiver<io::Result<()>> {
        line.push(b'\n');
        let (written, done) = oneshot::channel();
        let mut queues = self.queues();
        if queues.end == End::NotYet {
            let why = Why::Sent(written);
            match rank {
                Rank::Control => queues.control.push_back(Outgoing { line, why }),
                Rank::Data => queues.data.push_back(Outgoing { line, why }),
            }
            self.more.notify_one();
        }
        drop(queues);
        done
    }

    /// Puts an error in line that nobody waits for.
    pub(super) fn refuse(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        let mut queues = self.queues();
        if queues.end == End::NotYet && queues.refusals + line.len() <= MOST_REFUSALS {
            queues.refusals += line.len();
            queues.control.push_back(Outgoing {
                line,
                why: Why::Refusal,
            });
            self.more.notify_one();
        }
    }

    /// Waits until everything is written, or nobody reads any more.
    pub(super) async fn written(&self) {
        loop {
            let less = self.less.notified();
            {
                let queues = self.queues();
                let is_empty = queues.control.is_empty() && queues.data.is_empty() && !queues.writing;
                if is_empty || queues.end == End::Broken {
                    return;
                }
            }
            less.await;
        }
    }

    /// Takes nothing any more; what is there is still written.
    pub(super) fn close(&self) {
        let mut queues = self.queues();
        if queues.end == End::NotYet {
            queues.end = End::Closing;
        }
        drop(queues);
        self.more.notify_one();
    }

    /// The next line to write; `None` at the end.
    async fn next(&self) -> Option<Outgoing> {
        loop {
            {
                let mut queues = self.queues();
                let next = queues.control.pop_front();
                if let Some(next) = next.or_else(|| queues.data.pop_front()) {
                    if matches!(next.why, Why::Refusal) {
                        queues.refusals = queues.refusals.saturating_sub(next.line.len());
                    }
                    queues.writing = true;
                    return Some(next);
                }
                if queues.end != End::NotYet {
                    return None;
                }
            }
            self.more.notified().await;
        }
    }

    /// A line is written, or cannot be: then no other can.
    fn done(&self, outgoing: Outgoing, written: io::Result<()>) {
        let mut queues = self.queues();
        queues.writing = false;
        if written.is_err() {
            queues.end = End::Broken;
            // Whoever waits for one finds nobody who will say that it is written.
            queues.control.clear();
            queues.data.clear();
        }
        drop(queues);
        if let Why::Sent(tell) = outgoing.why {
            // Whoever sent it may have given up.
            let _unheard = tell.send(written);
        }
        self.less.notify_waiters();
    }
}

/// Whether a message is written, from what [`Outbox::send`] gave.
pub(super) async fn is_written(done: oneshot::Receiver<io::Result<()>>) -> io::Result<()> {
    done.await.map_err(|_gone| closed())?
}

async fn write(outbox: Arc<Outbox>, mut output: impl AsyncWrite + Unpin) {
    while let Some(outgoing) = outbox.next().await {
        let mut written = output.write_all(&outgoing.line).await;
        if written.is_ok() {
            written = output.flush().await;
        }
        outbox.done(outgoing, written);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn what_is_awaited_is_written_before_data_however_slowly_the_client_reads() {
        let (client, server) = tokio::io::duplex(8);
        let outbox = Outbox::to(server);
        let first = outbox.send(b"first, which fills the wire".to_vec(), Rank::Data);
        tokio::task::yield_now().await;
        let all = [
            outbox.send(b"second".to_vec(), Rank::Data),
            outbox.send(b"pong".to_vec(), Rank::Control),
        ];
        outbox.refuse(b"busy".to_vec());
        outbox.close();
        let mut client = client;
        let mut told = String::new();
        client.read_to_string(&mut told).await.unwrap();
        assert_eq!(told, "first, which fills the wire\npong\nbusy\nsecond\n");
        is_written(first).await.unwrap();
        for done in all {
            is_written(done).await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_nobody_reads_is_bounded_and_fails_with_the_client() {
        let (client, server) = tokio::io::duplex(8);
        let outbox = Outbox::to(server);
        let sent = outbox.send(vec![b'x'; 100], Rank::Data);
        for _ in 0..100_000 {
            outbox.refuse(vec![b'x'; 99]);
        }
        assert!(outbox.queues().refusals <= MOST_REFUSALS);
        drop(client);
        is_written(sent).await.unwrap_err();
        outbox.written().await;
        is_written(outbox.send(vec![b'x'], Rank::Control)).await.unwrap_err();
    }
}
