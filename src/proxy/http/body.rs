//! The strict parser of request bodies: it checks every byte of the framing.

use super::head::Framing;
use crate::proxy::unreadable::Unreadable;

/// The most digits of a chunk's length.
const DIGITS: u32 = 15;

/// The position of the parser in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) struct Body(At);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// This many bytes of a body with a length are left.
    Plain(u64),
    /// In the length of a chunk: its value so far, and the number of digits.
    Size(u64, u32),
    /// After the CR of a chunk's length.
    SizeEnd(u64),
    /// This many bytes of a chunk are left.
    Chunk(u64),
    /// After the data of a chunk.
    ChunkEnd,
    /// Behind the CR there.
    ChunkLine,
    /// After the last chunk. Trailers are refused.
    Last,
    /// Behind the CR there.
    LastLine,
    End,
}

/// The next piece of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Piece {
    /// This many bytes of content, at least one.
    Data(usize),
    /// This many bytes of framing, at least one.
    Framing(usize),
    /// More bytes are needed.
    More,
    /// The body has ended.
    End,
}

impl Body {
    /// The parser of a body with this framing.
    pub(in crate::proxy) fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::None | Framing::Length(0) => At::End,
            Framing::Length(length) => At::Plain(length),
            Framing::Chunked => At::Size(0, 0),
        })
    }

    /// The piece at the start of these bytes. The caller must remove it before the next call.
    ///
    /// # Errors
    /// The chunks are ambiguous: they have extensions, trailers or other line ends.
    pub(in crate::proxy) fn next(&mut self, bytes: &[u8]) -> Result<Piece, Unreadable> {
        if self.0 == At::End {
            return Ok(Piece::End);
        }
        if bytes.is_empty() {
            return Ok(Piece::More);
        }
        if let At::Plain(left) | At::Chunk(left) = self.0 {
            let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            let left = left - taken as u64;
            self.0 = match (self.0, left) {
                (At::Plain(_), 0) => At::End,
                (At::Plain(_), left) => At::Plain(left),
                (_, 0) => At::ChunkEnd,
                (_, left) => At::Chunk(left),
            };
            return Ok(Piece::Data(taken));
        }
        let mut taken = 0;
        for byte in bytes {
            self.0 = step(self.0, *byte).ok_or(Unreadable::Chunk)?;
            taken += 1;
            if matches!(self.0, At::Chunk(_) | At::End) {
                break;
            }
        }
        Ok(Piece::Framing(taken))
    }
}

/// One byte of the framing of chunks.
fn step(at: At, byte: u8) -> Option<At> {
    match (at, byte) {
        (At::Size(size, digits), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < DIGITS => {
            let digit = char::from(byte).to_digit(16)?;
            Some(At::Size(size * 16 + u64::from(digit), digits + 1))
        }
        (At::Size(size, 1..), b'\r') => Some(At::SizeEnd(size)),
        (At::SizeEnd(0), b'\n') => Some(At::Last),
        (At::SizeEnd(size), b'\n') => Some(At::Chunk(size)),
        (At::ChunkEnd, b'\r') => Some(At::ChunkLine),
        (At::ChunkLine, b'\n') => Some(At::Size(0, 0)),
        (At::Last, b'\r') => Some(At::LastLine),
        (At::LastLine, b'\n') => Some(At::End),
        (_, _) => None,
    }
}
