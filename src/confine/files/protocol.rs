//! The messages between the parent and the file server.
//!
//! Every path of an operation but that of [`Look`] is one that a look gave and the parent judged: absolute, without symlinks. The
//! server opens it so that a symlink put there since makes it fail. Its replies are parsed as hostile input: frames are capped by
//! [`wire`](crate::confine::wire), numbers and paths are checked by the reader.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

mod bounded_list;
mod reply;

pub use reply::*;

/// The largest file that is loaded whole: to edit, patch or compare it.
pub const MAX_LOADED: u64 = 16 * 1024 * 1024;
/// The most bytes of text in one reply.
pub const MAX_TEXT: u64 = 4 * 1024 * 1024;

/// Parent → file server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRequest {
    /// How long listing, searching and counting may go on; what was found by then is the answer.
    pub deadline_ms: u64,
    /// What to do.
    pub operation: FileOperation,
}

/// An operation of the file server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileOperation {
    /// Where does a path lead, and what is there? Answered by [`FileReply::Found`].
    Look(Look),
    /// The same, and lines of the file there; [`Read::path`] is ignored. Answered by [`FileReply::Peeked`]. The parent judges the
    /// path before it passes the lines on.
    Peek(Look, Read),
    /// Lines of a file. Answered by [`FileReply::Text`].
    Read(Read),
    /// What lies below a directory. Answered by [`FileReply::Entries`], any number of times, and [`FileReply::Done`].
    List(List),
    /// Lines that match. Answered by [`FileReply::Matches`], any number of times, and [`FileReply::Done`].
    Search(Search),
    /// What changes would amount to; nothing is changed. Answered by [`FileReply::Prepared`], one for each.
    Prepare(Vec<Change>),
    /// The same as text for a person. Answered by [`FileReply::Shown`], one for each.
    Show(Vec<Change>),
    /// Makes changes, all or none, if everything still is as it was prepared. Answered by [`FileReply::Applied`].
    Apply(Vec<Bound>),
}

/// A path as an agent wrote it, made absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// The path; absolute, may lead through symlinks and `..`.
    pub path: OsString,
    /// What a symlink at its very end stands for.
    pub last: Last,
    /// Whether the content is hashed.
    pub hash: Hash,
}

/// What a symlink at the very end of a path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Last {
    /// What it leads to.
    Target,
    /// Itself: it is what would be deleted or moved.
    Itself,
}

/// Whether the content of a file is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hash {
    /// It is not.
    Skip,
    /// It is, if it has at most [`MAX_LOADED`] bytes.
    Content,
}

/// Lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// The file.
    pub path: OsString,
    /// The first line, from 1.
    pub first: u64,
    /// How many bytes of that line to leave out.
    pub skip: u64,
    /// How many lines; all when left out.
    pub lines: Option<u64>,
    /// The most bytes to give; at most [`MAX_TEXT`].
    pub max_bytes: u64,
}

/// A listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// The directory.
    pub path: OsString,
    /// How many levels down; 1 is the directory's own entries.
    pub depth: u32,
    /// Which entries.
    pub select: Select,
    /// The most entries to give; the rest is counted.
    pub limit: u64,
}

/// A search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// The directory, or a single file.
    pub path: OsString,
    /// What a line must match: a regular expression of the `regex` crate.
    pub pattern: String,
    /// Whether letters match in either case.
    pub case: Case,
    /// Which files.
    pub select: Select,
    /// How many lines around a match are given with it.
    pub context: u32,
    /// The most matches to give; the rest is counted.
    pub limit: u64,
}

/// Whether letters match in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Case {
    /// Only as written.
    Exact,
    /// In either.
    Either,
}

/// Which entries of a tree count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Select {
    /// A glob that the path below the directory must match (`*.rs`, `src/**/*.md`; one without `/` is matched by the name alone).
    pub glob: Option<String>,
    /// Whether names that begin with a dot count.
    pub hidden: Include,
    /// Whether what `.gitignore`, `.ignore` and git's own exclude file name counts.
    pub ignored: Include,
}

/// Whether something counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Include {
    /// It does not.
    No,
    /// It does.
    Yes,
}

/// One change to one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// This content, whatever was there; missing directories on the way are made.
    Write {
        /// The file.
        path: OsString,
        /// Its whole content.
        content: Vec<u8>,
        /// The most bytes the file may have.
        max_bytes: Option<u64>,
    },
    /// Exact replacements, one after the other, all or none.
    Edit {
        /// The file.
        path: OsString,
        /// The replacements.
        edits: Vec<Edit>,
        /// The most bytes the file may have.
        max_bytes: Option<u64>,
    },
    /// The hunks of a unified diff for this file, without its `---` and `+++` lines.
    Patch {
        /// The file.
        path: OsString,
        /// The hunks.
        hunks: String,
        /// The most bytes the file may have.
        max_bytes: Option<u64>,
    },
    /// Removes a file, a symlink, or an empty directory.
    Delete {
        /// What.
        path: OsString,
        /// Whether a directory goes with everything in it.
        tree: Tree,
    },
    /// Renames; nothing may be at the new path.
    Move {
        /// What.
        from: OsString,
        /// To where; missing directories on the way are made.
        to: OsString,
    },
    /// Makes a directory, and missing ones on the way.
    MakeDirectory {
        /// Which.
        path: OsString,
    },
}

/// Whether a directory is taken with everything in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tree {
    /// Only an empty one.
    Empty,
    /// With everything in it.
    Recursive,
}

/// One exact replacement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The text that must be there.
    pub old: String,
    /// The text that takes its place.
    pub new: String,
    /// Where.
    pub occurrences: Occurrences,
}

/// Which occurrences of a text are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Occurrences {
    /// The only one; more than one is an error.
    One,
    /// Every one; at least one.
    Every,
}

/// A change, and the state it was prepared for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The change.
    pub change: Change,
    /// What it must find, path by path, as [`Prepared`] said.
    pub before: Vec<State>,
    /// The hash of the content it must lead to, where it leads to any.
    pub after: Option<[u8; 32]>,
    /// The digest of what must be in the directory that is removed, where [`Contents`] had one.
    pub contents: Option<[u8; 32]>,
}
