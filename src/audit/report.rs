//! The result of a verification.

use super::chain::Hash;
use super::fault::Fault;

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How many records are as they were written, up to the first that is not.
    pub records: u64,
    /// How many files there are.
    pub files: u64,
    /// The number and hash of the last of these records: what an outside note pins the log with.
    pub last: Option<(u64, Hash)>,
    /// How many of them are behind the head, so that nothing would tell of it were they cut off; `None` where no head says how
    /// far the log was certainly written.
    pub behind: Option<u64>,
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
    /// With a complete line.
    Complete,
    /// With so many bytes that a crash left behind the last record: part of another, or blocks without a content. They were never
    /// certainly written.
    Partial(u64),
}
