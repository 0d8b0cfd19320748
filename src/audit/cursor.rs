//! Where a log ends, for whoever writes on: found from the head on, and held against it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::chain::{Header, Kind, Link};
use super::error::AuditError;
use super::fault::{Fault, Wrong};
use super::files::Files;
use super::head::{Found, Head};
use super::lines::Lines;
use super::place::Place;
use super::step::{self, Certain, First, Step, Stop, Torn};
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

/// Where the next record goes.
#[derive(Debug)]
pub(super) enum At {
    /// Behind the last one, and behind what a crash left of another.
    Here(Cursor, Option<Torn>),
    /// In a new file of this number, after this record.
    NewFile {
        number: u64,
        after: Option<Link>,
        torn: Option<Torn>,
    },
}

/// Finds where the log ends. Whoever calls has the turn to write.
pub(super) fn find(place: &Place) -> Result<At, AuditError> {
    let found = Head::read(place)?;
    let at = match found {
        Found::Unreadable => Err(fault(&place.head(), None, Wrong::HeadUnreadable)),
        Found::Nothing => without_head(place),
        Found::Head(head) => from_head(place, &head),
    }?;
    // A file that bears the name of one of the log's would be in the way of one, and be taken for one.
    match Files::of(place, found)?.stray() {
        Some(stray) => Err(AuditError::Stray(Box::new(stray))),
        None => Ok(at),
    }
}

/// A log that was never certainly written: it has at most its first line.
fn without_head(place: &Place) -> Result<At, AuditError> {
    let none = || fault(&place.head(), None, Wrong::NoHead);
    if !Files::of(place, Found::Nothing)?.earlier.is_empty() {
        return Err(none());
    }
    match begun(place, None)? {
        Begun::No(torn) => Ok(At::NewFile {
            number: 1,
            after: None,
            torn,
        }),
        Begun::As(
            mut cursor,
            Header {
                file: 1, prev: None, ..
            },
        ) => {
            // The head is written before anything else is.
            let first = cursor.end;
            match cursor.walk()? {
                None if cursor.end == first => Ok(At::Here(cursor, None)),
                None | Some(_) => Err(none()),
            }
        }
        Begun::As(_, _) => Err(none()),
    }
}

fn from_head(place: &Place, head: &Head) -> Result<At, AuditError> {
    let begun = begun(place, Some(&head.link))?;
    let (mut cursor, next) = match begun {
        Begun::As(cursor, header) if header.file == head.file => (cursor, None),
        other => {
            let path = place.rotated(head.file);
            let written = head.link.seq;
            let file = state_files::open_to_append(&path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => fault(place.log(), Some(written), Wrong::Truncated { written }),
                _ => AuditError::io(&path, "opening")(error),
            })?;
            (Cursor::unplaced(file, path, head.file), Some(other))
        }
    };
    cursor.set_to(head)?;
    let torn = cursor.walk()?;
    let Some(next) = next else {
        return Ok(At::Here(cursor, torn));
    };
    if torn.is_some() {
        return Err(fault(&cursor.path, Some(cursor.link.seq + 1), Wrong::CutShort));
    }
    let number = head.file + 1;
    match next {
        Begun::No(torn) => Ok(At::NewFile {
            number,
            after: Some(cursor.link),
            torn,
        }),
        Begun::As(mut next, header) => {
            let seq = Some(cursor.link.seq + 1);
            head.may_be_of(header.file)
                .map_err(|wrong| fault(&next.path, seq, wrong))?;
            if header.prev != Some(cursor.link) {
                return Err(fault(&next.path, seq, Wrong::DoesNotFollow));
            }
            let torn = next.walk()?;
            Ok(At::Here(next, torn))
        }
    }
}

/// Whether the file that is written has its first line.
enum Begun {
    /// Not yet, or not all of it.
    No(Option<Torn>),
    As(Cursor, Header),
}

/// Looks at the first line of the file that is written. `after`: some record before it, if there is one.
fn begun(place: &Place, after: Option<&Link>) -> Result<Begun, AuditError> {
    let path = place.log();
    let file = match state_files::open_to_append(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Begun::No(None)),
        Err(error) => return Err(AuditError::io(path, "opening")(error)),
    };
    let mut lines = Lines::of(&file, 0, u64::MAX).map_err(AuditError::io(path, "reading"))?;
    let opened = match step::first(&mut lines, after, Certain::No) {
        Ok(First::Line(opened)) => opened,
        Ok(First::End) => return Ok(Begun::No(None)),
        Ok(First::Torn(torn)) => return Ok(Begun::No(Some(torn))),
        Err(Stop::Wrong(wrong)) => return Err(fault(path, None, wrong)),
        Err(Stop::Io(error)) => return Err(AuditError::io(path, "reading")(error)),
    };
    let (link, end) = (opened.link, lines.offset);
    match opened.kind {
        Kind::Record => Err(fault(path, Some(link.seq), Wrong::NoHeader)),
        Kind::Header(header) => {
            let cursor = Cursor::new(file, path, header.file, end, link);
            Ok(Begun::As(cursor, header))
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

    const fn unplaced(file: File, path: PathBuf, number: u64) -> Self {
        Self {
            file,
            path,
            number,
            start: 0,
            end: 0,
            link: Link { seq: 0, hash: [0; 32] },
        }
    }

    /// Stands behind the record that the head names, if it is there.
    fn set_to(&mut self, head: &Head) -> Result<(), AuditError> {
        head.stands_in(&self.file).map_err(|stop| match stop {
            Stop::Wrong(wrong) => fault(&self.path, Some(head.link.seq), wrong),
            Stop::Io(error) => AuditError::io(&self.path, "reading")(error),
        })?;
        (self.start, self.end, self.link) = (head.start, head.end, head.link);
        Ok(())
    }

    /// Goes on to the end of the file; what a crash left behind the last record.
    fn walk(&mut self) -> Result<Option<Torn>, AuditError> {
        let reading = |error| AuditError::io(&self.path, "reading")(error);
        let mut lines = Lines::of(&self.file, self.end, u64::MAX).map_err(reading)?;
        loop {
            let start = lines.offset;
            match step::next(&mut lines, &self.link, Certain::No) {
                Ok(Step::End) => return Ok(None),
                Ok(Step::Torn(torn)) => return Ok(Some(torn)),
                Ok(Step::Record(link)) => {
                    (self.start, self.link) = (start, link);
                    self.end = lines.offset;
                }
                Err(Stop::Wrong(wrong)) => return Err(fault(&self.path, Some(self.link.seq + 1), wrong)),
                Err(Stop::Io(error)) => return Err(reading(error)),
            }
        }
    }

    /// Goes on behind what others have written to this file since; whoever calls has the turn to write.
    pub(super) fn catch_up(&mut self) -> Result<Option<Torn>, AuditError> {
        let size = self.size()?;
        if size < self.end {
            let written = self.link.seq;
            return Err(fault(&self.path, Some(written), Wrong::Truncated { written }));
        }
        if size == self.end { Ok(None) } else { self.walk() }
    }

    /// Whether the file is still the one that is written.
    pub(super) fn is_in_place(&self) -> bool {
        self.is_at(&self.path)
    }

    /// Whether the file is what is there now.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        state_files::is_same_file(&self.file, path)
    }

    fn size(&self) -> Result<u64, AuditError> {
        let found = self.file.metadata().map_err(AuditError::io(&self.path, "looking at"))?;
        Ok(found.len())
    }

    /// The head that says that everything up to here is written.
    pub(super) const fn head(&self) -> Head {
        Head {
            file: self.number,
            start: self.start,
            end: self.end,
            link: self.link,
        }
    }
}

impl At {
    /// The last record.
    pub(super) fn link(&self) -> Option<Link> {
        match self {
            Self::Here(cursor, _) => Some(cursor.link),
            Self::NewFile { after, .. } => *after,
        }
    }
}

/// What is wrong, where no line number is known.
pub(super) fn fault(file: &Path, seq: Option<u64>, wrong: Wrong) -> AuditError {
    AuditError::from(Fault {
        file: file.to_owned(),
        line: None,
        seq,
        wrong,
    })
}
