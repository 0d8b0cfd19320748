//! Reads the lines of a client, within limits. Of a line beyond them only its `Head` is kept.

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::mcp::head::Head;

/// The longest message that is read.
const MAX_MESSAGE: usize = 16 * 1024 * 1024 + 64 * 1024;
/// Bytes per read.
const READ_SIZE: usize = 64 * 1024;
/// The UTF-8 byte order mark, which some programs write.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A bounded line reader.
#[derive(Debug)]
pub(super) struct Lines<R> {
    inner: R,
    piece: Vec<u8>,
    /// The range of the buffer that is not scanned yet.
    unread: std::ops::Range<usize>,
    line: Vec<u8>,
    head: Head,
    over_bound: Option<OverBound>,
}

/// The limit that a line exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverBound {
    Bytes,
    Values,
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) head: Head,
    /// The text, or the limit that it exceeds.
    pub(super) text: Result<Vec<u8>, OverBound>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            piece: vec![0; READ_SIZE],
            unread: 0..0,
            line: Vec::new(),
            head: Head::new(),
            over_bound: None,
        }
    }

    /// The next line that is not empty; `None` at the end. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.scan() {
                return Some(line);
            }
            match self.inner.read(&mut self.piece).await {
                Ok(count) if count > 0 => self.unread = 0..count,
                // The last line may have no end.
                Ok(_) | Err(_) => return self.end_line(),
            }
        }
    }

    /// Scans to the end of the line or of the buffer.
    fn scan(&mut self) -> Option<Line> {
        while let Some(at) = self.unread.next() {
            match self.piece.get(at).copied() {
                Some(b'\n') => {
                    if let Some(line) = self.end_line() {
                        return Some(line);
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
        if self.over_bound.is_some() {
            return;
        }
        if many {
            self.over_bound = Some(OverBound::Values);
        } else if self.line.len() >= MAX_MESSAGE {
            self.over_bound = Some(OverBound::Bytes);
        }
        match self.over_bound {
            Some(_) => self.line = Vec::new(),
            None => self.line.push(byte),
        }
    }

    fn end_line(&mut self) -> Option<Line> {
        let (line, head) = (
            std::mem::take(&mut self.line),
            std::mem::replace(&mut self.head, Head::new()),
        );
        let text = if let Some(over_bound) = self.over_bound.take() {
            Err(over_bound)
        } else {
            let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line).trim_ascii();
            if text.is_empty() {
                return None;
            }
            Ok(if text.len() == line.len() { line } else { text.to_vec() })
        };
        Some(Line { head, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::head::Kind;
    use crate::mcp::values::MAX_VALUES;

    async fn lines_of(sent: &[u8]) -> Vec<Line> {
        let mut lines = Lines::new(sent);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn lines_are_what_stands_between_their_ends_and_empty_ones_are_none() {
        let all = lines_of(b"\xef\xbb\xbf{\"id\":1}\r\n\n \r\n\xff\n{\"id\":2}").await;
        let texts: Vec<&[u8]> = all.iter().map(|line| line.text.as_deref().unwrap()).collect();
        assert_eq!(texts, [b"{\"id\":1}".as_slice(), b"\xff", b"{\"id\":2}"]);
    }

    #[tokio::test]
    async fn of_a_line_beyond_a_bound_the_id_is_known_and_the_next_line_is_read() {
        let many = format!(
            "{{\"method\":\"x\",\"params\":[{}0],\"id\":5}}\n",
            "0,".repeat(MAX_VALUES)
        );
        let long = format!(
            "{{\"method\":\"x\",\"params\":\"{}\",\"id\":6}}\n",
            "x".repeat(MAX_MESSAGE)
        );
        let all = lines_of(format!("{many}{long}[3]\n").as_bytes()).await;
        let kinds: Vec<Kind> = all.iter().map(|line| line.head.kind()).collect();
        let request = |id: &str| Kind::Request(Some(id.to_owned()));
        assert_eq!(kinds, [request("5"), request("6"), Kind::Other]);
        let texts: Vec<_> = all.into_iter().map(|line| line.text).collect();
        assert_eq!(
            texts,
            [Err(OverBound::Values), Err(OverBound::Bytes), Ok(b"[3]".to_vec())]
        );
    }
}
