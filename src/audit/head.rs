//! How far a log was certainly written: kept beside it, replaced all at once.
//!
//! Whoever cuts records off the end of a log leaves a log that is whole. The head says that there were more.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use serde::{Deserialize, Serialize};

use super::chain::{self, FORMAT, Link, parse_hash};
use super::error::AuditError;
use super::fault::{Fault, Wrong};
use super::lines::LONGEST;
use super::place::Place;
use super::step::Stop;
use crate::config::state_files;
use crate::policy::hex::hex;

const MOST_BYTES: u64 = 4 << 10;

/// The last record that was certainly written, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// The number of the file.
    pub(super) file: u64,
    /// Where its line begins.
    pub(super) start: u64,
    /// Where the line after it begins.
    pub(super) end: u64,
    pub(super) link: Link,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    file: u64,
    start: u64,
    end: u64,
    seq: u64,
    hash: String,
}

/// What is known of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// There is none.
    Nothing,
    /// There is something else.
    Unreadable,
    Head(Head),
}

impl Head {
    /// The head of a log, for somebody who only looks.
    pub(super) fn look(place: &Place) -> io::Result<Found> {
        let file = match state_files::open_to_read(&place.head()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            // Whatever stands there in its place, it says nothing.
            Err(_) if Fault::of_no_file(&place.head()).is_some() => return Ok(Found::Unreadable),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(Self::parse(&bytes).map_or(Found::Unreadable, Found::Head))
    }

    /// The same for somebody who writes: what others could have written is an error.
    pub(super) fn read(place: &Place) -> Result<Found, AuditError> {
        match state_files::read(&place.head(), MOST_BYTES) {
            Ok(bytes) => Ok(Self::parse(&bytes).map_or(Found::Unreadable, Found::Head)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) => Err(AuditError::io(&place.head(), "reading")(error)),
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let stored: Stored = serde_json::from_slice(bytes).ok()?;
        if stored.format != FORMAT {
            return None;
        }
        Some(Self {
            file: stored.file,
            start: stored.start,
            end: stored.end,
            link: Link {
                seq: stored.seq,
                hash: parse_hash(&stored.hash)?,
            },
        })
    }

    /// Whether the record that it names stands where it says, in this file; for whoever writes on and whoever checks alike.
    pub(super) fn stands_in(&self, mut file: &File) -> Result<(), Stop> {
        let written = self.link.seq;
        if file.metadata()?.len() < self.end {
            return Err(Wrong::Truncated { written }.into());
        }
        let length = self.end.checked_sub(self.start).filter(|length| *length <= LONGEST);
        let length = length.ok_or(Wrong::HeadUnreadable)?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.start))?;
        file.take(length).read_to_end(&mut bytes)?;
        // What does not begin where it says is no line.
        match bytes.strip_suffix(b"\n").map(chain::open) {
            Some(Ok(opened)) if opened.link == self.link => Ok(()),
            Some(_) | None => Err(Wrong::Rewritten.into()),
        }
    }

    /// Whether it may be the head of a log whose last file is this one: it names that, or the one before, if a kill came
    /// before it was written anew.
    pub(super) const fn may_be_of(&self, last: u64) -> Result<(), Wrong> {
        if last == self.file || last == self.file.saturating_add(1) {
            Ok(())
        } else {
            Err(Wrong::OtherFile { number: last })
        }
    }

    /// Puts it in the place of the one before. What it speaks of is on disk already.
    pub(super) fn write(&self, place: &Place, directory: &File) -> Result<(), AuditError> {
        let stored = Stored {
            format: FORMAT,
            file: self.file,
            start: self.start,
            end: self.end,
            seq: self.link.seq,
            hash: hex(&self.link.hash),
        };
        let mut bytes = serde_json::to_vec(&stored)?;
        bytes.push(b'\n');
        state_files::replace_via(&place.head(), &place.new_head(), &bytes)
            .and_then(|()| directory.sync_all())
            .map_err(AuditError::io(&place.head(), "replacing"))
    }
}
