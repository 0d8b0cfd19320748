//! What a client sends, without the lines that would take far more memory than their text.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::values::Values;

/// Passes lines on; of one that has more values than anything that is parsed, only the beginning, which is no message.
#[derive(Debug)]
pub(super) struct Sieve<R> {
    inner: R,
    values: Values,
    passes: Passes,
}

/// Whether the rest of the line is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passes {
    Yes,
    No,
}

impl<R> Sieve<R> {
    pub(super) const fn new(inner: R) -> Self {
        Self {
            inner,
            values: Values::none(),
            passes: Passes::Yes,
        }
    }

    /// Moves what passes to the front; how much it is.
    fn sift(&mut self, bytes: &mut [u8]) -> usize {
        let mut kept = 0;
        for at in 0..bytes.len() {
            let Some(byte) = bytes.get(at).copied() else { break };
            if byte == b'\n' {
                self.values = Values::none();
                self.passes = Passes::Yes;
            } else if self.values.take(byte) {
                self.passes = Passes::No;
            }
            if self.passes == Passes::Yes
                && let Some(place) = bytes.get_mut(kept)
            {
                *place = byte;
                kept += 1;
            }
        }
        kept
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Sieve<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let before = buffer.filled().len();
            match Pin::new(&mut self.inner).poll_read(context, buffer) {
                Poll::Ready(Ok(())) => {}
                other => return other,
            }
            let came = buffer.filled().len() - before;
            let kept = self.sift(buffer.filled_mut().get_mut(before..).unwrap_or_default());
            buffer.set_filled(before + kept);
            // Nothing kept is not the end, unless nothing came.
            if came == 0 || kept > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::values::MOST_VALUES;

    #[test]
    fn a_line_of_too_many_values_is_cut_and_the_next_is_not() {
        let mut sieve = Sieve::new(());
        let long = "0,".repeat(MOST_VALUES * 2);
        let mut sent = format!("[1,2]\n{long}\n[3]\n").into_bytes();
        // However it comes.
        let mut passed = Vec::new();
        for piece in sent.chunks_mut(1000) {
            let kept = sieve.sift(piece);
            passed.extend_from_slice(&piece[..kept]);
        }
        let passed = String::from_utf8(passed).unwrap();
        let lines: Vec<&str> = passed.lines().collect();
        assert_eq!((lines[0], lines[2], lines.len()), ("[1,2]", "[3]", 3));
        assert!(lines[1].len() < long.len() * 3 / 4, "{}", lines[1].len());
    }
}
