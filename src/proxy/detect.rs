//! Detects the protocol in a tunnel by its first bytes: TLS, HTTP, or something else.
//!
//! Bytes that may still become HTTP are sent on meanwhile: a client may wait for a reply to less than a line, and
//! no server acts on less than a line of HTTP. From `HTTP/` on, bytes are held until the whole head is judged.
//!
//! Servers differ in the bytes that they skip before a request and accept as blanks in it. So everything that any server
//! skips is skipped here, and any line with an HTTP version counts as HTTP.

use super::attempt::Refusal;
use super::bounds::BUFFER;
use super::tls::{HelloError, begins_ssl2, begins_tls};
use super::unreadable::Unreadable;

/// The protocol of a client in a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TunnelProtocol {
    /// TLS, from the first byte on.
    Tls,
    /// HTTP/1, or what a server could parse as that.
    Http,
    /// Neither.
    Other,
}

/// The prefixes of the PROXY protocol: a server would believe the client address in it.
const PROXY_1: &[u8] = b"PROXY";
const PROXY_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The versions at the end of a request line, without their digits. Some HTTP servers accept the others as well.
const VERSIONS: [&[u8]; 3] = [b"http/", b"rtsp/", b"ice/"];
/// The first words of a line without a version that some server parses as HTTP/0.9.
const METHODS: [&[u8]; 9] = [
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"PATCH", b"CONNECT",
];

/// Scans a tunnel's first bytes incrementally, each byte once.
#[derive(Debug, Default)]
pub(super) struct ProtocolDetector {
    seen: usize,
    at: At,
}

/// The position in the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum At {
    /// Before the first word.
    #[default]
    Start,
    /// In the first word.
    Token,
    /// After the first word.
    Rest,
    /// In a line that is no request.
    NotHttp,
}

impl ProtocolDetector {
    /// The protocol; `None` while more bytes are needed. Each call gets all bytes so far.
    ///
    /// # Errors
    /// A protocol that is refused.
    pub(super) fn detect(&mut self, bytes: &[u8]) -> Result<Option<TunnelProtocol>, Refusal> {
        match (begins_tls(bytes), begins_ssl2(bytes)) {
            _ if bytes.is_empty() => return Ok(None),
            (Some(true), _) => return Ok(Some(TunnelProtocol::Tls)),
            (_, Some(true)) => return Err(HelloError::Ssl2.into()),
            (None, _) | (_, None) => return Ok(None),
            (Some(false), Some(false)) => {}
        }
        if bytes.starts_with(PROXY_2) {
            return Err(Refusal::Tunnelled(Unreadable::Preface));
        }
        while let Some(byte) = bytes.get(self.seen) {
            self.seen += 1;
            if let Some(protocol) = self.step(*byte, bytes) {
                let line = bytes.get(..self.seen).unwrap_or_default();
                return match tokens(line).next() {
                    Some(PROXY_1) => Err(Refusal::Tunnelled(Unreadable::Preface)),
                    Some(_) | None => Ok(Some(protocol)),
                };
            }
        }
        match (bytes.len() >= BUFFER, self.at) {
            (false, _) => Ok(None),
            (true, At::NotHttp) => Ok(Some(TunnelProtocol::Other)),
            // A server that accepts longer lines could parse it as a request.
            (true, At::Start | At::Token | At::Rest) => Err(Refusal::Tunnelled(Unreadable::TooLong)),
        }
    }

    fn step(&mut self, byte: u8, bytes: &[u8]) -> Option<TunnelProtocol> {
        if byte == b'/' && self.ends_in_a_version(bytes) {
            return Some(TunnelProtocol::Http);
        }
        match (self.at, byte) {
            (At::Start, byte) if is_separator(byte) => None,
            (At::NotHttp | At::Rest | At::Token, b'\n') => {
                let line = bytes.get(..self.seen).unwrap_or_default();
                Some(if is_old_request(line) {
                    TunnelProtocol::Http
                } else {
                    TunnelProtocol::Other
                })
            }
            (At::Token | At::Rest, byte) if is_binary(byte) => self.enter(At::NotHttp),
            (At::Token, byte) if is_separator(byte) => self.enter(At::Rest),
            (At::Start | At::Token, byte) if is_token(byte) => self.enter(At::Token),
            (At::Start | At::Token, _) => self.enter(At::NotHttp),
            (At::NotHttp | At::Rest, _) => None,
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

    const fn enter(&mut self, at: At) -> Option<TunnelProtocol> {
        self.at = at;
        None
    }
}

/// Bytes that no line of text has.
const fn is_binary(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0e..=0x1b | 0x7f)
}

/// Bytes that some server accepts as blanks: control bytes, and blanks of Latin-1.
const fn is_separator(byte: u8) -> bool {
    byte <= b' ' || matches!(byte, 0x7f..=0xa0)
}

fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| is_separator(*byte)).filter(|token| !token.is_empty())
}

/// Characters of method names.
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

/// Whether a server could parse a line as HTTP/0.9: a method and an argument.
pub(super) fn is_old_request(line: &[u8]) -> bool {
    let mut tokens = tokens(line);
    tokens.next().is_some_and(|token| METHODS.contains(&token)) && tokens.next().is_some()
}
