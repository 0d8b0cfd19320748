//! The head of a log: a file that says how far the log is durable, replaced atomically.
//!
//! A log with its last records cut off is still a valid chain. The head shows that there were more.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use serde::{Deserialize, Serialize};

use super::chain::{self, FORMAT, Link, parse_hash};
use super::error::AuditError;
use super::fault::{Fault, Wrong};
use super::lines::LONGEST;
use super::log_paths::LogPaths;
use super::step::WalkError;
use crate::config::state_files;
use crate::policy::hex::hex;

const MOST_BYTES: u64 = 4 << 10;

/// The last durable record, and its position.
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

/// The state of a head file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadState {
    /// There is none.
    Missing,
    /// It cannot be parsed.
    Unreadable,
    Head(Head),
}

impl Head {
    /// Reads the head of a log, whoever wrote it.
    pub(super) fn read_any(paths: &LogPaths) -> io::Result<HeadState> {
        let file = match state_files::open_to_read(&paths.head()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HeadState::Missing),
            // Something else than a file is there.
            Err(_) if Fault::of_no_file(&paths.head()).is_some() => return Ok(HeadState::Unreadable),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(Self::parse(&bytes).map_or(HeadState::Unreadable, HeadState::Head))
    }

    /// Reads the head for a writer; an error if others could have written it.
    pub(super) fn read_own(paths: &LogPaths) -> Result<HeadState, AuditError> {
        match state_files::read(&paths.head(), MOST_BYTES) {
            Ok(bytes) => Ok(Self::parse(&bytes).map_or(HeadState::Unreadable, HeadState::Head)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(HeadState::Missing),
            Err(error) => Err(AuditError::io(&paths.head(), "reading")(error)),
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

    /// Verifies that the record of the head is at its position in this file.
    pub(super) fn verify_in(&self, mut file: &File) -> Result<(), WalkError> {
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
        match bytes.strip_suffix(b"\n").map(chain::parse_line) {
            Some(Ok(opened)) if opened.link == self.link => Ok(()),
            Some(_) | None => Err(Wrong::Rewritten.into()),
        }
    }

    /// Verifies the number of the last file: that of the head, or the next one, if a writer was killed before it updated the
    /// head.
    pub(super) const fn verify_last_file(&self, last: u64) -> Result<(), Wrong> {
        if last == self.file || last == self.file.saturating_add(1) {
            Ok(())
        } else {
            Err(Wrong::OtherFile { number: last })
        }
    }

    /// Replaces the head file. The records are on disk already.
    pub(super) fn write(&self, paths: &LogPaths, directory: &File) -> Result<(), AuditError> {
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
        state_files::replace_via(&paths.head(), &paths.new_head(), &bytes)
            .and_then(|()| directory.sync_all())
            .map_err(AuditError::io(&paths.head(), "replacing"))
    }
}
