//! The strict parser of request heads. A head that could be parsed in two ways is refused.

use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::authority::Authority;
use crate::proxy::bounds::{BUFFER, HEADERS, NAMED};
use crate::proxy::unreadable::Unreadable;

/// The parsed head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy) struct Head {
    pub(in crate::proxy) method: Method,
    /// Not empty, visible ASCII; not parsed further.
    pub(in crate::proxy) target: Box<str>,
    pub(in crate::proxy) version: Version,
    pub(in crate::proxy) headers: HeaderMap,
    pub(in crate::proxy) framing: Framing,
    /// The Host header. Only HTTP/1.0 may lack it.
    pub(in crate::proxy) host: Option<Authority>,
    pub(in crate::proxy) expects: Expects,
}

/// The versions that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Version {
    Http10,
    Http11,
}

/// The framing of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Framing {
    /// There is none.
    None,
    /// A length in bytes.
    Length(u64),
    /// Chunks, which carry their lengths.
    Chunked,
}

/// Whether the client waits for `100 Continue` before it sends the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Expects {
    Nothing,
    Continue,
}

/// Finds the end of a head while its bytes arrive. It scans each byte once.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Finder {
    seen: usize,
    line: usize,
    lines: usize,
}

impl Finder {
    /// The length of the head at the start of these bytes, with its blank line; `None` while more bytes are needed.
    /// Each call gets all bytes so far.
    ///
    /// # Errors
    /// The bytes cannot become a head.
    pub(in crate::proxy) fn find(&mut self, bytes: &[u8]) -> Result<Option<usize>, Unreadable> {
        while let Some(byte) = bytes.get(self.seen) {
            let before = self.seen.checked_sub(1).and_then(|at| bytes.get(at));
            match (byte, before) {
                (b'\n', Some(b'\r')) => {
                    if let Some(end) = self.end_line(bytes)? {
                        return Ok(Some(end));
                    }
                }
                (b'\n', _) | (_, Some(b'\r')) => return Err(Unreadable::LineEnd),
                (b'\t' | b'\r' | b' '..=b'~' | 0x80.., _) => {}
                (_, _) => return Err(Unreadable::Byte),
            }
            self.seen += 1;
            if self.seen > BUFFER {
                return Err(Unreadable::TooLong);
            }
        }
        // The buffer is full, so the head is too long.
        if bytes.len() >= BUFFER {
            return Err(Unreadable::TooLong);
        }
        Ok(None)
    }

    /// Notes the end of a line. It returns the end of the head where the line is blank.
    fn end_line(&mut self, bytes: &[u8]) -> Result<Option<usize>, Unreadable> {
        let line = bytes.get(self.line..self.seen - 1).unwrap_or_default();
        self.line = self.seen + 1;
        self.lines += 1;
        if self.lines == 1 {
            request_line(line)?;
            return Ok(None);
        }
        if line.is_empty() {
            return Ok(Some(self.line));
        }
        if self.lines > HEADERS + 1 {
            return Err(Unreadable::TooMany);
        }
        Ok(None)
    }
}

impl Head {
    /// Parses a head that [`Finder::find`] found.
    ///
    /// # Errors
    /// The bytes are no head, or an ambiguous one.
    pub(in crate::proxy) fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut lines = bytes.strip_suffix(b"\r\n\r\n").ok_or(Unreadable::Short)?;
        let (line, rest) = split_line(lines);
        let (method, target, version) = request_line(line)?;
        lines = rest;
        let mut headers = HeaderMap::new();
        while !lines.is_empty() {
            let (line, rest) = split_line(lines);
            let (name, value) = header(line)?;
            headers.append(name, value);
            lines = rest;
        }
        if names_too_many(&headers) {
            return Err(Unreadable::TooManyNamed);
        }
        if connections(&headers).any(|value| value.to_str().is_err()) {
            return Err(Unreadable::Header);
        }
        let framing = framing(&headers, version)?;
        match framing {
            Framing::None | Framing::Length(0) => {}
            Framing::Length(_) | Framing::Chunked if matches!(method, Method::GET | Method::HEAD) => {
                return Err(Unreadable::Body);
            }
            Framing::Length(_) | Framing::Chunked => {}
        }
        Ok(Self {
            framing,
            host: host(&headers, version)?,
            expects: expects(&headers, version)?,
            method,
            target,
            version,
            headers,
        })
    }
}

fn connections(headers: &HeaderMap) -> impl Iterator<Item = &HeaderValue> {
    let of_proxies = headers.get_all("proxy-connection");
    headers.get_all(CONNECTION).into_iter().chain(of_proxies)
}

/// The words of all Connection headers.
pub(super) fn connection_tokens(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let texts = connections(headers).filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',').map(str::trim))
}

/// Whether the Connection headers have more words than [`NAMED`]. Each header is compared with each word, so their number is
/// bounded.
pub(super) fn names_too_many(headers: &HeaderMap) -> bool {
    connection_tokens(headers).nth(NAMED).is_some()
}

fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.windows(2).position(|pair| pair == b"\r\n") {
        Some(end) => (
            bytes.get(..end).unwrap_or_default(),
            bytes.get(end + 2..).unwrap_or_default(),
        ),
        None => (bytes, &[]),
    }
}

/// Three words with one blank between them.
fn request_line(line: &[u8]) -> Result<(Method, Box<str>, Version), Unreadable> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Unreadable::RequestLine);
    };
    let version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        other if other.starts_with(b"HTTP/") => return Err(Unreadable::Version),
        _ => return Err(Unreadable::RequestLine),
    };
    if target.is_empty() || !target.iter().all(u8::is_ascii_graphic) {
        return Err(Unreadable::RequestLine);
    }
    let target = str::from_utf8(target).map_err(|_| Unreadable::RequestLine)?;
    let method = Method::from_bytes(method).map_err(|_| Unreadable::RequestLine)?;
    Ok((method, target.into(), version))
}

fn header(line: &[u8]) -> Result<(HeaderName, HeaderValue), Unreadable> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Unreadable::Header)?;
    let (name, value) = line.split_at(colon);
    let value = trim(value.get(1..).unwrap_or_default());
    // This refuses blanks before the colon, and a line that continues the one before.
    let name = HeaderName::from_bytes(name).map_err(|_| Unreadable::Header)?;
    let value = HeaderValue::from_bytes(value).map_err(|_| Unreadable::Header)?;
    Ok((name, value))
}

/// The bytes without the blanks and tabs around them.
fn trim(value: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let (Some(first), Some(last)) = (value.iter().position(is_text), value.iter().rposition(is_text)) else {
        return &[];
    };
    value.get(first..=last).unwrap_or_default()
}

/// The value of a header; an error where the header is there twice.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName, twice: Unreadable) -> Result<Option<&'a [u8]>, Unreadable> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (first, None) => Ok(first.map(HeaderValue::as_bytes)),
        (_, Some(_)) => Err(twice),
    }
}

fn framing(headers: &HeaderMap, version: Version) -> Result<Framing, Unreadable> {
    let length = only(headers, &CONTENT_LENGTH, Unreadable::Length)?;
    let encoding = only(headers, &TRANSFER_ENCODING, Unreadable::Encoding)?;
    match (length, encoding, version) {
        (None, None, _) => Ok(Framing::None),
        (Some(_), Some(_), _) => Err(Unreadable::Length),
        (Some(length), None, _) => {
            // Digits only: a sign, a blank, a list and a number beyond 64 bits are refused.
            let plain = (1..=18).contains(&length.len()) && length.iter().all(u8::is_ascii_digit);
            let length = str::from_utf8(length).ok().filter(|_| plain);
            let length = length.and_then(|digits| digits.parse().ok());
            length.map(Framing::Length).ok_or(Unreadable::Length)
        }
        (None, Some(encoding), Version::Http11) if encoding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
        (None, Some(_), Version::Http11 | Version::Http10) => Err(Unreadable::Encoding),
    }
}

fn host(headers: &HeaderMap, version: Version) -> Result<Option<Authority>, Unreadable> {
    match (only(headers, &HOST, Unreadable::HostTwice)?, version) {
        (Some(text), _) => {
            let text = str::from_utf8(text).map_err(|_| Unreadable::Byte)?;
            Authority::parse(text).map(Some)
        }
        (None, Version::Http10) => Ok(None),
        (None, Version::Http11) => Err(Unreadable::HostMissing),
    }
}

fn expects(headers: &HeaderMap, version: Version) -> Result<Expects, Unreadable> {
    match (only(headers, &EXPECT, Unreadable::Expect)?, version) {
        (Some(text), Version::Http11) if text.eq_ignore_ascii_case(b"100-continue") => Ok(Expects::Continue),
        (Some(_), Version::Http11) => Err(Unreadable::Expect),
        (None, _) | (_, Version::Http10) => Ok(Expects::Nothing),
    }
}
