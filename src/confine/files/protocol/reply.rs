//! Replies of the file server. The parent parses them as hostile input.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use super::bounded_list::at_most;

/// The most entries or matches in one part of a stream.
pub const MAX_PART: usize = 256;

/// The most states of one change: of a move, at the old path and the new one.
const MOST_STATES: usize = 2;
/// The most lines given with one match.
const MOST_LINES: usize = 4096;
/// The most places of an ambiguous edit that are named.
const MOST_LOCATIONS: usize = 10;

/// File server → parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileReply {
    /// Where a path leads.
    Found(Found),
    /// Where a path leads, and lines of the file there; no lines where reading them failed.
    Peeked(Found, Option<Text>),
    /// Lines of a file.
    Text(Text),
    /// Some entries; more follow.
    #[serde(deserialize_with = "at_most::<_, _, MAX_PART>")]
    Entries(Vec<Entry>),
    /// Some matches; more follow.
    #[serde(deserialize_with = "at_most::<_, _, MAX_PART>")]
    Matches(Vec<Match>),
    /// The end of a stream.
    Done(Done),
    /// What changes would amount to.
    Prepared(Vec<Prepared>),
    /// The same, for a person.
    Shown(Vec<Shown>),
    /// The changes are made.
    Applied,
    /// It could not be done; nothing was changed.
    Failed(Failure),
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The path without symlinks. Where the end of it does not exist yet, the existing part is without symlinks.
    pub path: OsString,
    /// What is there.
    pub state: State,
    /// The nearest directory above that exists, without symlinks.
    pub existing: OsString,
    /// Whether a link of /proc was on the way: it leads another process elsewhere.
    pub is_of_process: bool,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Nothing.
    Absent,
    /// A file.
    File(FileState),
    /// A directory.
    Directory {
        /// `st_dev`.
        device: u64,
        /// `st_ino`.
        inode: u64,
    },
    /// A symlink, and where it points.
    Symlink(OsString),
    /// Something else, which no file tool touches.
    Other(Special),
}

/// A file as it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// `st_nlink`.
    pub links: u64,
    /// When its content was last changed, in nanoseconds since 1970.
    pub modified: i128,
    /// When anything of it was last changed, in nanoseconds since 1970. Nobody can set that.
    pub changed: i128,
    /// SHA-256 of its content, where it was requested and is small enough.
    pub digest: Option<[u8; 32]>,
}

/// What is neither file, directory nor symlink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Special {
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
}

/// Lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The bytes, line ends as they are in the file. Cut at the end of a line, unless one line alone is too long.
    pub bytes: Vec<u8>,
    /// The first line given, from 1.
    pub first: u64,
    /// How many lines are given.
    pub lines: u64,
    /// How many lines the file has, if they could be counted in time.
    pub total_lines: Option<u64>,
    /// Bytes of the file.
    pub total_bytes: u64,
    /// Where the first line is cut, which alone is too long: how many of its bytes were left out and given.
    pub cut: Option<u64>,
    /// Whether there is more of what was asked for.
    pub end: End,
}

/// Whether a reply is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// All of it is given.
    Complete,
    /// More is there than was to be given.
    Limit,
    /// The time was over.
    Time,
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path, absolute.
    pub path: OsString,
    /// What it is.
    pub kind: Kind,
    /// Bytes, of a file.
    pub size: u64,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symlink.
    Symlink,
    /// Something else.
    Other,
}

/// One match of a search, with the lines around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// The file, absolute.
    pub path: OsString,
    /// The number of the first line given, from 1.
    pub first: u64,
    /// The number of the line that matched.
    pub line: u64,
    /// The lines without their ends; a long one is cut.
    #[serde(deserialize_with = "at_most::<_, _, MOST_LINES>")]
    pub lines: Vec<Vec<u8>>,
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// How many entries or matches there are, given or not, as far as was looked.
    pub total: u64,
    /// How many files were searched.
    pub files: u64,
    /// How many files and directories could not be read.
    pub unreadable: u64,
    /// Whether all was looked at.
    pub end: End,
}

/// What a change would amount to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// What is there now, path by path: one for most changes; old and new for a move.
    #[serde(deserialize_with = "at_most::<_, _, MOST_STATES>")]
    pub before: Vec<State>,
    /// SHA-256 of the content it leads to, where it leads to any.
    pub after: Option<[u8; 32]>,
    /// Bytes of that content.
    pub size: u64,
    /// Files that go with it: of a directory that is moved.
    pub files: u64,
    /// What goes with it: of a directory that is removed with everything in it.
    pub contents: Option<Contents>,
}

/// What is in a directory, at any depth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Directories.
    pub directories: u64,
    /// Everything else.
    pub files: u64,
    /// Bytes of the regular files.
    pub bytes: u64,
    /// SHA-256 of what tells it from any other content: names, kinds, sizes, and when anything of each was last changed. None where
    /// there is more than [`MAX_CONTENTS`] or the time was over, and the numbers are those of a part.
    pub digest: Option<[u8; 32]>,
}

/// The most entries of a directory that are told apart and counted.
pub const MAX_CONTENTS: u64 = 100_000;
/// The most entries of it that are named.
pub const MAX_NAMED: usize = 200;

/// A change as a person is shown it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// What it was made from; must be what was prepared.
    pub prepared: Prepared,
    /// The change.
    pub view: View,
}

/// The content of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum View {
    /// A unified diff, not escaped; cut at [`MAX_TEXT`](super::MAX_TEXT) bytes.
    Diff(String),
    /// The whole content of a new file, not escaped.
    Content(String),
    /// Content that is no text: what it looks like, and its size.
    Binary {
        /// In a word or two: `PNG image`, `ELF program`, `binary`.
        what: String,
        /// Bytes.
        size: u64,
    },
    /// Nothing beyond the names: moved or made.
    Names(Vec<OsString>),
    /// What is removed.
    Removed(Removed),
}

/// What is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Removed {
    /// A file of text.
    Text {
        /// Its first lines, not escaped.
        begins: String,
        /// How many lines it has.
        lines: u64,
        /// Bytes.
        size: u64,
    },
    /// A file that is no text.
    Binary {
        /// In a word or two, as for [`View::Binary`].
        what: String,
        /// Bytes.
        size: u64,
    },
    /// A file that is too large to be looked into, or may not be read.
    Unread {
        /// Bytes.
        size: u64,
    },
    /// A symlink, and where it points.
    Symlink(OsString),
    /// A directory, with the first paths below it. How many there are is in [`Prepared::contents`].
    Tree(#[serde(deserialize_with = "at_most::<_, _, MAX_NAMED>")] Vec<OsString>),
}

/// Why it could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What it is about.
    pub path: OsString,
    /// Why.
    pub why: Why,
}

/// Why a file operation could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// Nothing is there.
    Missing,
    /// Nothing is there, and something is at a path that differs in spelling alone.
    Spelled(OsString),
    /// The system refused: the sandbox, or the file's own mode.
    NotPermitted,
    /// It is a directory.
    IsDirectory,
    /// It, or something on the way to it, is no directory.
    NotDirectory,
    /// It is neither file nor directory.
    Special(Special),
    /// It is no text.
    Binary {
        /// What it looks like.
        what: String,
        /// Bytes.
        size: u64,
    },
    /// It has, or would have, more bytes than permitted.
    TooLarge {
        /// Bytes.
        size: u64,
        /// The most.
        limit: u64,
    },
    /// It is no longer what was looked at.
    Changed,
    /// Something is there already.
    Exists,
    /// The directory is not empty.
    NotEmpty,
    /// The text of an edit is not in the file.
    NoMatch {
        /// Which edit, from 1.
        edit: usize,
        /// The nearest lines.
        near: Option<Near>,
    },
    /// The text of an edit is there more than once.
    Ambiguous {
        /// Which edit, from 1.
        edit: usize,
        /// The lines at which it begins; the first ten.
        #[serde(deserialize_with = "at_most::<_, _, MOST_LOCATIONS>")]
        lines: Vec<u64>,
        /// How many there are.
        count: u64,
    },
    /// An edit that changes nothing, or has no text to look for.
    EmptyEdit {
        /// Which edit, from 1.
        edit: usize,
    },
    /// A hunk of a patch does not fit.
    Hunk {
        /// Which hunk, from 1.
        hunk: usize,
        /// The nearest lines.
        near: Option<Near>,
    },
    /// The pattern, glob or patch cannot be read, for this reason.
    Malformed(String),
    /// It leads through more symlinks than the system follows, or in a circle.
    Loop,
    /// It is on another file system than where it would go.
    OtherFileSystem,
    /// The errno of anything else.
    System(i32),
}

/// Lines that are nearly what was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Near {
    /// The number of the first, from 1.
    pub line: u64,
    /// What stands there, capped.
    pub text: String,
    /// How it differs, in words: `only white space differs`, `a line differs`.
    pub difference: String,
}
