//! Verifies a log, and reports the first fault.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::chain::{Hash, Header, Kind, Link, ParsedLine, Removed, parse_hash};
use super::error::AuditError;
use super::fault::{Fault, Wrong};
use super::files::Files;
use super::head::{Head, HeadState};
use super::lines::Lines;
use super::lock;
use super::log_paths::LogPaths;
use super::report::{Report, Tail};
use super::step::{self, Durable, First, Step, WalkError};
use crate::config::state_files;

/// The files of a log at one moment.
struct Snapshot {
    files: Vec<LogFile>,
    head: HeadState,
    head_path: PathBuf,
    /// What stands in the place of one of the files, and is none; those after it are not here.
    replaced: Option<Fault>,
    /// What bears the name of an earlier file, and is none.
    stray: Option<Fault>,
}

struct LogFile {
    /// From its name; `None` for the one that is written.
    number: Option<u64>,
    path: PathBuf,
    file: File,
    size: u64,
}

/// The state of a verification.
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
    head_record: HeadRecord,
    /// Whether it stands where the head says; `None` as long as the file that the head names was not met.
    head_check: Option<Result<(), Wrong>>,
    expected: Option<Hash>,
    tail: Tail,
}

/// Whether the record of the head was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadRecord {
    NotFound,
    Found,
}

/// Walks the log. `expect`: a hash, noted down elsewhere, that some record must have.
///
/// Records behind the head are what a crash kept from being certainly written: they are in the chain, and nothing more is
/// known of them.
pub fn verify(paths: &LogPaths, expect: Option<&str>) -> Result<Report, AuditError> {
    let snapshot = lock::with_shared_lock(&paths.lock(), || Snapshot::of(paths))??;
    let head = match snapshot.head {
        HeadState::Head(head) => Some(head),
        HeadState::Missing | HeadState::Unreadable => None,
    };
    let mut walk = Walk {
        link: None,
        before: None,
        first_file: None,
        number: None,
        records: 0,
        removed: None,
        head,
        head_record: HeadRecord::NotFound,
        head_check: None,
        // What is no hash is the hash of nothing.
        expected: expect.map(|text| parse_hash(&text.to_ascii_lowercase()).unwrap_or_default()),
        tail: Tail::Complete,
    };
    let mut fault = None;
    for (index, log_file) in snapshot.files.iter().enumerate() {
        let before = walk.number;
        match walk.file(log_file) {
            Ok(()) if walk.number == before => {}
            Ok(()) => walk.verify_head(log_file)?,
            Err((WalkError::Io(error), _, _)) => return Err(AuditError::io(&log_file.path, "reading")(error)),
            Err((WalkError::Wrong(wrong), line, seq)) => {
                fault = Some(Fault {
                    file: log_file.path.clone(),
                    line: Some(line),
                    seq,
                    wrong: classify_missing(wrong, snapshot.files.get(index..).unwrap_or_default())?,
                });
                break;
            }
        }
    }
    let fault = fault
        .or(snapshot.replaced.clone())
        .or_else(|| walk.end(paths, &snapshot))
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

/// Reports a missing record as moved, if a later line has it.
fn classify_missing(wrong: Wrong, files: &[LogFile]) -> Result<Wrong, AuditError> {
    let Wrong::Missing { from, to } = wrong else {
        return Ok(wrong);
    };
    for log_file in files {
        let reading = |error| AuditError::io(&log_file.path, "reading")(error);
        let mut lines = Lines::of(&log_file.file, 0, log_file.size).map_err(reading)?;
        if step::contains_record(&mut lines, from).map_err(reading)? {
            let (expected, found) = (from, to.saturating_add(1));
            return Ok(Wrong::OutOfPlace { expected, found });
        }
    }
    Ok(wrong)
}

impl Snapshot {
    fn of(paths: &LogPaths) -> Result<Self, AuditError> {
        let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let head_path = paths.head();
        let head = Head::read_any(paths).map_err(AuditError::io(&head_path, "reading"))?;
        let all = match Files::of(paths, head) {
            Ok(all) => all,
            Err(AuditError::Io { source, .. }) if absent(&source) => {
                return Err(AuditError::Absent(paths.log().to_owned()));
            }
            Err(error) => return Err(error),
        };
        let stray = all.stray();
        let (mut files, mut replaced) = (Vec::new(), None);
        let earlier = all
            .earlier
            .into_iter()
            .map(|number| (Some(number), paths.rotated(number)));
        for (number, path) in earlier.chain([(None, paths.log().to_owned())]) {
            match LogFile::open(number, path.clone()) {
                Ok(log_file) => files.push(log_file),
                Err(AuditError::Io { source, .. }) if number.is_none() && absent(&source) => {}
                Err(error) => {
                    replaced = Some(Fault::of_no_file(&path).ok_or(error)?);
                    break;
                }
            }
        }
        if replaced.is_none() && files.is_empty() && head == HeadState::Missing {
            return Err(AuditError::Absent(paths.log().to_owned()));
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

impl LogFile {
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
    fn file(&mut self, log_file: &LogFile) -> Result<(), (WalkError, u64, Option<u64>)> {
        let mut lines = Lines::of(&log_file.file, 0, log_file.size).map_err(|error| (error.into(), 0, None))?;
        let mut last = None;
        loop {
            let (line, seq) = (lines.number + 1, self.link.map(|before| before.seq + 1));
            let taken = match last {
                None => self.first(log_file, &mut lines),
                Some(before) => self.next(log_file, &mut lines, before),
            };
            match taken {
                Ok(Some(next)) => last = Some(next),
                Ok(None) => return Ok(()),
                Err(stop) => return Err((stop, line, seq)),
            }
        }
    }

    /// Whether what comes next was certainly on disk once. Behind the head a crash may have left something in the file that is
    /// written; every other file was all on disk before the one after it was begun.
    fn durable(&self, log_file: &LogFile) -> Durable {
        match (log_file.number, self.head, self.head_record) {
            (None, None, _) | (None, Some(_), HeadRecord::Found) => Durable::No,
            (Some(_), _, _) | (None, Some(_), HeadRecord::NotFound) => Durable::Yes,
        }
    }

    /// The first line of a file; nothing where the file ends with it, or before it.
    fn first(&mut self, log_file: &LogFile, lines: &mut Lines<File>) -> Result<Option<Link>, WalkError> {
        let opened = match step::first(lines, self.link.as_ref(), self.durable(log_file))? {
            First::Line(opened) => opened,
            First::End | First::Torn(_) if log_file.number.is_some() => return Err(Wrong::NoHeader.into()),
            First::End => return Ok(None),
            First::Torn(torn) => {
                self.tail = Tail::Partial(torn.bytes);
                return Ok(None);
            }
        };
        self.header(log_file, &opened)?;
        Ok(Some(opened.link))
    }

    /// Any other line.
    fn next(&mut self, log_file: &LogFile, lines: &mut Lines<File>, last: Link) -> Result<Option<Link>, WalkError> {
        match step::next(lines, &last, self.durable(log_file))? {
            Step::Record(link) => {
                self.accept(link)?;
                Ok(Some(link))
            }
            Step::End => Ok(None),
            Step::Torn(_) if log_file.number.is_some() => Err(Wrong::CutShort.into()),
            Step::Torn(torn) => {
                self.tail = Tail::Partial(torn.bytes);
                Ok(None)
            }
        }
    }

    /// The first line of a file.
    fn header(&mut self, log_file: &LogFile, opened: &ParsedLine) -> Result<(), Wrong> {
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
        if log_file.number.is_some_and(|number| number != header.file) {
            return Err(Wrong::OtherFile { number: header.file });
        }
        self.number = Some(header.file);
        self.record_removed(&header);
        self.accept(opened.link)
    }

    fn record_removed(&mut self, header: &Header) {
        if let Some(removed) = header.removed
            && self.removed.is_none_or(|known| removed.file > known.file)
        {
            self.removed = Some(removed);
        }
    }

    /// Accepts a record that follows the one before.
    fn accept(&mut self, link: Link) -> Result<(), Wrong> {
        if let Some(head) = self.head
            && head.link.seq == link.seq
        {
            if head.link != link {
                return Err(Wrong::Rewritten);
            }
            self.head_record = HeadRecord::Found;
        }
        if self.expected == Some(link.hash) {
            self.expected = None;
        }
        self.link = Some(link);
        self.records += 1;
        Ok(())
    }

    /// Verifies the head against a file, as writers do.
    fn verify_head(&mut self, log_file: &LogFile) -> Result<(), AuditError> {
        let Some(head) = self.head.filter(|head| self.number == Some(head.file)) else {
            return Ok(());
        };
        self.head_check = Some(match head.verify_in(&log_file.file) {
            Ok(()) => Ok(()),
            Err(WalkError::Wrong(wrong)) => Err(wrong),
            Err(WalkError::Io(error)) => return Err(AuditError::io(&log_file.path, "reading")(error)),
        });
        Ok(())
    }

    /// Whether it has no more than its very first line.
    fn is_just_begun(&self, snapshot: &Snapshot) -> bool {
        snapshot.files.len() == 1
            && match self.first_file {
                None => true,
                Some(number) => number == 1 && self.records == 1 && self.tail == Tail::Complete,
            }
    }

    /// The fault of a log in which every record follows the one before.
    fn end(&self, paths: &LogPaths, snapshot: &Snapshot) -> Option<Fault> {
        let log_fault = |file: &Path, seq, wrong| Some(Fault::of_file(file, seq, wrong));
        match snapshot.head {
            HeadState::Unreadable => return log_fault(&snapshot.head_path, None, Wrong::HeadUnreadable),
            // Killed before the head was first written.
            HeadState::Missing if self.is_just_begun(snapshot) => {}
            HeadState::Missing => return log_fault(&snapshot.head_path, None, Wrong::NoHead),
            HeadState::Head(head) => {
                let written = head.link.seq;
                let (HeadRecord::Found, Some(head_check)) = (self.head_record, &self.head_check) else {
                    return log_fault(paths.log(), Some(written), Wrong::Truncated { written });
                };
                let right = head_check.clone().and_then(|()| match self.number {
                    Some(last) => head.verify_last_file(last),
                    None => Ok(()),
                });
                if let Err(wrong) = right {
                    return log_fault(&snapshot.head_path, Some(written), wrong);
                }
            }
        }
        match (self.first_file, self.removed) {
            (None | Some(1), _) => {}
            (Some(first), Some(removed)) if removed.file >= first => {}
            (Some(first), Some(removed)) if removed.file + 1 == first => {
                if self.before != Some(removed.last) {
                    return log_fault(paths.log(), None, Wrong::Rewritten);
                }
            }
            (Some(first), Some(_) | None) => {
                return log_fault(paths.log(), None, Wrong::FileMissing { number: first - 1 });
            }
        }
        if self.expected.is_some() {
            return log_fault(paths.log(), None, Wrong::NotWhatWasExpected);
        }
        None
    }
}
