//! Laws of the parsers of hostile bytes, for property tests and fuzzing.

use std::fmt::Debug;

use http::HeaderValue;

use super::detect::ProtocolDetector;
use super::http::body::{Body, Piece};
use super::http::head::{Finder, Framing, Head, Version};
use super::http::target::Request;
use super::socks::{self, Read};
use super::tls::HelloReader;
use crate::policy::Host;

/// A parser of what clients send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A request of HTTP.
    Request,
    /// A body in chunks.
    Chunks,
    /// The greeting of SOCKS5.
    Greeting,
    /// The request of SOCKS5.
    Socks,
    /// The first message of TLS.
    Hello,
    /// The detector of a tunnel's protocol.
    ProtocolDetector,
}

impl Reader {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Request,
        Self::Chunks,
        Self::Greeting,
        Self::Socks,
        Self::Hello,
        Self::ProtocolDetector,
    ];

    /// Checks that the bytes give the same result at once and in pieces, and that a result that is written and parsed again is
    /// the same.
    ///
    /// # Errors
    /// The law that is broken, in words.
    pub fn check(self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Self::Request => request(bytes),
            Self::Chunks => independent_of_pieces(bytes, chunks),
            Self::Greeting => independent_of_pieces(bytes, |mut steps| {
                steps.find_map(|bytes| read(bytes, socks::greeting(bytes)))
            }),
            Self::Socks => socks(bytes),
            Self::Hello => independent_of_pieces(bytes, |mut steps| {
                let mut reader = HelloReader::default();
                steps.find_map(|bytes| reader.read(bytes).transpose())
            }),
            Self::ProtocolDetector => independent_of_pieces(bytes, |mut steps| {
                let mut detector = ProtocolDetector::default();
                steps.find_map(|bytes| detector.detect(bytes).transpose())
            }),
        }
    }
}

/// The prefixes of the bytes, each longer than the one before.
type Steps<'a> = std::vec::IntoIter<&'a [u8]>;

/// Checks that a result does not depend on the pieces in which the bytes arrive.
fn independent_of_pieces<'a, T: PartialEq + Debug>(
    bytes: &'a [u8],
    reader: impl Fn(Steps<'a>) -> Option<T>,
) -> Result<(), String> {
    let at_once = reader(vec![bytes].into_iter());
    for step in [1, 2, 7] {
        let ends = (0..bytes.len()).step_by(step).chain([bytes.len()]);
        let steps: Vec<_> = ends.map(|end| bytes.get(..end).unwrap_or_default()).collect();
        let pieces = reader(steps.into_iter());
        if pieces != at_once {
            return Err(format!("whole {at_once:?}, in steps of {step} {pieces:?}"));
        }
    }
    Ok(())
}

fn read<T, E>(bytes: &[u8], read: Result<Read<T>, E>) -> Option<Result<(T, usize), E>> {
    match read {
        Ok(Read::More) => None,
        Ok(Read::Complete(what, length)) => Some(Ok((what, length.min(bytes.len())))),
        Err(why) => Some(Err(why)),
    }
}

fn same<T: PartialEq + Debug>(what: &str, one: &T, other: &T) -> Result<(), String> {
    (one == other)
        .then_some(())
        .ok_or_else(|| format!("{what}: {one:?} and {other:?}"))
}

fn request(bytes: &[u8]) -> Result<(), String> {
    independent_of_pieces(bytes, |mut steps| {
        let mut finder = Finder::default();
        steps.find_map(|bytes| finder.find(bytes).transpose())
    })?;
    let Ok(Some(length)) = Finder::default().find(bytes) else {
        return Ok(());
    };
    let Ok(head) = Head::read(bytes.get(..length).unwrap_or_default()) else {
        return Ok(());
    };
    let rewritten = written(&head);
    same(
        "written anew",
        &Finder::default().find(&rewritten),
        &Ok(Some(rewritten.len())),
    )?;
    same("written anew", &Head::read(&rewritten).as_ref(), &Ok(&head))?;
    let Ok(Request { host, port, .. }) = Request::of(&head) else {
        return Ok(());
    };
    canonical(&host)?;
    if port == 0 || head.host.iter().any(|named| named.host != host) {
        return Err(format!("{head:?} is for {host}:{port}"));
    }
    Ok(())
}

fn written(head: &Head) -> Vec<u8> {
    let version = match head.version {
        Version::Http10 => "1.0",
        Version::Http11 => "1.1",
    };
    let mut text = format!("{} {} HTTP/{version}\r\n", head.method, head.target).into_bytes();
    for (name, value) in &head.headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b":");
        text.extend_from_slice(HeaderValue::as_bytes(value));
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text
}

/// Checks that the text of a host is parsed as the same host.
fn canonical(host: &Host) -> Result<(), String> {
    same("its own text", &Host::parse(&host.to_string()).as_ref(), &Ok(host))
}

fn socks(bytes: &[u8]) -> Result<(), String> {
    independent_of_pieces(bytes, |mut steps| {
        steps.find_map(|bytes| read(bytes, socks::request(bytes)))
    })?;
    match socks::request(bytes) {
        Ok(Read::Complete((host, 1..), _)) => canonical(&host),
        Ok(Read::Complete((host, 0), _)) => Err(format!("{host} without a port")),
        Ok(Read::More) | Err(_) => Ok(()),
    }
}

/// The content of a body, and its length with the framing.
fn chunks(steps: Steps<'_>) -> Option<Result<(Vec<u8>, usize), super::Unreadable>> {
    let (mut body, mut at, mut data) = (Body::new(Framing::Chunked), 0, Vec::new());
    for bytes in steps {
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            match body.next(rest) {
                Ok(Piece::Data(length)) => {
                    data.extend_from_slice(rest.get(..length).unwrap_or_default());
                    at += length;
                }
                Ok(Piece::Framing(length)) => at += length,
                Ok(Piece::More) => break,
                Ok(Piece::End) => return Some(Ok((data, at))),
                Err(why) => return Some(Err(why)),
            }
        }
    }
    None
}
