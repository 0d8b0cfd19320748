//! What a command says to standard error, as lines that may be shown: escaped, short, and not too many.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::confine::io::Pipe;
use crate::policy::path::escape;

/// Longer lines are cut.
const LONGEST: usize = 1_000;

/// How many lines are shown within [`INTERVAL`]; the rest is counted.
const MOST_LINES: u32 = 200;

/// The interval of that bound.
const INTERVAL: Duration = Duration::from_secs(10);

/// Before each line, so that nobody takes it for Stockade's own word.
const PREFIX: &str = "[server] ";

/// Passes on these lines of Stockade's own, then what is said until the stream ends.
pub(super) async fn forward(first: Vec<String>, stream: &Pipe, to: &mpsc::Sender<String>) {
    for line in first {
        // Nobody listens any more.
        let _unsent = to.send(line).await;
    }
    let mut lines = Lines::default();
    let mut allowance = Allowance::new(Instant::now());
    let mut piece = vec![0; 16 * 1024];
    loop {
        // What cannot be read any more is as good as ended.
        let count = stream.read(&mut piece).await.unwrap_or(0);
        let mut escaped = lines.push(&piece[..count]);
        if count == 0 {
            escaped.extend(lines.rest());
        }
        for line in escaped {
            for shown in allowance.take(line, Instant::now()) {
                // Nobody listens any more; the stream is read on all the same, so that nobody hangs on it.
                let _unsent = to.send(format!("{PREFIX}{shown}")).await;
            }
        }
        if count == 0 {
            if let Some(left) = allowance.left_out() {
                let _unsent = to.send(format!("{PREFIX}{left}")).await;
            }
            return;
        }
    }
}

/// Bytes → lines without anything that moves a cursor.
#[derive(Debug, Default)]
struct Lines {
    line: Vec<u8>,
    /// How much of the line is not kept.
    cut: u64,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut done = Vec::new();
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.keep(&rest[..end]);
            done.extend(self.take());
            rest = &rest[end + 1..];
        }
        self.keep(rest);
        done
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LONGEST.saturating_sub(self.line.len()).min(bytes.len());
        self.line.extend_from_slice(&bytes[..room]);
        self.cut = self.cut.saturating_add((bytes.len() - room) as u64);
    }

    /// The last line, without a line break.
    fn rest(&mut self) -> Option<String> {
        self.take()
    }

    /// Takes the current line; `None` if it is empty.
    fn take(&mut self) -> Option<String> {
        let cut = std::mem::take(&mut self.cut);
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        match (line.is_empty(), cut) {
            (true, 0) => None,
            (_, 0) => Some(escape(line)),
            (_, more) => Some(format!("{}… [{more} more bytes]", escape(line))),
        }
    }
}

/// How many lines may still be shown for a while.
#[derive(Debug)]
struct Allowance {
    since: Instant,
    shown: u32,
    left_out: u64,
}

impl Allowance {
    const fn new(now: Instant) -> Self {
        Self {
            since: now,
            shown: 0,
            left_out: 0,
        }
    }

    fn take(&mut self, line: String, now: Instant) -> Vec<String> {
        let mut shown = Vec::new();
        if now.duration_since(self.since) >= INTERVAL {
            shown.extend(self.left_out());
            *self = Self::new(now);
        }
        if self.shown < MOST_LINES {
            self.shown += 1;
            shown.push(line);
        } else {
            self.left_out += 1;
        }
        shown
    }

    fn left_out(&self) -> Option<String> {
        (self.left_out > 0).then(|| format!("… [{} lines left out]", self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = b"one\ntwo\r\n\nthree \x1b[2J\nrest";
        let whole = {
            let mut lines = Lines::default();
            let mut all = lines.push(text);
            all.extend(lines.rest());
            all
        };
        assert_eq!(whole, ["one", "two", "three \\u{1b}[2J", "rest"]);
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let mut all: Vec<String> = text.chunks(size).flat_map(|chunk| lines.push(chunk)).collect();
            all.extend(lines.rest());
            assert_eq!(all, whole, "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_that_never_ends_is_cut_and_counted() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            assert!(lines.push(&[b'x'; 1_000]).is_empty());
        }
        assert!(lines.line.capacity() <= 2 * LONGEST);
        let escaped = lines.push(b"\n");
        assert_eq!(escaped.len(), 1);
        assert!(escaped[0].ends_with("x… [99000 more bytes]"), "{}", &escaped[0][900..]);
    }

    #[test]
    fn a_flood_is_counted_and_what_comes_later_is_shown_again() {
        let start = Instant::now();
        let mut allowance = Allowance::new(start);
        let shown: usize = (0..1_000).map(|_| allowance.take("x".to_owned(), start).len()).sum();
        assert_eq!(shown, MOST_LINES as usize);
        let later = allowance.take("y".to_owned(), start + INTERVAL);
        assert_eq!(later, ["… [800 lines left out]", "y"]);
    }
}
