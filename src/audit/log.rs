//! Appends to a log, syncs it, and rotates its files.
//!
//! A writer locks the log for each group of records, and appends after records that others have written meanwhile. **A kill at
//! any moment** leaves complete lines and perhaps a partial one, and a power cut may leave blocks of zeros; nothing before the
//! head is ever changed. The next writer removes what is left after the last complete record, and records that.

use std::fmt;
use std::fs::{self, File};
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use super::chain::{Kind, Link, Removed};
use super::cursor::{self, AppendAt, Cursor};
use super::error::AuditError;
use super::event::Event;
use super::fault::Wrong;
use super::group::{Group, first_line};
use super::lines::{LONGEST, Lines};
use super::lock::LogLock;
use super::log_paths::{LogPaths, ReachCheck};
use super::step::{self, Durable, First, Torn, WalkError};
use crate::config::state_files;

/// How a log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// How large a file grows before the next one is begun.
    pub max_bytes: u64,
    /// How many earlier files are kept; `None`: all.
    pub keep: Option<u64>,
}

/// When records are synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// With the next synced record, or at the end of the session.
    Later,
    /// Before anything else happens.
    Now,
}

/// A log that is written.
pub struct AuditLog {
    state: Mutex<State>,
    paths: LogPaths,
}

struct State {
    lock: LogLock,
    writer: Writer,
}

/// The state of a writer.
struct Writer {
    paths: LogPaths,
    directory: File,
    keeping: Keeping,
    cursor: Option<Cursor>,
    /// The last record that this process has seen; the log must not end before it.
    last_seen: Option<Link>,
    /// The number of the last record in the head.
    written: Option<u64>,
    /// A failed sync, after which nothing is written.
    failure: Option<String>,
}

impl AuditLog {
    /// Opens a log, or begins it, where no command can reach it and nobody else write it. `session` is in the records that
    /// this makes.
    pub fn open(
        paths: &LogPaths,
        keeping: Keeping,
        reached: ReachCheck<'_>,
        session: &str,
    ) -> Result<Self, AuditError> {
        let paths = paths.prepare(reached)?;
        let path = paths.directory();
        let directory = File::open(path).map_err(AuditError::io(path, "opening"))?;
        let mut lock = LogLock::at(paths.lock())?;
        let mut writer = Writer {
            paths: paths.clone(),
            directory,
            keeping,
            cursor: None,
            last_seen: None,
            written: None,
            failure: None,
        };
        let guard = lock.acquire()?;
        writer.catch_up(session)?;
        drop(guard);
        if let Some(why) = paths.objection() {
            let path = paths.log().to_owned();
            return Err(AuditError::Unsuitable { path, why });
        }
        let state = Mutex::new(State { lock, writer });
        Ok(Self { state, paths })
    }

    /// Records these events of a session, all or none of them.
    pub fn append(&self, session: &str, events: &[Event], durability: Durability) -> Result<(), AuditError> {
        // A panic while writing left no cursor behind.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { lock, writer } = &mut *state;
        let _guard = lock.acquire()?;
        writer.append(session, events)?;
        match durability {
            Durability::Later => Ok(()),
            Durability::Now => writer.commit(),
        }
    }
}

impl Writer {
    fn append(&mut self, session: &str, events: &[Event]) -> Result<(), AuditError> {
        if let Some(why) = &self.failure {
            return Err(AuditError::Failed(why.clone()));
        }
        let mut cursor = self.catch_up(session)?;
        let mut group = Group::after(cursor.link);
        for event in events {
            group.add(session, event)?;
        }
        if cursor.end.saturating_add(group.bytes.len() as u64) > self.keeping.max_bytes && cursor.start > 0 {
            cursor = self.rotate(cursor, session)?;
            group = Group::after(cursor.link);
            for event in events {
                group.add(session, event)?;
            }
        }
        self.write(cursor, &group)
    }

    /// Writes a group behind the cursor. What of it was written when it failed is removed again, or by whoever writes next.
    fn write(&mut self, mut cursor: Cursor, group: &Group) -> Result<(), AuditError> {
        let written = (&cursor.file).write_all(&group.bytes);
        if let Err(error) = written {
            let _left = cursor.file.set_len(cursor.end);
            return Err(AuditError::io(self.paths.log(), "writing")(error));
        }
        cursor.start = cursor.end + group.last_start;
        cursor.end += group.bytes.len() as u64;
        cursor.link = group.link;
        self.last_seen = Some(cursor.link);
        self.cursor = Some(cursor);
        Ok(())
    }

    /// Syncs all records, and updates the head.
    fn commit(&mut self) -> Result<(), AuditError> {
        let Some(cursor) = &self.cursor else {
            return Err(AuditError::Failed("it is not known where it ends".to_owned()));
        };
        if self.written == Some(cursor.link.seq) {
            return Ok(());
        }
        if let Err(error) = cursor.file.sync_data() {
            // A retry does not write what a failed sync has lost.
            self.failure = Some(error.to_string());
            return Err(AuditError::io(self.paths.log(), "syncing")(error));
        }
        cursor.head().write(&self.paths, &self.directory)?;
        self.written = Some(cursor.link.seq);
        Ok(())
    }

    /// Where the log ends, after what others have written; what a crash left is removed, and that recorded. The cursor
    /// is the caller's until the writing succeeds.
    fn catch_up(&mut self, session: &str) -> Result<Cursor, AuditError> {
        let at = match self.cursor.take() {
            Some(mut cursor) if cursor.is_current() => {
                let torn = cursor.catch_up()?;
                AppendAt::Here(cursor, torn)
            }
            // Another began a new file, and everything before that is certainly written; or this is the first time.
            before => {
                let found = cursor::find(&self.paths)?;
                self.verify_against_seen(&found)?;
                if let Some(before) = before {
                    self.verify_previous_file(&before)?;
                }
                self.written = None;
                found
            }
        };
        let (cursor, torn) = match at {
            AppendAt::Here(cursor, torn) => (cursor, torn),
            AppendAt::NewFile { number, after, torn } => (self.begin(number, after, session)?.0, torn),
        };
        if cursor.number == 1 && cursor.start == 0 && self.written.is_none() {
            // The first line of all: without a head, nothing may stand behind it.
            cursor
                .file
                .sync_all()
                .map_err(AuditError::io(self.paths.log(), "syncing"))?;
            cursor.head().write(&self.paths, &self.directory)?;
            self.written = Some(cursor.link.seq);
        }
        let cursor = match torn {
            Some(torn) => self.repair(cursor, torn, session)?,
            None => cursor,
        };
        self.last_seen = Some(cursor.link);
        Ok(cursor)
    }

    /// Verifies that the log does not end before the last record that was seen.
    fn verify_against_seen(&self, found: &AppendAt) -> Result<(), AuditError> {
        let Some(last_seen) = self.last_seen else {
            return Ok(());
        };
        match found.link() {
            Some(link) if link.seq > last_seen.seq || link == last_seen => Ok(()),
            Some(_) | None => {
                let written = last_seen.seq;
                Err(cursor::fault(
                    self.paths.log(),
                    Some(written),
                    Wrong::Truncated { written },
                ))
            }
        }
    }

    /// Verifies that the previous file is a rotated one of the log: another log could be longer.
    fn verify_previous_file(&self, before: &Cursor) -> Result<(), AuditError> {
        let aside = self.paths.rotated(before.number);
        let is_removed = || self.keeping.keep.is_some() && fs::symlink_metadata(&aside).is_err();
        if before.is_file_at(&aside) || is_removed() {
            return Ok(());
        }
        let number = before.number;
        Err(cursor::fault(self.paths.log(), None, Wrong::FileMissing { number }))
    }

    fn repair(&mut self, cursor: Cursor, torn: Torn, session: &str) -> Result<Cursor, AuditError> {
        cursor
            .file
            .set_len(cursor.end)
            .map_err(AuditError::io(self.paths.log(), "mending"))?;
        let mut group = Group::after(cursor.link);
        let Torn { bytes, sha256 } = torn;
        group.add(session, &Event::Mended { bytes, sha256 })?;
        self.write(cursor, &group)?;
        self.cursor
            .take()
            .ok_or_else(|| AuditError::Failed("it is not known where it ends".to_owned()))
    }

    /// Puts the file aside and begins the next. What was written to it is on disk before that.
    fn rotate(&mut self, cursor: Cursor, session: &str) -> Result<Cursor, AuditError> {
        let (number, link) = (cursor.number, cursor.link);
        self.written = None;
        self.cursor = Some(cursor);
        self.commit()?;
        self.cursor = None;
        let aside = self.paths.rotated(number);
        let step = AuditError::io(&aside, "putting the file aside as");
        if fs::symlink_metadata(&aside).is_ok() {
            return Err(step(std::io::ErrorKind::AlreadyExists.into()));
        }
        fs::rename(self.paths.log(), &aside).map_err(step)?;
        let (next, removed) = self.begin(number + 1, Some(link), session)?;
        self.cursor = Some(next);
        self.commit()?;
        if let Some(removed) = removed {
            self.remove_up_to(removed.file)?;
        }
        self.cursor
            .take()
            .ok_or_else(|| AuditError::Failed("it is not known where it ends".to_owned()))
    }

    /// Begins a file, in place of what a crash left of its first line, and says in it which earlier ones are to be removed.
    fn begin(
        &mut self,
        number: u64,
        after: Option<Link>,
        session: &str,
    ) -> Result<(Cursor, Option<Removed>), AuditError> {
        let path = self.paths.log();
        let removed = match after {
            Some(last) => self.to_remove(number - 1, last)?,
            None => None,
        };
        let (bytes, link) = first_line(number, after, removed, session)?;
        let file = state_files::open_or_create_to_append(path).map_err(AuditError::io(path, "beginning"))?;
        let written = file.set_len(0).and_then(|()| (&file).write_all(&bytes));
        if let Err(error) = written {
            let _left = file.set_len(0);
            return Err(AuditError::io(path, "beginning")(error));
        }
        file.sync_all()
            .and_then(|()| self.directory.sync_all())
            .map_err(AuditError::io(path, "syncing"))?;
        Ok((Cursor::new(file, path, number, bytes.len() as u64, link), removed))
    }

    /// The last of the files that are too many, when the one of this number, which ends with `last`, has been put aside.
    fn to_remove(&self, number: u64, last: Link) -> Result<Option<Removed>, AuditError> {
        let Some(file) = self
            .keeping
            .keep
            .and_then(|keep| number.checked_sub(keep))
            .filter(|file| *file > 0)
        else {
            return Ok(None);
        };
        if file == number {
            return Ok(Some(Removed { file, last }));
        }
        let next = self.paths.rotated(file + 1);
        let reading = |error| AuditError::io(&next, "reading")(error);
        let opened = match state_files::open_to_read(&next) {
            Ok(opened) => opened,
            // Somebody took it away: then it is not said that those before it were removed, and they are not.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(reading(error)),
        };
        let mut lines = Lines::of(&opened, 0, LONGEST + 1).map_err(reading)?;
        let opened = match step::first(&mut lines, Some(&last), Durable::Yes) {
            Ok(First::Line(opened)) => Some(opened.kind),
            Ok(First::Torn(_) | First::End) | Err(WalkError::Wrong(_)) => None,
            Err(WalkError::Io(error)) => return Err(reading(error)),
        };
        match opened {
            Some(Kind::Header(header)) => Ok(header.prev.map(|last| Removed { file, last })),
            Some(Kind::Record) | None => Err(cursor::fault(&next, None, Wrong::NoHeader)),
        }
    }

    /// Removes the files that the first line of a later one says are removed.
    fn remove_up_to(&self, last: u64) -> Result<(), AuditError> {
        let rotated_files = self
            .paths
            .rotated_files()
            .map_err(AuditError::io(self.paths.directory(), "listing"))?;
        for number in rotated_files.numbers.into_iter().filter(|number| *number <= last) {
            let path = self.paths.rotated(number);
            fs::remove_file(&path).map_err(AuditError::io(&path, "removing"))?;
        }
        Ok(())
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog")
            .field("place", &self.paths)
            .finish_non_exhaustive()
    }
}
