//! What a client sends, line by line, within bounds. Of a line that is beyond them only what it says of itself is kept.

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::mcp::head::Head;

/// The longest message that is read.
const LONGEST: usize = 16 * 1024 * 1024 + 64 * 1024;
/// How much is read at once.
const PIECE: usize = 64 * 1024;
/// What some programs put before a text; it says nothing.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads lines.
#[derive(Debug)]
pub(super) struct Lines<R> {
    inner: R,
    piece: Vec<u8>,
    /// What of the piece is not looked at yet.
    left: std::ops::Range<usize>,
    line: Vec<u8>,
    head: Head,
    beyond: Option<Beyond>,
}

/// The bound that a line is beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beyond {
    Bytes,
    Values,
}

/// A line.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) head: Head,
    /// What it is, or why it was not kept.
    pub(super) text: Result<Vec<u8>, Beyond>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            piece: vec![0; PIECE],
            left: 0..0,
            line: Vec::new(),
            head: Head::new(),
            beyond: None,
        }
    }

    /// The next line that says anything; `None` at the end. Loses nothing when dropped before it is done.
    pub(super) async fn next(&mut self) -> Option<Heard> {
        loop {
            if let Some(heard) = self.look() {
                return Some(heard);
            }
            match self.inner.read(&mut self.piece).await {
                Ok(count) if count > 0 => self.left = 0..count,
                // What has no end of line is the last one.
                Ok(_) | Err(_) => return self.over(),
            }
        }
    }

    /// Goes on to the end of the line, or of what was read.
    fn look(&mut self) -> Option<Heard> {
        while let Some(at) = self.left.next() {
            match self.piece.get(at).copied() {
                Some(b'\n') => {
                    if let Some(heard) = self.over() {
                        return Some(heard);
                    }
                }
                Some(byte) => self.keep(byte),
                None => {}
            }
        }
        None
    }

    fn keep(&mut self, byte: u8) {
        let many = self.head.take(byte);
        if self.beyond.is_some() {
            return;
        }
        if many {
            self.beyond = Some(Beyond::Values);
        } else if self.line.len() >= LONGEST {
            self.beyond = Some(Beyond::Bytes);
        }
        match self.beyond {
            Some(_) => self.line = Vec::new(),
            None => self.line.push(byte),
        }
    }

    fn over(&mut self) -> Option<Heard> {
        let (line, head) = (
            std::mem::take(&mut self.line),
            std::mem::replace(&mut self.head, Head::new()),
        );
        let text = if let Some(beyond) = self.beyond.take() {
            Err(beyond)
        } else {
            let text = line.strip_prefix(MARK).unwrap_or(&line).trim_ascii();
            if text.is_empty() {
                return None;
            }
            Ok(if text.len() == line.len() { line } else { text.to_vec() })
        };
        Some(Heard { head, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::head::Kind;
    use crate::mcp::values::MOST_VALUES;

    async fn heard(sent: &[u8]) -> Vec<Heard> {
        let mut lines = Lines::new(sent);
        let mut all = Vec::new();
        while let Some(heard) = lines.next().await {
            all.push(heard);
        }
        all
    }

    #[tokio::test]
    async fn lines_are_what_stands_between_their_ends_and_empty_ones_are_none() {
        let all = heard(b"\xef\xbb\xbf{\"id\":1}\r\n\n \r\n\xff\n{\"id\":2}").await;
        let texts: Vec<&[u8]> = all.iter().map(|heard| heard.text.as_deref().unwrap()).collect();
        assert_eq!(texts, [b"{\"id\":1}".as_slice(), b"\xff", b"{\"id\":2}"]);
    }

    #[tokio::test]
    async fn of_a_line_beyond_a_bound_the_id_is_known_and_the_next_line_is_read() {
        let many = format!(
            "{{\"method\":\"x\",\"params\":[{}0],\"id\":5}}\n",
            "0,".repeat(MOST_VALUES)
        );
        let long = format!("{{\"method\":\"x\",\"params\":\"{}\",\"id\":6}}\n", "x".repeat(LONGEST));
        let all = heard(format!("{many}{long}[3]\n").as_bytes()).await;
        let kinds: Vec<Kind> = all.iter().map(|heard| heard.head.kind()).collect();
        let request = |id: &str| Kind::Request(Some(id.to_owned()));
        assert_eq!(kinds, [request("5"), request("6"), Kind::Neither]);
        let texts: Vec<_> = all.into_iter().map(|heard| heard.text).collect();
        assert_eq!(texts, [Err(Beyond::Values), Err(Beyond::Bytes), Ok(b"[3]".to_vec())]);
    }
}
