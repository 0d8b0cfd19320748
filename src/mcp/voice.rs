//! Lines for whoever started Stockade, said on a thread that may wait until they are read: nothing else does.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::tools::ServedEnd;

/// Says a line to whoever started Stockade.
pub(super) type Say = fn(&str);

/// How many lines may wait to be said.
const MOST_UNSAID: usize = 512;

/// How long the last ones may take.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Says lines, one after the other.
#[derive(Debug)]
pub(super) struct Voice {
    lines: Mutex<Option<mpsc::Sender<String>>>,
    done: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Voice {
    pub(super) fn new(say: Say) -> io::Result<Self> {
        let (lines, mut unsaid) = mpsc::channel::<String>(MOST_UNSAID);
        let (tell, done) = oneshot::channel();
        // Not joined: who reads nothing must not keep Stockade from ending.
        std::thread::Builder::new().name("messages".to_owned()).spawn(move || {
            while let Some(line) = unsaid.blocking_recv() {
                say(&line);
            }
            // Nobody waits for it any more.
            let _unheard = tell.send(());
        })?;
        Ok(Self {
            lines: Mutex::new(Some(lines)),
            done: Mutex::new(Some(done)),
        })
    }

    /// For whoever waits until there is room; nobody hears it once this has finished.
    pub(super) fn sender(&self) -> mpsc::Sender<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.clone().unwrap_or_else(|| mpsc::channel(1).0)
    }

    /// Says a line, if there is room.
    pub(super) fn say(&self, line: &str) {
        // Nobody has read any for a while.
        let _unsaid = self.sender().try_send(line.to_owned());
    }

    /// Says what the end of a command left to be said.
    pub(super) fn tell_end(&self, end: Option<&ServedEnd>) {
        for line in end.map(ServedEnd::aftermath).unwrap_or_default() {
            self.say(&line);
        }
    }

    /// Waits until all is said, if that does not take long; nothing more is said. Senders that are still held keep it
    /// waiting.
    pub(super) async fn finish(&self) {
        drop(self.lines.lock().unwrap_or_else(PoisonError::into_inner).take());
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(done) = done {
            let _late = tokio::time::timeout(LAST_WORDS, done).await;
        }
    }
}
