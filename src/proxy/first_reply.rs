//! What a server's first bytes say, as far as they change what its client's next bytes mean.

use super::bounds::BUFFER;
use super::tls::Greeting;

/// What the server said first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// TLS: it wants a second `ClientHello`.
    Retry,
    /// HTTP: from now on the connection is something else.
    Switched,
    /// Anything else, or nothing.
    Other,
}

/// A server's first bytes, until they say something.
#[derive(Debug, Default)]
pub(super) struct Answering {
    bytes: Vec<u8>,
}

impl Answering {
    /// Takes what the server sent next.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<Answer> {
        let room = BUFFER - self.bytes.len();
        self.bytes.extend(bytes.iter().take(room));
        let answer = match self.bytes.first()? {
            0x15 | 0x16 => match Greeting::of(&self.bytes) {
                Greeting::More => None,
                Greeting::Retry => Some(Answer::Retry),
                Greeting::Other => Some(Answer::Other),
            },
            _ => http(&self.bytes),
        };
        if self.bytes.len() < BUFFER {
            answer
        } else {
            answer.or(Some(Answer::Other))
        }
    }
}

/// The status of the first answer that is not an interim one.
fn http(mut bytes: &[u8]) -> Option<Answer> {
    const START: &[u8] = b"HTTP/1.";
    /// Where the status stands.
    const STATUS: std::ops::Range<usize> = 9..12;
    loop {
        let shared = bytes.len().min(START.len());
        if bytes.get(..shared) != START.get(..shared) {
            return Some(Answer::Other);
        }
        match bytes.get(STATUS)? {
            b"101" => return Some(Answer::Switched),
            [b'1', _, _] => {}
            _ => return Some(Answer::Other),
        }
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        bytes = bytes.get(end + 4..)?;
    }
}
