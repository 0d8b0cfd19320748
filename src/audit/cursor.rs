//! Where a log ends, for whoever writes on: found from the head on, and held against it.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::bounded::sha256;
use super::chain::{self, Header, Kind, Link};
use super::error::AuditError;
use super::fault::{Fault, Wrong};
use super::head::{Found, Head};
use super::lines::{Lines, Next};
use super::place::Place;
use crate::config::kept;

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

/// What a crash left of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Torn {
    pub(super) bytes: u64,
    pub(super) sha256: String,
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
    match Head::read(place)? {
        Found::Unreadable => Err(fault(&place.head(), None, Wrong::HeadUnreadable)),
        Found::Nothing => without_head(place),
        Found::Head(head) => from_head(place, &head),
    }
}

/// A log that was never certainly written: it has at most its first line.
fn without_head(place: &Place) -> Result<At, AuditError> {
    let none = || fault(&place.head(), None, Wrong::NoHead);
    if !place
        .numbers()
        .map_err(AuditError::io(place.directory(), "listing"))?
        .is_empty()
    {
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
            let first = cursor.end;
            let torn = cursor.walk()?;
            if cursor.end == first {
                Ok(At::Here(cursor, torn))
            } else {
                Err(none())
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
            let file = kept::to_append_to(&path).map_err(|error| match error.kind() {
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
            if header.file != number {
                let number = header.file;
                return Err(fault(&next.path, seq, Wrong::OtherFile { number }));
            }
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
    let file = match kept::to_append_to(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Begun::No(None)),
        Err(error) => return Err(AuditError::io(path, "opening")(error)),
    };
    let reading = AuditError::io(path, "reading");
    let mut lines = Lines::of(&file, 0, u64::MAX).map_err(AuditError::io(path, "reading"))?;
    let (link, kind) = match lines.next().map_err(reading)? {
        Next::End => return Ok(Begun::No(None)),
        // Nothing that Stockade did not begin to write is removed.
        Next::Partial(torn) if is_begun_header(torn, after) => return Ok(Begun::No(Some(Torn::of(torn)))),
        Next::Partial(_) | Next::TooLong => return Err(fault(path, None, Wrong::NoHeader)),
        Next::Line(bytes) => {
            let (link, _, kind) = chain::open(bytes).map_err(|wrong| match wrong {
                Wrong::NoRecord => fault(path, None, Wrong::NoHeader),
                wrong => fault(path, None, wrong),
            })?;
            (link, kind)
        }
    };
    let end = lines.offset;
    match kind {
        Kind::Record => Err(fault(path, Some(link.seq), Wrong::NoHeader)),
        Kind::Header(header) => {
            let cursor = Cursor {
                file,
                path: path.to_owned(),
                number: header.file,
                start: 0,
                end,
                link,
            };
            Ok(Begun::As(cursor, header))
        }
    }
}

/// Whether these bytes may be the beginning of a first line.
fn is_begun_header(bytes: &[u8], after: Option<&Link>) -> bool {
    let begins = |with: &[u8]| bytes.starts_with(with) || with.starts_with(bytes);
    match after {
        None => begins(b"{\"seq\":0,\"time\":\""),
        Some(_) => begins(b"{\"seq\":"),
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
        let seq = head.link.seq;
        let wrong = |wrong: Wrong| fault(&self.path, Some(seq), wrong);
        if self.size()? < head.end {
            return Err(wrong(Wrong::Truncated { written: seq }));
        }
        let length = head
            .end
            .checked_sub(head.start)
            .filter(|length| *length <= super::lines::LONGEST);
        let length = length.ok_or_else(|| wrong(Wrong::HeadUnreadable))?;
        let mut bytes = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(head.start))
            .and_then(|_| file.take(length).read_to_end(&mut bytes))
            .map_err(AuditError::io(&self.path, "reading"))?;
        let written = bytes.strip_suffix(b"\n").map(chain::open);
        match written {
            Some(Ok((link, _, _))) if link == head.link => {}
            Some(_) | None => return Err(wrong(Wrong::Rewritten)),
        }
        (self.start, self.end, self.link) = (head.start, head.end, head.link);
        Ok(())
    }

    /// Goes on to the end of the file; what there is of a line that has no end.
    fn walk(&mut self) -> Result<Option<Torn>, AuditError> {
        let reading = |error| AuditError::io(&self.path, "reading")(error);
        let mut lines = Lines::of(&self.file, self.end, u64::MAX).map_err(reading)?;
        loop {
            let seq = Some(self.link.seq + 1);
            let start = lines.offset;
            match lines.next().map_err(reading)? {
                Next::End => return Ok(None),
                Next::Partial(torn) => return Ok(Some(Torn::of(torn))),
                Next::TooLong => return Err(fault(&self.path, seq, Wrong::TooLong)),
                Next::Line(bytes) => match chain::follow(Some(&self.link), bytes) {
                    Ok((link, Kind::Record)) => {
                        (self.start, self.link) = (start, link);
                        self.end = lines.offset;
                    }
                    Ok((_, Kind::Header(_))) => return Err(fault(&self.path, seq, Wrong::StrayHeader)),
                    Err(wrong) => return Err(fault(&self.path, seq, wrong)),
                },
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
        let there = fs::symlink_metadata(path);
        let ours = self.file.metadata();
        there.is_ok_and(|there| ours.is_ok_and(|ours| there.dev() == ours.dev() && there.ino() == ours.ino()))
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

impl Torn {
    fn of(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.len() as u64,
            sha256: sha256(bytes),
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
