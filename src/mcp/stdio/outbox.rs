//! The queue of messages to the client; control messages come before data.
//!
//! A separate task writes them, so that reading the client's input never waits for the client to read.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, oneshot};

/// The most queued bytes of errors that the transport answers itself; further ones are dropped.
const MAX_REFUSED_BYTES: usize = 1024 * 1024;

/// The priority of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Priority {
    /// Written before data: answers to pings, questions, cancellations, errors.
    Control,
    /// Answers and progress of calls.
    Data,
}

/// The queued messages.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queues: Mutex<Queues>,
    queued: Notify,
    written_one: Notify,
}

#[derive(Debug, Default)]
struct Queues {
    control: VecDeque<Outgoing>,
    data: VecDeque<Outgoing>,
    /// The bytes of errors in the control queue.
    error_bytes: usize,
    /// A line is being written.
    writing: bool,
    end: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// Nothing is queued any more; the rest is written.
    Closing,
    /// The client does not read any more.
    Broken,
}

#[derive(Debug)]
struct Outgoing {
    line: Vec<u8>,
    /// Sent when the line is written, if anybody waits for that; an error of the server itself has none.
    written: Option<oneshot::Sender<io::Result<()>>>,
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

    /// Queues a message; the receiver gets the result of writing it.
    pub(super) fn send(&self, mut line: Vec<u8>, priority: Priority) -> oneshot::Receiver<io::Result<()>> {
        line.push(b'\n');
        let (written, done) = oneshot::channel();
        let mut queues = self.queues();
        if queues.end == State::Open {
            let queue = match priority {
                Priority::Control => &mut queues.control,
                Priority::Data => &mut queues.data,
            };
            queue.push_back(Outgoing {
                line,
                written: Some(written),
            });
            self.queued.notify_one();
        }
        drop(queues);
        done
    }

    /// Queues an error.
    pub(super) fn send_error(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        let mut queues = self.queues();
        if queues.end == State::Open && queues.error_bytes + line.len() <= MAX_REFUSED_BYTES {
            queues.error_bytes += line.len();
            queues.control.push_back(Outgoing { line, written: None });
            self.queued.notify_one();
        }
    }

    /// Waits until everything is written, or writing failed.
    pub(super) async fn written(&self) {
        loop {
            let written_one = self.written_one.notified();
            {
                let queues = self.queues();
                let is_empty = queues.control.is_empty() && queues.data.is_empty() && !queues.writing;
                if is_empty || queues.end == State::Broken {
                    return;
                }
            }
            written_one.await;
        }
    }

    /// Queues nothing any more; the rest is still written.
    pub(super) fn close(&self) {
        let mut queues = self.queues();
        if queues.end == State::Open {
            queues.end = State::Closing;
        }
        drop(queues);
        self.queued.notify_one();
    }

    /// The next line to write; `None` at the end.
    async fn next(&self) -> Option<Outgoing> {
        loop {
            {
                let mut queues = self.queues();
                let next = queues.control.pop_front();
                if let Some(next) = next.or_else(|| queues.data.pop_front()) {
                    if next.written.is_none() {
                        queues.error_bytes = queues.error_bytes.saturating_sub(next.line.len());
                    }
                    queues.writing = true;
                    return Some(next);
                }
                if queues.end != State::Open {
                    return None;
                }
            }
            self.queued.notified().await;
        }
    }

    /// Records that a line was written, or that writing failed for good.
    fn line_done(&self, outgoing: Outgoing, written: io::Result<()>) {
        let mut queues = self.queues();
        queues.writing = false;
        if written.is_err() {
            queues.end = State::Broken;
            // Dropping the senders fails those that wait.
            queues.control.clear();
            queues.data.clear();
        }
        drop(queues);
        if let Some(sender) = outgoing.written {
            // The sender may be gone.
            let _dropped = sender.send(written);
        }
        self.written_one.notify_waiters();
    }
}

/// Waits for the result of [`Outbox::send`].
pub(super) async fn is_written(done: oneshot::Receiver<io::Result<()>>) -> io::Result<()> {
    done.await.map_err(|_gone| closed())?
}

async fn write(outbox: Arc<Outbox>, mut output: impl AsyncWrite + Unpin) {
    while let Some(outgoing) = outbox.next().await {
        let mut written = output.write_all(&outgoing.line).await;
        if written.is_ok() {
            written = output.flush().await;
        }
        outbox.line_done(outgoing, written);
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
        let first = outbox.send(b"first, which fills the wire".to_vec(), Priority::Data);
        tokio::task::yield_now().await;
        let all = [
            outbox.send(b"second".to_vec(), Priority::Data),
            outbox.send(b"pong".to_vec(), Priority::Control),
        ];
        outbox.send_error(b"busy".to_vec());
        outbox.close();
        let mut client = client;
        let mut read = String::new();
        client.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "first, which fills the wire\npong\nbusy\nsecond\n");
        is_written(first).await.unwrap();
        for done in all {
            is_written(done).await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_nobody_reads_is_bounded_and_fails_with_the_client() {
        let (client, server) = tokio::io::duplex(8);
        let outbox = Outbox::to(server);
        let sent = outbox.send(vec![b'x'; 100], Priority::Data);
        for _ in 0..100_000 {
            outbox.send_error(vec![b'x'; 99]);
        }
        assert!(outbox.queues().error_bytes <= MAX_REFUSED_BYTES);
        drop(client);
        is_written(sent).await.unwrap_err();
        outbox.written().await;
        is_written(outbox.send(vec![b'x'], Priority::Control))
            .await
            .unwrap_err();
    }
}
