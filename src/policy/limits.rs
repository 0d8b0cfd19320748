//! Limits on what a command may use.

use std::time::Duration;

/// Upper bounds for one command; `None` means no bound is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Limits {
    /// Wall-clock time.
    pub timeout: Option<Duration>,
    /// Resident memory of the whole tree, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads of the whole tree.
    pub processes: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Largest file one process may write, in bytes.
    pub file_size: Option<u64>,
    /// Bytes of output kept; the head and the tail, half each.
    pub output: Option<u64>,
}

/// The smaller of two bounds, where none is the largest.
fn lower<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Whether bound `a` is at least as strict as `b`.
fn within<T: Ord>(a: Option<T>, b: Option<T>) -> bool {
    match (a, b) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => a <= b,
    }
}

impl Limits {
    /// The bounds that hold when both hold.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            timeout: lower(self.timeout, other.timeout),
            memory: lower(self.memory, other.memory),
            processes: lower(self.processes, other.processes),
            open_files: lower(self.open_files, other.open_files),
            file_size: lower(self.file_size, other.file_size),
            output: lower(self.output, other.output),
        }
    }

    /// The names of all bounds that `self` sets wider than `other`.
    pub fn all_wider_than(&self, other: &Self) -> impl Iterator<Item = &'static str> {
        [
            ("timeout", within(self.timeout, other.timeout)),
            ("memory", within(self.memory, other.memory)),
            ("processes", within(self.processes, other.processes)),
            ("open_files", within(self.open_files, other.open_files)),
            ("file_size", within(self.file_size, other.file_size)),
            ("output", within(self.output, other.output)),
        ]
        .into_iter()
        .filter_map(|(name, holds)| (!holds).then_some(name))
    }
}
