//! Lines that carry the hash of the line before and their own.
//!
//! A line is a JSON object that ends with `,"hash":"…"}`: SHA-256 of all bytes before that. Among them is `prev`, the hash of
//! the line before, so no byte of a line can change without its own hash, and no line without the next.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::fault::Wrong;
use crate::policy::hex::{hex, unhex};

/// The hash of a record.
pub type Hash = [u8; 32];

/// The text between the hashed bytes and the hash.
const BEFORE_HASH: &[u8] = b",\"hash\":\"";
const AFTER_HASH: &[u8] = b"\"}";
const DIGITS: usize = 64;
const TRAILER: usize = BEFORE_HASH.len() + DIGITS + AFTER_HASH.len();

/// The last record of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) seq: u64,
    pub(super) hash: Hash,
}

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The first line of a file.
    Header(Header),
    /// Any other.
    Record,
}

/// The fields of the first line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// The number of the file, from 1.
    pub(super) file: u64,
    /// The files that were removed, if some were.
    pub(super) removed: Option<Removed>,
    /// The record that it claims to follow.
    pub(super) prev: Option<Link>,
}

/// The last of the files that were removed, and the last record in it. Those before it were removed as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Removed {
    pub(super) file: u64,
    pub(super) last: Link,
}

/// The fields of a line that the chain is about; the others are held by the hash.
#[derive(Deserialize)]
struct Fields<'a> {
    seq: u64,
    event: &'a str,
    prev: Option<&'a str>,
    #[serde(default)]
    format: Option<u32>,
    #[serde(default)]
    file: Option<u64>,
    #[serde(default, borrow)]
    removed: Option<RemovedFields<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RemovedFields<'a> {
    file: u64,
    seq: u64,
    hash: &'a str,
}

/// The event of the first line of a file.
pub(super) const HEADER: &str = "header";
/// The version of the format.
pub(super) const FORMAT: u32 = 1;

/// What every record has around its event. The order is that of the line.
#[derive(Serialize)]
pub(super) struct Envelope<'a, E: Serialize> {
    pub(super) seq: u64,
    pub(super) time: String,
    pub(super) session: &'a str,
    #[serde(flatten)]
    pub(super) event: E,
    pub(super) prev: Option<String>,
}

/// A record as a line, without its newline, and its link.
pub(super) fn seal_record<E: Serialize>(envelope: &Envelope<'_, E>) -> serde_json::Result<(Vec<u8>, Link)> {
    let mut bytes = serde_json::to_vec(envelope)?;
    bytes.pop();
    let hash: Hash = Sha256::digest(&bytes).into();
    bytes.extend_from_slice(BEFORE_HASH);
    bytes.extend_from_slice(hex(&hash).as_bytes());
    bytes.extend_from_slice(AFTER_HASH);
    let seq = envelope.seq;
    Ok((bytes, Link { seq, hash }))
}

/// A parsed line, not yet checked against the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ParsedLine {
    /// Its link.
    pub(super) link: Link,
    /// The hash that it claims to follow.
    pub(super) prev: Option<Hash>,
    pub(super) kind: Kind,
}

impl ParsedLine {
    /// Verifies that it follows `before`; `None` for the first record.
    pub(super) fn follows(&self, before: Option<&Link>) -> Result<(), Wrong> {
        let found = self.link.seq;
        let expected = before.map_or(0, |before| before.seq.saturating_add(1));
        if found > expected {
            return Err(Wrong::Missing {
                from: expected,
                to: found.saturating_sub(1),
            });
        }
        if found < expected {
            return Err(Wrong::OutOfPlace { expected, found });
        }
        if self.prev != before.map(|before| before.hash) {
            return Err(Wrong::DoesNotFollow);
        }
        Ok(())
    }
}

/// The state of the hash of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seal {
    /// None.
    Absent,
    /// It does not match.
    Broken,
    /// It matches.
    Valid(Hash),
}

/// Checks the hash of a line.
pub(super) fn seal(bytes: &[u8]) -> Seal {
    let Some(hashed) = bytes.len().checked_sub(TRAILER) else {
        return Seal::Absent;
    };
    let (body, trailer) = bytes.split_at(hashed);
    let digits = trailer
        .strip_prefix(BEFORE_HASH)
        .and_then(|rest| rest.strip_suffix(AFTER_HASH));
    let Some(digits) = digits else {
        return Seal::Absent;
    };
    let hash: Hash = Sha256::digest(body).into();
    if hex(&hash).as_bytes() == digits {
        Seal::Valid(hash)
    } else {
        Seal::Broken
    }
}

/// Parses a line, and checks its own hash.
pub(super) fn parse_line(bytes: &[u8]) -> Result<ParsedLine, Wrong> {
    let hash = match seal(bytes) {
        Seal::Valid(hash) => hash,
        Seal::Broken => return Err(Wrong::Edited),
        Seal::Absent => return Err(Wrong::NoRecord),
    };
    let fields: Fields<'_> = serde_json::from_slice(bytes).map_err(|_| Wrong::NoRecord)?;
    let prev = fields.prev.map(read_hash).transpose()?;
    let link = Link { seq: fields.seq, hash };
    let kind = if fields.event == HEADER {
        let file = fields.file.ok_or(Wrong::NoRecord)?;
        match fields.format {
            Some(FORMAT) => {}
            Some(other) => return Err(Wrong::OtherFormat(other)),
            None => return Err(Wrong::NoRecord),
        }
        let removed = fields.removed.map(|removed| {
            Ok(Removed {
                file: removed.file,
                last: Link {
                    seq: removed.seq,
                    hash: read_hash(removed.hash)?,
                },
            })
        });
        Kind::Header(Header {
            file,
            removed: removed.transpose()?,
            prev: match (fields.seq.checked_sub(1), prev) {
                (Some(seq), Some(hash)) => Some(Link { seq, hash }),
                (None, None) => None,
                (Some(_), None) | (None, Some(_)) => return Err(Wrong::DoesNotFollow),
            },
        })
    } else {
        Kind::Record
    };
    Ok(ParsedLine { link, prev, kind })
}

fn read_hash(text: &str) -> Result<Hash, Wrong> {
    parse_hash(text).ok_or(Wrong::NoRecord)
}

/// A hash as it is written: 64 digits, in lower case.
pub(super) fn parse_hash(text: &str) -> Option<Hash> {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let bytes = text.bytes().all(lower).then(|| unhex(text)).flatten()?;
    bytes.try_into().ok()
}
