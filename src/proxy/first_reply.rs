//! The first reply of a server in a tunnel, which may change how the client's next bytes are parsed.

use super::bounds::BUFFER;
use super::tls::ServerGreeting;

/// The first reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstReply {
    /// TLS: a request for a second `ClientHello`.
    Retry,
    /// HTTP: a switch to another protocol.
    Switched,
    /// Anything else, or nothing.
    Other,
}

/// Collects a server's first bytes until the reply is known.
#[derive(Debug, Default)]
pub(super) struct FirstReplyReader {
    bytes: Vec<u8>,
}

impl FirstReplyReader {
    /// Adds bytes; the reply once it is known.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<FirstReply> {
        let room = BUFFER - self.bytes.len();
        self.bytes.extend(bytes.iter().take(room));
        let reply = match self.bytes.first()? {
            0x15 | 0x16 => match ServerGreeting::of(&self.bytes) {
                ServerGreeting::More => None,
                ServerGreeting::Retry => Some(FirstReply::Retry),
                ServerGreeting::Other => Some(FirstReply::Other),
            },
            _ => http(&self.bytes),
        };
        if self.bytes.len() < BUFFER {
            reply
        } else {
            reply.or(Some(FirstReply::Other))
        }
    }
}

/// The status of the first answer that is not an interim one.
fn http(mut bytes: &[u8]) -> Option<FirstReply> {
    const START: &[u8] = b"HTTP/1.";
    /// The position of the status.
    const STATUS: std::ops::Range<usize> = 9..12;
    loop {
        let shared = bytes.len().min(START.len());
        if bytes.get(..shared) != START.get(..shared) {
            return Some(FirstReply::Other);
        }
        match bytes.get(STATUS)? {
            b"101" => return Some(FirstReply::Switched),
            [b'1', _, _] => {}
            _ => return Some(FirstReply::Other),
        }
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        bytes = bytes.get(end + 4..)?;
    }
}
