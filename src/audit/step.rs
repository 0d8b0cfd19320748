//! The next record of a log, for writers and verification alike.
//!
//! **What a crash leaves behind the head** is records, and after them perhaps a part of one, or blocks that never reached the
//! disk and read as zeros. That was never certainly written, and is removed by whoever writes next. A line that bears the hash of a record, and
//! is none that may stand there, is something else: no crash makes one.

use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use super::chain::{self, Kind, Link, ParsedLine, Seal};
use super::fault::Wrong;
use super::lines::{Lines, Next};
use crate::policy::hex::hex;

/// What follows a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The record that follows.
    Record(Link),
    /// Nothing.
    End,
    /// What a crash left, up to the end of the file.
    Torn(Torn),
}

/// What a file begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum First {
    /// A whole line, which may be the first of a file.
    Line(ParsedLine),
    /// Nothing.
    End,
    /// What a crash left of that line.
    Torn(Torn),
}

/// What a crash left behind the last record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Torn {
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// Whether a position was durable, so that no crash explains a fault there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durable {
    Yes,
    No,
}

/// A fault, or a failure to read.
#[derive(Debug)]
pub(super) enum WalkError {
    Wrong(Wrong),
    Io(io::Error),
}

impl From<io::Error> for WalkError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Wrong> for WalkError {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(wrong)
    }
}

/// Reads what follows the record `before`.
pub(super) fn next<R: Read>(lines: &mut Lines<R>, before: &Link, durable: Durable) -> Result<Step, WalkError> {
    let (mut garbage, wrong) = match lines.next()? {
        Next::End => return Ok(Step::End),
        Next::Partial(bytes) => return Ok(Step::Torn(Torn::of(bytes))),
        Next::TooLong(bytes) => (Garbage::after(before, bytes), Wrong::TooLong),
        Next::Line(bytes) => {
            let wrong = match chain::parse_line(bytes) {
                Ok(opened) => {
                    opened.follows(Some(before))?;
                    return match opened.kind {
                        Kind::Record => Ok(Step::Record(opened.link)),
                        Kind::Header(_) => Err(Wrong::StrayHeader.into()),
                    };
                }
                Err(wrong) => wrong,
            };
            if is_written(bytes) {
                return Err(wrong.into());
            }
            let mut garbage = Garbage::after(before, bytes);
            garbage.line_ended();
            (garbage, wrong)
        }
    };
    if durable == Durable::Yes {
        return Err(wrong.into());
    }
    while garbage.take(lines, &wrong)? {}
    Ok(Step::Torn(garbage.torn()))
}

/// Whether one of these lines is the record with this number.
pub(super) fn contains_record<R: Read>(lines: &mut Lines<R>, seq: u64) -> io::Result<bool> {
    loop {
        match lines.next()? {
            Next::End => return Ok(false),
            Next::Line(bytes) if chain::parse_line(bytes).is_ok_and(|opened| opened.link.seq == seq) => {
                return Ok(true);
            }
            Next::Line(_) | Next::Partial(_) | Next::TooLong(_) => {}
        }
    }
}

/// Reads the first line of a file. `after`: some record before it, if there is one.
pub(super) fn first<R: Read>(lines: &mut Lines<R>, after: Option<&Link>, durable: Durable) -> Result<First, WalkError> {
    match lines.next()? {
        Next::End => Ok(First::End),
        // Nothing that Stockade did not begin to write is removed.
        Next::Partial(bytes) if is_partial_header(bytes, after) => Ok(First::Torn(Torn::of(bytes))),
        Next::Line(bytes) if durable == Durable::No && is_hole(bytes) => {
            let torn = Torn::of(&[bytes, b"\n"].concat());
            match lines.next()? {
                Next::End => Ok(First::Torn(torn)),
                Next::Line(_) | Next::Partial(_) | Next::TooLong(_) => Err(Wrong::NoHeader.into()),
            }
        }
        Next::Partial(_) | Next::TooLong(_) => Err(Wrong::NoHeader.into()),
        Next::Line(bytes) => match chain::parse_line(bytes) {
            Ok(opened) => Ok(First::Line(opened)),
            Err(Wrong::NoRecord) => Err(Wrong::NoHeader.into()),
            Err(wrong) => Err(wrong.into()),
        },
    }
}

/// Whether these bytes may be the beginning of a first line, or a block that never reached the disk in its place.
fn is_partial_header(bytes: &[u8], after: Option<&Link>) -> bool {
    let begins = |with: &[u8]| bytes.starts_with(with) || with.starts_with(bytes);
    is_hole(bytes)
        || match after {
            None => begins(b"{\"seq\":0,\"time\":\""),
            Some(_) => begins(b"{\"seq\":"),
        }
}

/// Whether these are nothing but zeros.
fn is_hole(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0)
}

/// Whether a line bears the hash of a record, and no block of it is missing: somebody wrote it as it is.
fn is_written(bytes: &[u8]) -> bool {
    match chain::seal(bytes) {
        Seal::Absent => false,
        Seal::Broken => !bytes.contains(&0),
        Seal::Valid(_) => true,
    }
}

/// More than any crash leaves of what was under way: so much is written to the disk long before. Somebody has made a file longer
/// that has more, perhaps by a hole that costs nothing to make and long to read.
const MOST_GARBAGE: u64 = 32 << 20;

/// What is no record, and all that stands behind it.
struct Garbage {
    bytes: u64,
    hash: Sha256,
    /// Some block of it never reached the disk. Then records may stand behind that, with greater numbers.
    has_hole: bool,
    /// The last record before it, and then in it.
    last: Link,
    /// The line before was that record.
    is_adjacent: bool,
}

impl Garbage {
    fn after(before: &Link, bytes: &[u8]) -> Self {
        let mut garbage = Self {
            bytes: 0,
            hash: Sha256::new(),
            has_hole: false,
            last: *before,
            is_adjacent: false,
        };
        garbage.add(bytes);
        garbage
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
        self.has_hole |= bytes.contains(&0);
    }

    fn line_ended(&mut self) {
        self.bytes += 1;
        self.hash.update(b"\n");
    }

    /// Takes what comes next; false at the end. `wrong`: what it is if this is not what a crash leaves.
    fn take<R: Read>(&mut self, lines: &mut Lines<R>, wrong: &Wrong) -> Result<bool, WalkError> {
        match lines.next()? {
            Next::End => return Ok(false),
            Next::Partial(bytes) | Next::TooLong(bytes) => {
                self.add(bytes);
                self.is_adjacent = false;
                if self.bytes > MOST_GARBAGE {
                    return Err(wrong.clone().into());
                }
            }
            Next::Line(bytes) => {
                if is_written(bytes) {
                    self.record(bytes, wrong)?;
                } else {
                    self.is_adjacent = false;
                }
                self.add(bytes);
                self.line_ended();
            }
        }
        Ok(true)
    }

    /// A record behind blocks that are missing: written after what is lost, and in its order.
    fn record(&mut self, bytes: &[u8], wrong: &Wrong) -> Result<(), WalkError> {
        if !self.has_hole {
            return Err(wrong.clone().into());
        }
        let opened = chain::parse_line(bytes)?;
        // At least one record is lost where the first bytes behind the last one are missing.
        let least = self.last.seq.saturating_add(2);
        if self.is_adjacent {
            opened.follows(Some(&self.last))?;
        } else if opened.link.seq < least {
            let (expected, found) = (least, opened.link.seq);
            return Err(Wrong::OutOfPlace { expected, found }.into());
        }
        self.last = opened.link;
        self.is_adjacent = true;
        Ok(())
    }

    fn torn(self) -> Torn {
        Torn {
            bytes: self.bytes,
            sha256: hex(&self.hash.finalize()),
        }
    }
}

impl Torn {
    fn of(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.len() as u64,
            sha256: hex(&Sha256::digest(bytes)),
        }
    }
}
