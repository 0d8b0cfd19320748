//! The end of a log, for a writer: found from the head on, and verified against it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::chain::{Header, Kind, Link};
use super::error::AuditError;
use super::fault::{Fault, Wrong};
use super::files::Files;
use super::head::{Head, HeadState};
use super::lines::Lines;
use super::log_paths::LogPaths;
use super::step::{self, Durable, First, Step, Torn, WalkError};
use crate::config::state_files;

/// The end of a file of the log.
#[derive(Debug)]
pub(super) struct Cursor {
    pub(super) file: File,
    path: PathBuf,
    /// The number of the file.
    pub(super) number: u64,
    /// Where its last line begins.
    pub(super) start: u64,
    /// Where the next one will.
    pub(super) end: u64,
    pub(super) link: Link,
}

/// Where to append the next record.
#[derive(Debug)]
pub(super) enum AppendAt {
    /// After the last record, and after what a crash left.
    Here(Cursor, Option<Torn>),
    /// In a new file of this number, after this record.
    NewFile {
        number: u64,
        after: Option<Link>,
        torn: Option<Torn>,
    },
}

/// Finds the end of the log. The caller holds the lock.
pub(super) fn find(paths: &LogPaths) -> Result<AppendAt, AuditError> {
    let found = Head::read_own(paths)?;
    let at = match found {
        HeadState::Unreadable => Err(fault(&paths.head(), None, Wrong::HeadUnreadable)),
        HeadState::Missing => without_head(paths),
        HeadState::Head(head) => from_head(paths, &head),
    }?;
    // A stray file with the name of a rotated one would be mistaken for it.
    match Files::of(paths, found)?.stray() {
        Some(stray) => Err(AuditError::Stray(Box::new(stray))),
        None => Ok(at),
    }
}

/// A log without a head: it has at most its first line.
fn without_head(paths: &LogPaths) -> Result<AppendAt, AuditError> {
    let none = || fault(&paths.head(), None, Wrong::NoHead);
    if !Files::of(paths, HeadState::Missing)?.earlier.is_empty() {
        return Err(none());
    }
    match read_header(paths, None)? {
        CurrentFile::Empty(torn) => Ok(AppendAt::NewFile {
            number: 1,
            after: None,
            torn,
        }),
        CurrentFile::Started(
            mut cursor,
            Header {
                file: 1, prev: None, ..
            },
        ) => {
            // The head is written before anything else is.
            let first = cursor.end;
            match cursor.walk()? {
                None if cursor.end == first => Ok(AppendAt::Here(cursor, None)),
                None | Some(_) => Err(none()),
            }
        }
        CurrentFile::Started(_, _) => Err(none()),
    }
}

fn from_head(paths: &LogPaths, head: &Head) -> Result<AppendAt, AuditError> {
    let read_header = read_header(paths, Some(&head.link))?;
    let (mut cursor, next) = match read_header {
        CurrentFile::Started(cursor, header) if header.file == head.file => (cursor, None),
        other => {
            let path = paths.rotated(head.file);
            let written = head.link.seq;
            let file = state_files::open_to_append(&path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => fault(paths.log(), Some(written), Wrong::Truncated { written }),
                _ => AuditError::io(&path, "opening")(error),
            })?;
            (Cursor::new(file, &path, head.file, head.end, head.link), Some(other))
        }
    };
    cursor.seek_to_head(head)?;
    let torn = cursor.walk()?;
    let Some(next) = next else {
        return Ok(AppendAt::Here(cursor, torn));
    };
    if torn.is_some() {
        return Err(fault(&cursor.path, Some(cursor.link.seq + 1), Wrong::CutShort));
    }
    let number = head.file + 1;
    match next {
        CurrentFile::Empty(torn) => Ok(AppendAt::NewFile {
            number,
            after: Some(cursor.link),
            torn,
        }),
        CurrentFile::Started(mut next, header) => {
            let seq = Some(cursor.link.seq + 1);
            head.verify_last_file(header.file)
                .map_err(|wrong| fault(&next.path, seq, wrong))?;
            if header.prev != Some(cursor.link) {
                return Err(fault(&next.path, seq, Wrong::DoesNotFollow));
            }
            let torn = next.walk()?;
            Ok(AppendAt::Here(next, torn))
        }
    }
}

/// The file that is written.
enum CurrentFile {
    /// It has no complete first line.
    Empty(Option<Torn>),
    Started(Cursor, Header),
}

/// Reads the first line of the current file. `after`: some record before it, if there is one.
fn read_header(paths: &LogPaths, after: Option<&Link>) -> Result<CurrentFile, AuditError> {
    let path = paths.log();
    let file = match state_files::open_to_append(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(CurrentFile::Empty(None)),
        Err(error) => return Err(AuditError::io(path, "opening")(error)),
    };
    let mut lines = Lines::of(&file, 0, u64::MAX).map_err(AuditError::io(path, "reading"))?;
    let opened = match step::first(&mut lines, after, Durable::No) {
        Ok(First::Line(opened)) => opened,
        Ok(First::End) => return Ok(CurrentFile::Empty(None)),
        Ok(First::Torn(torn)) => return Ok(CurrentFile::Empty(Some(torn))),
        Err(WalkError::Wrong(wrong)) => return Err(fault(path, None, wrong)),
        Err(WalkError::Io(error)) => return Err(AuditError::io(path, "reading")(error)),
    };
    let (link, end) = (opened.link, lines.offset);
    match opened.kind {
        Kind::Record => Err(fault(path, Some(link.seq), Wrong::NoHeader)),
        Kind::Header(header) => {
            let cursor = Cursor::new(file, path, header.file, end, link);
            Ok(CurrentFile::Started(cursor, header))
        }
    }
}

impl Cursor {
    /// A new file that begins with this line.
    pub(super) fn new(file: File, path: &Path, number: u64, end: u64, link: Link) -> Self {
        Self {
            file,
            path: path.to_owned(),
            number,
            start: 0,
            end,
            link,
        }
    }

    /// Moves to the end of the record that the head names, and verifies it.
    fn seek_to_head(&mut self, head: &Head) -> Result<(), AuditError> {
        head.verify_in(&self.file).map_err(|stop| match stop {
            WalkError::Wrong(wrong) => fault(&self.path, Some(head.link.seq), wrong),
            WalkError::Io(error) => AuditError::io(&self.path, "reading")(error),
        })?;
        (self.start, self.end, self.link) = (head.start, head.end, head.link);
        Ok(())
    }

    /// Moves to the end of the file; returns what a crash left after the last record.
    fn walk(&mut self) -> Result<Option<Torn>, AuditError> {
        let reading = |error| AuditError::io(&self.path, "reading")(error);
        let mut lines = Lines::of(&self.file, self.end, u64::MAX).map_err(reading)?;
        loop {
            let start = lines.offset;
            match step::next(&mut lines, &self.link, Durable::No) {
                Ok(Step::End) => return Ok(None),
                Ok(Step::Torn(torn)) => return Ok(Some(torn)),
                Ok(Step::Record(link)) => {
                    (self.start, self.link) = (start, link);
                    self.end = lines.offset;
                }
                Err(WalkError::Wrong(wrong)) => return Err(fault(&self.path, Some(self.link.seq + 1), wrong)),
                Err(WalkError::Io(error)) => return Err(reading(error)),
            }
        }
    }

    /// Moves past records that others have written to this file. The caller holds the lock.
    pub(super) fn catch_up(&mut self) -> Result<Option<Torn>, AuditError> {
        let size = self.size()?;
        if size < self.end {
            let written = self.link.seq;
            return Err(fault(&self.path, Some(written), Wrong::Truncated { written }));
        }
        if size == self.end { Ok(None) } else { self.walk() }
    }

    /// Whether the file is still the current one.
    pub(super) fn is_current(&self) -> bool {
        self.is_file_at(&self.path)
    }

    /// Whether the file is at this path now.
    pub(super) fn is_file_at(&self, path: &Path) -> bool {
        state_files::is_same_file(&self.file, path)
    }

    fn size(&self) -> Result<u64, AuditError> {
        let found = self.file.metadata().map_err(AuditError::io(&self.path, "looking at"))?;
        Ok(found.len())
    }

    /// The head for everything up to here.
    pub(super) const fn head(&self) -> Head {
        Head {
            file: self.number,
            start: self.start,
            end: self.end,
            link: self.link,
        }
    }
}

impl AppendAt {
    /// The last record.
    pub(super) fn link(&self) -> Option<Link> {
        match self {
            Self::Here(cursor, _) => Some(cursor.link),
            Self::NewFile { after, .. } => *after,
        }
    }
}

/// A fault without a line number.
pub(super) fn fault(file: &Path, seq: Option<u64>, wrong: Wrong) -> AuditError {
    Fault::of_file(file, seq, wrong).into()
}
