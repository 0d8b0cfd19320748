//! Lines for whoever started Stockade, said on a thread that may wait until they are read: nothing else does.

use std::io;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// Says a line to whoever started Stockade.
pub(super) type Say = fn(&str);

/// How many lines may wait to be said.
const MOST_UNSAID: usize = 512;

/// How long the last ones may take.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Says lines, one after the other.
#[derive(Debug)]
pub(super) struct Voice {
    lines: mpsc::Sender<String>,
    done: oneshot::Receiver<()>,
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
        Ok(Self { lines, done })
    }

    /// For whoever waits until there is room.
    pub(super) fn sender(&self) -> mpsc::Sender<String> {
        self.lines.clone()
    }

    /// Says a line, if there is room.
    pub(super) fn say(&self, line: &str) {
        // Nobody has read any for a while.
        let _unsaid = self.lines.try_send(line.to_owned());
    }

    /// Waits until all is said, if that does not take long. Senders that are still held keep it waiting.
    pub(super) async fn finish(self) {
        let Self { lines, done } = self;
        drop(lines);
        let _late = tokio::time::timeout(LAST_WORDS, done).await;
    }
}
