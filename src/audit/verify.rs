//! Walking all of a log, and naming the first record that is wrong.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::chain::{Hash, Header, Kind, Link, Opened, Removed, parse_hash};
use super::error::AuditError;
use super::fault::{Fault, Wrong};
use super::files::Files;
use super::head::{Found, Head};
use super::lines::Lines;
use super::place::Place;
use super::report::{Report, Tail};
use super::step::{self, Certain, First, Step, Stop};
use super::turn;
use crate::config::state_files;

/// A log as it stood at one moment.
struct Snapshot {
    files: Vec<Part>,
    head: Found,
    head_path: PathBuf,
    /// What stands in the place of one of the files, and is none; those after it are not here.
    replaced: Option<Fault>,
    /// What bears the name of an earlier file, and is none.
    stray: Option<Fault>,
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
    /// Whether it stands where the head says; `None` as long as the file that the head names was not met.
    stands: Option<Result<(), Wrong>>,
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
    let snapshot = turn::while_nobody_writes(&place.lock(), || Snapshot::of(place))??;
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
        stands: None,
        // What is no hash is the hash of nothing.
        expected: expect.map(|text| parse_hash(&text.to_ascii_lowercase()).unwrap_or_default()),
        tail: Tail::Whole,
    };
    let mut fault = None;
    for (index, part) in snapshot.files.iter().enumerate() {
        let before = walk.number;
        match walk.file(part) {
            Ok(()) if walk.number == before => {}
            Ok(()) => walk.look_for_head(part)?,
            Err((Stop::Io(error), _, _)) => return Err(AuditError::io(&part.path, "reading")(error)),
            Err((Stop::Wrong(wrong), line, seq)) => {
                fault = Some(Fault {
                    file: part.path.clone(),
                    line: Some(line),
                    seq,
                    wrong: moved(wrong, snapshot.files.get(index..).unwrap_or_default())?,
                });
                break;
            }
        }
    }
    let fault = fault
        .or(snapshot.replaced.clone())
        .or_else(|| walk.end(place, &snapshot))
        .or(snapshot.stray);
    let files = snapshot.files.len() as u64;
    let behind = head
        .zip(walk.link)
        .map(|(head, last)| last.seq.saturating_sub(head.link.seq));
    Ok(Report {
        records: walk.records,
        behind,
        files,
        last: walk.link.map(|link| (link.seq, link.hash)),
        tail: walk.tail,
        removed: walk.removed.map(|removed| removed.file),
        fault,
    })
}

/// What is wrong where a record is missing: it was moved, if it stands further on in one of these files.
fn moved(wrong: Wrong, files: &[Part]) -> Result<Wrong, AuditError> {
    let Wrong::Missing { from, to } = wrong else {
        return Ok(wrong);
    };
    for part in files {
        let reading = |error| AuditError::io(&part.path, "reading")(error);
        let mut lines = Lines::of(&part.file, 0, part.size).map_err(reading)?;
        if step::holds(&mut lines, from).map_err(reading)? {
            let (expected, found) = (from, to.saturating_add(1));
            return Ok(Wrong::OutOfPlace { expected, found });
        }
    }
    Ok(wrong)
}

impl Snapshot {
    fn of(place: &Place) -> Result<Self, AuditError> {
        let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let head_path = place.head();
        let head = Head::look(place).map_err(AuditError::io(&head_path, "reading"))?;
        let all = match Files::of(place, head) {
            Ok(all) => all,
            Err(AuditError::Io { source, .. }) if absent(&source) => {
                return Err(AuditError::Absent(place.log().to_owned()));
            }
            Err(error) => return Err(error),
        };
        let stray = all.stray();
        let (mut files, mut replaced) = (Vec::new(), None);
        let earlier = all
            .earlier
            .into_iter()
            .map(|number| (Some(number), place.rotated(number)));
        for (number, path) in earlier.chain([(None, place.log().to_owned())]) {
            match Part::open(number, path.clone()) {
                Ok(part) => files.push(part),
                Err(AuditError::Io { source, .. }) if number.is_none() && absent(&source) => {}
                Err(error) => {
                    replaced = Some(Fault::of_no_file(&path).ok_or(error)?);
                    break;
                }
            }
        }
        if replaced.is_none() && files.is_empty() && head == Found::Nothing {
            return Err(AuditError::Absent(place.log().to_owned()));
        }
        Ok(Self {
            files,
            head,
            head_path,
            replaced,
            stray,
        })
    }
}

impl Part {
    fn open(number: Option<u64>, path: PathBuf) -> Result<Self, AuditError> {
        let opened = state_files::open_to_read(&path).and_then(|file| file.metadata().map(|found| (file, found.len())));
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
    /// Walks a file. Where it stops, which line is wrong, and the number of the record that should stand there.
    fn file(&mut self, part: &Part) -> Result<(), (Stop, u64, Option<u64>)> {
        let mut lines = Lines::of(&part.file, 0, part.size).map_err(|error| (error.into(), 0, None))?;
        let mut last = None;
        loop {
            let (line, seq) = (lines.number + 1, self.link.map(|before| before.seq + 1));
            let taken = match last {
                None => self.first(part, &mut lines),
                Some(before) => self.next(part, &mut lines, before),
            };
            match taken {
                Ok(Some(met)) => last = Some(met),
                Ok(None) => return Ok(()),
                Err(stop) => return Err((stop, line, seq)),
            }
        }
    }

    /// Whether what comes next was certainly on disk once. Behind the head a crash may have left something in the file that is
    /// written; every other file was all on disk before the one after it was begun.
    fn certain(&self, part: &Part) -> Certain {
        match (part.number, self.head, self.met) {
            (None, None, _) | (None, Some(_), Met::Yes) => Certain::No,
            (Some(_), _, _) | (None, Some(_), Met::NotYet) => Certain::Yes,
        }
    }

    /// The first line of a file; nothing where the file ends with it, or before it.
    fn first(&mut self, part: &Part, lines: &mut Lines<File>) -> Result<Option<Link>, Stop> {
        let opened = match step::first(lines, self.link.as_ref(), self.certain(part))? {
            First::Line(opened) => opened,
            First::End | First::Torn(_) if part.number.is_some() => return Err(Wrong::NoHeader.into()),
            First::End => return Ok(None),
            First::Torn(torn) => {
                self.tail = Tail::Partial(torn.bytes);
                return Ok(None);
            }
        };
        self.header(part, &opened)?;
        Ok(Some(opened.link))
    }

    /// Any other line.
    fn next(&mut self, part: &Part, lines: &mut Lines<File>, last: Link) -> Result<Option<Link>, Stop> {
        match step::next(lines, &last, self.certain(part))? {
            Step::Record(link) => {
                self.meet(link)?;
                Ok(Some(link))
            }
            Step::End => Ok(None),
            Step::Torn(_) if part.number.is_some() => Err(Wrong::CutShort.into()),
            Step::Torn(torn) => {
                self.tail = Tail::Partial(torn.bytes);
                Ok(None)
            }
        }
    }

    /// The first line of a file.
    fn header(&mut self, part: &Part, opened: &Opened) -> Result<(), Wrong> {
        let Kind::Header(header) = opened.kind else {
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
                opened.follows(self.link.as_ref())?;
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
        self.meet(opened.link)
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

    /// Holds the head against a file that was walked, as whoever writes on does.
    fn look_for_head(&mut self, part: &Part) -> Result<(), AuditError> {
        let Some(head) = self.head.filter(|head| self.number == Some(head.file)) else {
            return Ok(());
        };
        self.stands = Some(match head.stands_in(&part.file) {
            Ok(()) => Ok(()),
            Err(Stop::Wrong(wrong)) => Err(wrong),
            Err(Stop::Io(error)) => return Err(AuditError::io(&part.path, "reading")(error)),
        });
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
            Found::Head(head) => {
                let written = head.link.seq;
                let (Met::Yes, Some(stands)) = (self.met, &self.stands) else {
                    return whole(place.log(), Some(written), Wrong::Truncated { written });
                };
                let right = stands.clone().and_then(|()| match self.number {
                    Some(last) => head.may_be_of(last),
                    None => Ok(()),
                });
                if let Err(wrong) = right {
                    return whole(&snapshot.head_path, Some(written), wrong);
                }
            }
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
