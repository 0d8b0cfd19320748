//! What a tunnel's first bytes are: TLS, HTTP, or something else.
//!
//! What could still become HTTP is sent on meanwhile, because a client may wait for an answer to less than a line, and
//! no server acts on less than a line of HTTP. From `HTTP/` on it is held until its whole head is judged.
//!
//! Servers differ in what they overlook before a request and take for blanks in it, so all that any of them does is
//! overlooked here, and a line that names a version of HTTP is HTTP, whatever else stands in it.

use super::attempt::Refusal;
use super::bounds::BUFFER;
use super::tls::{HelloError, begins_ssl2, begins_tls};
use super::unreadable::Unreadable;

/// What a client speaks in a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoken {
    /// TLS, from the first byte on.
    Tls,
    /// HTTP/1, or what somebody could take for that.
    Http,
    /// Neither.
    Other,
}

/// Before a request, whom a proxy speaks for: its server would believe it, and nothing behind it was looked at.
const PROXY_1: &[u8] = b"PROXY";
const PROXY_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// How every request line ends, but for its last digits. Some servers of HTTP read the others like it.
const VERSIONS: [&[u8]; 3] = [b"http/", b"rtsp/", b"ice/"];
/// What a line without a version begins with, where somebody takes it for HTTP/0.9.
const METHODS: [&[u8]; 9] = [
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"PATCH", b"CONNECT",
];

/// Looks at a tunnel's first bytes as they come in. Looks at each byte of a line once.
#[derive(Debug, Default)]
pub(super) struct Look {
    seen: usize,
    at: At,
}

/// Where in the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum At {
    /// Before the first word.
    #[default]
    Start,
    /// In it.
    Word,
    /// Behind it.
    Rest,
    /// Where nobody begins a request who does not mean two to be read in it.
    NoRequest,
}

impl Look {
    /// What it is; `None` while more must come. Each call is given what the one before was given, and more behind it.
    ///
    /// # Errors
    /// What is not let through, whatever comes behind it.
    pub(super) fn at(&mut self, bytes: &[u8]) -> Result<Option<Spoken>, Refusal> {
        match (begins_tls(bytes), begins_ssl2(bytes)) {
            _ if bytes.is_empty() => return Ok(None),
            (Some(true), _) => return Ok(Some(Spoken::Tls)),
            (_, Some(true)) => return Err(HelloError::Ssl2.into()),
            (None, _) | (_, None) => return Ok(None),
            (Some(false), Some(false)) => {}
        }
        if bytes.starts_with(PROXY_2) {
            return Err(Refusal::Tunnelled(Unreadable::Preface));
        }
        while let Some(byte) = bytes.get(self.seen) {
            self.seen += 1;
            if let Some(spoken) = self.step(*byte, bytes) {
                let line = bytes.get(..self.seen).unwrap_or_default();
                return match words(line).next() {
                    Some(PROXY_1) => Err(Refusal::Tunnelled(Unreadable::Preface)),
                    Some(_) | None => Ok(Some(spoken)),
                };
            }
        }
        match (bytes.len() >= BUFFER, self.at) {
            (false, _) => Ok(None),
            (true, At::NoRequest) => Ok(Some(Spoken::Other)),
            // Nobody's first line is that long, but a server that waits for more would read a request in it.
            (true, At::Start | At::Word | At::Rest) => Err(Refusal::Tunnelled(Unreadable::TooLong)),
        }
    }

    /// Whether somebody could take these bytes, behind which nothing comes, for a request.
    pub(super) fn ended(bytes: &[u8]) -> bool {
        is_old(bytes)
    }

    fn step(&mut self, byte: u8, bytes: &[u8]) -> Option<Spoken> {
        if byte == b'/' && self.ends_in_a_version(bytes) {
            return Some(Spoken::Http);
        }
        match (self.at, byte) {
            (At::Start, byte) if is_blank(byte) => None,
            (At::NoRequest | At::Rest | At::Word, b'\n') => {
                let line = bytes.get(..self.seen).unwrap_or_default();
                Some(if is_old(line) { Spoken::Http } else { Spoken::Other })
            }
            (At::Word | At::Rest, byte) if is_binary(byte) => self.go(At::NoRequest),
            (At::Word, byte) if is_blank(byte) => self.go(At::Rest),
            (At::Start | At::Word, byte) if is_token(byte) => self.go(At::Word),
            (At::Start | At::Word, _) => self.go(At::NoRequest),
            (At::NoRequest | At::Rest, _) => None,
        }
    }

    fn ends_in_a_version(&self, bytes: &[u8]) -> bool {
        let line = bytes.get(..self.seen).unwrap_or_default();
        let mut versions = VERSIONS.iter();
        versions.any(|version| {
            let start = line.len().checked_sub(version.len());
            let end = start.and_then(|start| line.get(start..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(version))
        })
    }

    const fn go(&mut self, at: At) -> Option<Spoken> {
        self.at = at;
        None
    }
}

/// What stands in no line of text.
const fn is_binary(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0e..=0x1b | 0x7f)
}

/// What somebody splits words at, or overlooks before them: control bytes, and blanks of Latin-1.
const fn is_blank(byte: u8) -> bool {
    byte <= b' ' || matches!(byte, 0x7f..=0xa0)
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty())
}

/// What methods are made of.
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

/// Whether somebody could take a line for a request of HTTP/0.9: a method, and anything behind it.
fn is_old(line: &[u8]) -> bool {
    let mut words = words(line);
    words.next().is_some_and(|word| METHODS.contains(&word)) && words.next().is_some()
}
