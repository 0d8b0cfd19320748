//! Walking all of a log, and naming the first record that is wrong.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::chain::{self, Hash, Header, Kind, Link, Removed, parse_hash};
use super::error::AuditError;
use super::fault::{Fault, Wrong};
use super::head::{Found, Head};
use super::lines::{Lines, Next};
use super::place::Place;
use super::turn;
use crate::config::kept;

/// What was found of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How many records are as they were written, up to the first that is not.
    pub records: u64,
    /// How many files there are.
    pub files: u64,
    /// The number and hash of the last of these records: what an outside note pins the log with.
    pub last: Option<(u64, Hash)>,
    /// How the log ends.
    pub tail: Tail,
    /// The last file that was removed by rotation, if some were.
    pub removed: Option<u64>,
    /// The first thing that is wrong.
    pub fault: Option<Fault>,
}

/// How a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// With a whole line.
    Whole,
    /// In the middle of a line, as a crash leaves it, with so many bytes of it. It was never certainly written.
    Partial(u64),
}

/// A log as it stood at one moment.
struct Snapshot {
    files: Vec<Part>,
    head: Found,
    head_path: PathBuf,
}

struct Part {
    /// From its name; `None` for the one that is written.
    number: Option<u64>,
    path: PathBuf,
    file: File,
    size: u64,
}

/// What is known of the log on the way.
struct Walk {
    link: Option<Link>,
    /// What the first line says that it follows, where that is not here.
    before: Option<Link>,
    first_file: Option<u64>,
    number: Option<u64>,
    records: u64,
    removed: Option<Removed>,
    /// The head's record was met.
    head: Option<Head>,
    met: Met,
    expected: Option<Hash>,
    tail: Tail,
}

/// Whether a record was met that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    NotYet,
    Yes,
}

/// Walks the log. `expect`: a hash, noted down elsewhere, that some record must have.
///
/// Records behind the head are what a crash kept from being certainly written: they are in the chain, and nothing more is
/// known of them.
pub fn verify(place: &Place, expect: Option<&str>) -> Result<Report, AuditError> {
    let snapshot = turn::while_nobody_writes(place.lock(), || Snapshot::of(place))??;
    let head = match snapshot.head {
        Found::Head(head) => Some(head),
        Found::Nothing | Found::Unreadable => None,
    };
    let mut walk = Walk {
        link: None,
        before: None,
        first_file: None,
        number: None,
        records: 0,
        removed: None,
        head,
        met: Met::NotYet,
        // What is no hash is the hash of nothing.
        expected: expect.map(|text| parse_hash(&text.to_ascii_lowercase()).unwrap_or_default()),
        tail: Tail::Whole,
    };
    let mut fault = None;
    let last = snapshot.files.len().saturating_sub(1);
    for (index, part) in snapshot.files.iter().enumerate() {
        if let Err(stop) = walk.file(part, index == last) {
            match stop {
                Stop::Fault(found) => fault = Some(found),
                Stop::Io(error) => return Err(AuditError::io(&part.path, "reading")(error)),
            }
            break;
        }
    }
    let fault = fault.or_else(|| walk.end(place, &snapshot));
    Ok(Report {
        records: walk.records,
        files: snapshot.files.len() as u64,
        last: walk.link.map(|link| (link.seq, link.hash)),
        tail: walk.tail,
        removed: walk.removed.map(|removed| removed.file),
        fault,
    })
}

enum Stop {
    Fault(Fault),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Snapshot {
    fn of(place: &Place) -> Result<Self, AuditError> {
        let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let numbers = match place.numbers() {
            Ok(numbers) => numbers,
            Err(error) if absent(&error) => return Err(AuditError::Absent(place.log().to_owned())),
            Err(error) => return Err(AuditError::io(place.directory(), "listing")(error)),
        };
        let mut files = Vec::new();
        for number in numbers {
            files.push(Part::open(Some(number), place.rotated(number))?);
        }
        match Part::open(None, place.log().to_owned()) {
            Ok(part) => files.push(part),
            Err(AuditError::Io { source, .. }) if absent(&source) => {}
            Err(error) => return Err(error),
        }
        let head_path = place.head();
        let head = Head::look(place).map_err(AuditError::io(&head_path, "reading"))?;
        if files.is_empty() && head == Found::Nothing {
            return Err(AuditError::Absent(place.log().to_owned()));
        }
        Ok(Self { files, head, head_path })
    }
}

impl Part {
    fn open(number: Option<u64>, path: PathBuf) -> Result<Self, AuditError> {
        let opened = kept::to_look(&path).and_then(|file| file.metadata().map(|found| (file, found.len())));
        let (file, size) = opened.map_err(AuditError::io(&path, "opening"))?;
        Ok(Self {
            number,
            path,
            file,
            size,
        })
    }
}

impl Walk {
    fn file(&mut self, part: &Part, is_last: bool) -> Result<(), Stop> {
        let mut lines = Lines::of(&part.file, 0, part.size)?;
        let mut is_first = true;
        loop {
            let expected = self.expected_seq();
            let next = lines.next()?;
            let taken = match next {
                Next::End if is_first && !is_last => Err(Wrong::NoHeader),
                Next::End => return Ok(()),
                Next::TooLong => Err(Wrong::TooLong),
                Next::Partial(torn) if is_last => {
                    self.tail = Tail::Partial(torn.len() as u64);
                    return Ok(());
                }
                Next::Partial(_) => Err(Wrong::CutShort),
                Next::Line(line) if is_first => self.header(part, line),
                Next::Line(line) => self.record(line),
            };
            is_first = false;
            if let Err(wrong) = taken {
                return Err(Stop::Fault(Fault {
                    file: part.path.clone(),
                    line: Some(lines.number),
                    seq: expected,
                    wrong,
                }));
            }
        }
    }

    /// The number of the record that comes next, where that is known.
    fn expected_seq(&self) -> Option<u64> {
        self.link.map(|link| link.seq + 1)
    }

    /// The first line of a file.
    fn header(&mut self, part: &Part, bytes: &[u8]) -> Result<(), Wrong> {
        let (link, _, kind) = chain::open(bytes)?;
        let Kind::Header(header) = kind else {
            return Err(Wrong::NoHeader);
        };
        match self.number {
            // Earlier ones may have been removed; what says so comes later.
            None => {
                self.first_file = Some(header.file);
                self.before = header.prev;
                if (header.file == 1) != header.prev.is_none() {
                    return Err(Wrong::DoesNotFollow);
                }
            }
            Some(before) => {
                chain::follow(self.link.as_ref(), bytes)?;
                if header.file > before + 1 {
                    return Err(Wrong::FileMissing { number: before + 1 });
                }
                if header.file != before + 1 {
                    return Err(Wrong::OtherFile { number: header.file });
                }
            }
        }
        if part.number.is_some_and(|number| number != header.file) {
            return Err(Wrong::OtherFile { number: header.file });
        }
        self.number = Some(header.file);
        self.note_removed(&header);
        self.meet(link)
    }

    fn record(&mut self, bytes: &[u8]) -> Result<(), Wrong> {
        match chain::follow(self.link.as_ref(), bytes)? {
            (link, Kind::Record) => self.meet(link),
            (_, Kind::Header(_)) => Err(Wrong::StrayHeader),
        }
    }

    fn note_removed(&mut self, header: &Header) {
        if let Some(removed) = header.removed
            && self.removed.is_none_or(|known| removed.file > known.file)
        {
            self.removed = Some(removed);
        }
    }

    /// Goes on behind a record that is as it was written, as far as it can be told from itself and the one before.
    fn meet(&mut self, link: Link) -> Result<(), Wrong> {
        if let Some(head) = self.head
            && head.link.seq == link.seq
        {
            if head.link != link {
                return Err(Wrong::Rewritten);
            }
            self.met = Met::Yes;
        }
        if self.expected == Some(link.hash) {
            self.expected = None;
        }
        self.link = Some(link);
        self.records += 1;
        Ok(())
    }

    /// Whether it has no more than its very first line.
    fn is_just_begun(&self, snapshot: &Snapshot) -> bool {
        snapshot.files.len() == 1
            && match self.first_file {
                None => true,
                Some(number) => number == 1 && self.records == 1 && self.tail == Tail::Whole,
            }
    }

    /// What is wrong with the whole, where every record follows the one before.
    fn end(&self, place: &Place, snapshot: &Snapshot) -> Option<Fault> {
        let whole = |file: &Path, seq: Option<u64>, wrong: Wrong| {
            Some(Fault {
                file: file.to_owned(),
                line: None,
                seq,
                wrong,
            })
        };
        match snapshot.head {
            Found::Unreadable => return whole(&snapshot.head_path, None, Wrong::HeadUnreadable),
            // Killed before the head was first written.
            Found::Nothing if self.is_just_begun(snapshot) => {}
            Found::Nothing => return whole(&snapshot.head_path, None, Wrong::NoHead),
            Found::Head(head) if self.met == Met::NotYet => {
                let written = head.link.seq;
                return whole(place.log(), Some(written), Wrong::Truncated { written });
            }
            Found::Head(_) => {}
        }
        match (self.first_file, self.removed) {
            (None | Some(1), _) => {}
            (Some(first), Some(removed)) if removed.file >= first => {}
            (Some(first), Some(removed)) if removed.file + 1 == first => {
                if self.before != Some(removed.last) {
                    return whole(place.log(), None, Wrong::Rewritten);
                }
            }
            (Some(first), Some(_) | None) => {
                return whole(place.log(), None, Wrong::FileMissing { number: first - 1 });
            }
        }
        if self.expected.is_some() {
            return whole(place.log(), None, Wrong::NotWhatWasExpected);
        }
        None
    }
}
