//! What is wrong with a log.

use std::fmt;
use std::fs::symlink_metadata;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::policy::path::display;

/// The first record of a log that is not what was written, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// The line in it, from 1; `None` where it is about the file as a whole.
    pub line: Option<u64>,
    /// The number of the record that should stand there.
    pub seq: Option<u64>,
    /// What is wrong.
    pub wrong: Wrong,
}

/// What is wrong with a record, or with a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "wrong", rename_all = "snake_case")]
pub enum Wrong {
    /// Its bytes are not those that its hash was made of.
    Edited,
    /// The line is no record.
    NoRecord,
    /// The line is longer than any record.
    TooLong,
    /// Records before it are gone.
    Missing {
        /// The first.
        from: u64,
        /// The last.
        to: u64,
    },
    /// It stands where another belongs: moved, or repeated.
    OutOfPlace {
        /// The number that belongs there.
        expected: u64,
        /// Its own.
        found: u64,
    },
    /// It does not carry the hash of the record before: one of the two was written anew.
    DoesNotFollow,
    /// The log ends before the record that was certainly written.
    Truncated {
        /// The number of that record.
        written: u64,
    },
    /// The record that was certainly written is there, and is another: the log was written anew.
    Rewritten,
    /// Nothing says how far the log was certainly written.
    NoHead,
    /// What says how far the log was certainly written cannot be read.
    HeadUnreadable,
    /// A file that belongs between others, or before them, is gone, and no record says that it was removed.
    FileMissing {
        /// Its number.
        number: u64,
    },
    /// A file bears the name of an earlier file, and is none of the log's.
    Stray,
    /// What stands in the place of a file is none.
    NoFile {
        /// What it is.
        is: &'static str,
    },
    /// A file does not begin as one.
    NoHeader,
    /// The file begins as another: it was put in the place of this one.
    OtherFile {
        /// The number that it bears.
        number: u64,
    },
    /// A line that only begins files stands elsewhere.
    StrayHeader,
    /// A file that another one follows ends in the middle of a line.
    CutShort,
    /// The file is of a format that this version does not know.
    OtherFormat(
        /// Its version.
        #[serde(skip)]
        u32,
    ),
    /// No record has the hash that was expected.
    NotWhatWasExpected,
}

impl Fault {
    /// A fault without a line number.
    pub(super) fn of_file(file: &Path, seq: Option<u64>, wrong: Wrong) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            seq,
            wrong,
        }
    }

    /// What is wrong where something that is no regular file stands in the place of one.
    pub(super) fn of_no_file(path: &Path) -> Option<Self> {
        let kind = symlink_metadata(path).ok()?.file_type();
        let is = if kind.is_file() {
            return None;
        } else if kind.is_symlink() {
            "a symbolic link"
        } else if kind.is_dir() {
            "a directory"
        } else if kind.is_fifo() {
            "a FIFO"
        } else if kind.is_socket() {
            "a socket"
        } else {
            "a device"
        };
        Some(Self::of_file(path, None, Wrong::NoFile { is }))
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edited => f.write_str("edited: its bytes are not those that its hash was made of"),
            Self::NoRecord => f.write_str("edited: the line is no record"),
            Self::TooLong => f.write_str("edited: the line is longer than any record"),
            Self::Missing { from, to } if from == to => write!(f, "deleted: record {from} is missing before it"),
            Self::Missing { from, to } => write!(f, "deleted: records {from} to {to} are missing before it"),
            Self::OutOfPlace { expected, found } => {
                write!(f, "reordered: record {found} stands where record {expected} belongs")
            }
            Self::DoesNotFollow => f.write_str(
                "edited: it does not carry the hash of the record before, so one of the two was written anew",
            ),
            Self::Truncated { written } => {
                write!(
                    f,
                    "truncated: record {written} was certainly written, and the log ends before it"
                )
            }
            Self::Rewritten => f.write_str("edited: it is not the record that was certainly written with this number"),
            Self::NoHead => f.write_str(
                "the head file is missing, which says how far the log was certainly written; it may be truncated",
            ),
            Self::HeadUnreadable => {
                f.write_str("the head file cannot be read, which says how far the log was certainly written")
            }
            Self::FileMissing { number } => {
                write!(
                    f,
                    "deleted: file {number} is missing, and no record says that it was removed"
                )
            }
            Self::Stray => f.write_str(
                "stray: it bears the name of an earlier file, and is none of this log's; move it to another directory",
            ),
            Self::NoFile { is } => write!(f, "replaced: {is} stands in the place of a file of the log"),
            Self::NoHeader => f.write_str("edited: the file does not begin with the line that begins every file"),
            Self::OtherFile { number } => write!(f, "reordered: this is file {number}, in the place of another"),
            Self::StrayHeader => f.write_str("edited: a line that only begins files stands in the middle of one"),
            Self::CutShort => f.write_str("truncated: the file ends in the middle of a line, and another follows it"),
            Self::OtherFormat(version) => write!(f, "its format {version} is not known to this version"),
            Self::NotWhatWasExpected => f.write_str("not among them: no record of the log has the hash that was expected, so it is another log, or it was written anew or cut"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&display(&self.file))?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(seq) = self.seq {
            write!(f, ", record {seq}")?;
        }
        write!(f, ": {}", self.wrong)
    }
}
