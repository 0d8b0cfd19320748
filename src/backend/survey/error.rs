//! Why the file system could not be surveyed.

use std::io;

use crate::policy::AbsPath;

/// The most entries one survey lists; beyond it the start is refused.
pub const MOST_ENTRIES: usize = 200_000;

/// Why the file system could not be surveyed; each refuses the start.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// A path could not be looked at.
    #[error("failed to look at {path}: {source}")]
    Look {
        /// The path.
        path: AbsPath,
        /// What the OS said.
        source: io::Error,
    },
    /// A directory could not be listed.
    #[error("failed to list {path}: {source}")]
    List {
        /// The directory.
        path: AbsPath,
        /// What the OS said.
        source: io::Error,
    },
    /// A directory was exchanged while it was surveyed.
    #[error("{0} was replaced while it was looked at")]
    Changed(AbsPath),
    /// Names came and went all the while.
    #[error(
        "names in {0} changed while they were looked at, so nothing was started: try again when nothing writes there"
    )]
    Busy(AbsPath),
    /// A thing of a kind that no OS has.
    #[error("{0} is of an unknown file type")]
    Unknown(AbsPath),
    /// Too many entries.
    #[error("more than {MOST_ENTRIES} entries would have to be ruled one by one (reached in {0}): narrow the clause")]
    TooMany(AbsPath),
    /// `/proc/self/mountinfo` could not be read.
    #[error("failed to read /proc/self/mountinfo: {0}")]
    ReadMounts(#[source] io::Error),
    /// A line of `/proc/self/mountinfo` could not be understood.
    #[error("a line of /proc/self/mountinfo cannot be understood: {0}")]
    Mountinfo(String),
}
