//! Head-and-tail caps: of a long output the first and the last half of the limit are kept, and all of it is counted.
//!
//! The cut falls between characters where the data is UTF-8: the head takes the bytes that complete its last
//! character (the tail gives them up, so both together never exceed the limit), and the tail drops the remains of
//! a character whose start was lost.

use std::collections::VecDeque;

/// What is put between the head and the tail of a cut output.
fn marker(omitted: u64) -> String {
    format!("\n… [{omitted} bytes omitted] …\n")
}

/// A cap on output that is printed while it flows.
///
/// The head passes at once; what follows is withheld in a ring that keeps the tail, until [`StreamCap::finish`].
#[derive(Debug)]
pub struct StreamCap {
    /// Bytes kept in all; `None` keeps everything, and withholds nothing.
    limit: Option<u64>,
    /// Bytes given to the head so far.
    head: u64,
    /// The last bytes of the head: enough to see whether its last character is complete.
    edge: Edge,
    /// Whether the head takes no more.
    head_full: bool,
    tail: VecDeque<u8>,
    total: u64,
}

impl StreamCap {
    /// A cap of `limit` bytes, half of it head; `None` is no cap.
    pub fn new(limit: Option<u64>) -> Self {
        Self {
            limit,
            head: 0,
            edge: Edge::default(),
            head_full: false,
            tail: VecDeque::new(),
            total: 0,
        }
    }

    /// Takes the next bytes of the output; returns the part of them that belongs to the head.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let Some(limit) = self.limit else {
            return bytes;
        };
        let taken = if self.head_full {
            0
        } else {
            self.head_share(bytes, limit)
        };
        let (head, rest) = bytes.split_at(taken);
        self.keep_tail(rest, limit.saturating_sub(self.head));
        head
    }

    /// How many bytes were taken and not given to the head.
    pub(super) fn withheld(&self) -> u64 {
        match self.limit {
            Some(_) => self.total.saturating_sub(self.head),
            None => 0,
        }
    }

    /// How many of `bytes` go to the head, which may thereby become full.
    fn head_share(&mut self, bytes: &[u8], limit: u64) -> usize {
        let room = usize::try_from((limit / 2).saturating_sub(self.head)).unwrap_or(usize::MAX);
        let mut taken = room.min(bytes.len());
        self.edge.push(&bytes[..taken]);
        if taken < bytes.len() {
            // Full: only what completes the last character still belongs to it.
            while self.head + (taken as u64) < limit && taken < bytes.len() && self.edge.wants(bytes[taken]) {
                self.edge.push(&bytes[taken..=taken]);
                taken += 1;
            }
            self.head_full = taken < bytes.len() || !self.edge.incomplete();
        }
        self.head += taken as u64;
        taken
    }

    /// Appends to the ring, which never holds more than `room` bytes.
    fn keep_tail(&mut self, bytes: &[u8], room: u64) {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let bytes = &bytes[bytes.len().saturating_sub(room)..];
        let excess = (self.tail.len() + bytes.len()).saturating_sub(room);
        self.tail.drain(..excess);
        let needed = self.tail.len() + bytes.len();
        if needed > self.tail.capacity() {
            // Grow by doubling, but never past the room: the cap bounds memory, not only content.
            let capacity = needed.max(self.tail.capacity().saturating_mul(2)).min(room);
            self.tail.reserve_exact(capacity - self.tail.len());
        }
        self.tail.extend(bytes);
    }

    /// Bytes pushed so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of memory in use for withheld output.
    pub fn pipes(&self) -> usize {
        self.tail.capacity()
    }

    /// Ends the output: how much was dropped, and the tail that was kept.
    fn close(mut self) -> (u64, Vec<u8>) {
        let Some(_) = self.limit else {
            return (0, Vec::new());
        };
        let lost = self.total - self.head - self.tail.len() as u64;
        if lost > 0 {
            let broken = self.tail.iter().take_while(|byte| is_continuation(**byte)).count();
            if broken < 4 {
                self.tail.drain(..broken);
            }
        }
        let omitted = self.total - self.head - self.tail.len() as u64;
        (omitted, self.tail.into())
    }

    /// Ends the output: what is still to be printed after the head. Empty when nothing was withheld.
    pub fn finish(self) -> Vec<u8> {
        let (omitted, tail) = self.close();
        if omitted == 0 {
            return tail;
        }
        let mut out = marker(omitted).into_bytes();
        out.extend(tail);
        out
    }
}

/// A cap on output that is kept for later.
#[derive(Debug)]
pub struct HeadTail {
    head: Vec<u8>,
    cap: StreamCap,
}

impl HeadTail {
    /// A cap of `limit` bytes, half of it head; `None` keeps everything.
    pub fn new(limit: Option<u64>) -> Self {
        Self {
            head: Vec::new(),
            cap: StreamCap::new(limit),
        }
    }

    /// Takes the next bytes of the output.
    pub fn push(&mut self, bytes: &[u8]) {
        let head = self.cap.push(bytes);
        self.head.extend_from_slice(head);
    }

    /// Bytes that would be left out if the output ended here, before the cut is moved to a character's edge.
    pub fn omitted(&self) -> u64 {
        self.cap.total - self.head.len() as u64 - self.cap.tail.len() as u64
    }

    /// Bytes of memory in use.
    pub fn pipes(&self) -> usize {
        self.head.capacity() + self.cap.pipes()
    }

    /// Ends the output.
    pub fn finish(self) -> Captured {
        let total = self.cap.total;
        let (_, tail) = self.cap.close();
        Captured {
            head: self.head,
            tail,
            total,
        }
    }
}

/// An output that has ended: its first bytes, its last bytes, and its length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes. Empty for an output that was printed as it flowed.
    pub head: Vec<u8>,
    /// The last bytes; directly after the head when nothing was omitted.
    pub tail: Vec<u8>,
    /// Bytes written by the command, kept or not.
    pub total: u64,
}

impl Captured {
    /// Bytes that lie between the head and the tail. Meaningless for an output that was printed as it flowed.
    pub fn omitted(&self) -> u64 {
        self.total - self.head.len() as u64 - self.tail.len() as u64
    }

    /// Head and tail, with a line between them that counts what was omitted.
    pub fn into_bytes(self) -> Vec<u8> {
        let omitted = self.omitted();
        let mut out = self.head;
        if omitted > 0 {
            out.extend(marker(omitted).into_bytes());
        }
        out.extend(self.tail);
        out
    }
}

/// The end of the head: how many continuation bytes its last UTF-8 character still needs.
#[derive(Debug, Default)]
struct Edge {
    requests: u8,
}

impl Edge {
    fn push(&mut self, bytes: &[u8]) {
        for byte in &bytes[bytes.len().saturating_sub(4)..] {
            self.requests = match byte {
                0x80..=0xbf => self.requests.saturating_sub(1),
                0xc2..=0xdf => 1,
                0xe0..=0xef => 2,
                0xf0..=0xf4 => 3,
                0..=0x7f | 0xc0..=0xc1 | 0xf5..=0xff => 0,
            };
        }
    }

    fn incomplete(&self) -> bool {
        self.requests > 0
    }

    fn wants(&self, next: u8) -> bool {
        self.incomplete() && is_continuation(next)
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: Option<u64>, chunks: &[&[u8]]) -> Captured {
        let mut cap = HeadTail::new(limit);
        for chunk in chunks {
            cap.push(chunk);
        }
        cap.finish()
    }

    #[test]
    fn short_output_is_kept() {
        let all = captured(Some(10), &[b"0123", b"456789"]);
        assert_eq!(all.omitted(), 0);
        assert_eq!(all.into_bytes(), b"0123456789");
    }

    #[test]
    fn long_output_keeps_its_first_and_last_half() {
        let cut = captured(Some(4), &[b"0123456789"]);
        assert_eq!(
            (cut.head.as_slice(), cut.tail.as_slice(), cut.total),
            (&b"01"[..], &b"89"[..], 10)
        );
        assert_eq!(cut.into_bytes(), "01\n… [6 bytes omitted] …\n89".as_bytes());
    }

    #[test]
    fn the_result_does_not_depend_on_how_the_output_was_chunked() {
        let text = "aé€𝄞".repeat(20);
        for limit in 0..60 {
            let whole = captured(Some(limit), &[text.as_bytes()]);
            for size in 1..9 {
                let chunks: Vec<_> = text.as_bytes().chunks(size).collect();
                assert_eq!(captured(Some(limit), &chunks), whole, "limit {limit}, chunks of {size}");
            }
        }
    }

    #[test]
    fn utf8_is_never_cut_inside_a_character_and_never_exceeds_the_limit() {
        let text = "aé€𝄞".repeat(20);
        for limit in 0..text.len() as u64 + 2 {
            let cut = captured(Some(limit), &[text.as_bytes()]);
            assert!((cut.head.len() + cut.tail.len()) as u64 <= limit);
            if limit >= 8 {
                assert!(std::str::from_utf8(&cut.head).is_ok(), "head at {limit}");
                assert!(std::str::from_utf8(&cut.tail).is_ok(), "tail at {limit}");
            }
        }
    }

    #[test]
    fn binary_data_within_the_limit_is_intact() {
        let data: Vec<u8> = (0..=255).cycle().step_by(7).take(4096).collect();
        let chunks: Vec<_> = data.chunks(13).collect();
        assert_eq!(captured(Some(4096), &chunks).into_bytes(), data);
        assert_eq!(captured(None, &chunks).into_bytes(), data);
    }

    #[test]
    fn memory_stays_within_the_limit_however_much_flows() {
        let limit = 1 << 20;
        let mut cap = HeadTail::new(Some(limit));
        let chunk = vec![b'x'; 64 * 1024];
        for _ in 0..1600 {
            cap.push(&chunk);
            // The head's vector may double its capacity; the tail's never passes its room.
            assert!(cap.pipes() as u64 <= limit + limit / 2);
        }
        assert_eq!(cap.omitted(), 1600 * 64 * 1024 - limit);
    }

    #[test]
    fn a_stream_prints_its_head_at_once_and_the_rest_at_the_end() {
        let mut cap = StreamCap::new(Some(4));
        assert_eq!(cap.push(b"0"), b"0");
        assert_eq!(cap.push(b"123"), b"1");
        assert_eq!(cap.push(b"456789"), b"");
        assert_eq!(cap.finish(), "\n… [6 bytes omitted] …\n89".as_bytes());
    }

    #[test]
    fn a_stream_without_a_cap_withholds_nothing() {
        let mut cap = StreamCap::new(None);
        assert_eq!(cap.push(b"0123"), b"0123");
        assert_eq!((cap.pipes(), cap.total()), (0, 4));
        assert_eq!(cap.finish(), b"");
    }
}
