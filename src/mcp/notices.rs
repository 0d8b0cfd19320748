//! Notices for the person who started Stockade. A thread prints them, so that only it waits for a slow reader.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::tools::ServedEnd;

/// Prints a line on standard error.
pub(super) type Print = fn(&str);

/// The most lines in the queue.
const MAX_QUEUED: usize = 512;

/// How long printing the last ones may take.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// A queue of lines to print.
#[derive(Debug)]
pub(super) struct Notices {
    lines: Mutex<Option<mpsc::Sender<String>>>,
    done: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Notices {
    pub(super) fn new(print: Print) -> io::Result<Self> {
        let (lines, mut queued) = mpsc::channel::<String>(MAX_QUEUED);
        let (finished, done) = oneshot::channel();
        // Not joined: a reader that does not read must not keep Stockade from ending.
        std::thread::Builder::new().name("messages".to_owned()).spawn(move || {
            while let Some(line) = queued.blocking_recv() {
                print(&line);
            }
            // `finish` may have timed out.
            let _dropped = finished.send(());
        })?;
        Ok(Self {
            lines: Mutex::new(Some(lines)),
            done: Mutex::new(Some(done)),
        })
    }

    /// A sender that can wait for room; its lines are dropped after `finish`.
    pub(super) fn sender(&self) -> mpsc::Sender<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.clone().unwrap_or_else(|| mpsc::channel(1).0)
    }

    /// Prints a line, if there is room in the queue.
    pub(super) fn send(&self, line: &str) {
        // Dropped: the reader does not read.
        let _full = self.sender().try_send(line.to_owned());
    }

    /// Reports what the end of a command left behind.
    pub(super) fn report_end(&self, end: Option<&ServedEnd>) {
        for line in end.map(ServedEnd::aftermath).unwrap_or_default() {
            self.send(&line);
        }
    }

    /// Prints what is queued, within a timeout, and nothing after. It waits for senders that still exist.
    pub(super) async fn finish(&self) {
        drop(self.lines.lock().unwrap_or_else(PoisonError::into_inner).take());
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(done) = done {
            let _late = tokio::time::timeout(FLUSH_TIMEOUT, done).await;
        }
    }
}
