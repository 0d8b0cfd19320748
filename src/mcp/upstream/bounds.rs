//! How much of what a server says anybody has reason for.

use std::time::Duration;

/// Bytes of one message.
pub(super) const MOST_MESSAGE: usize = 8 << 20;

/// Bytes of a longer one that are skipped to get to its end.
pub(super) const MOST_SKIPPED: usize = 256 << 20;

/// Lines in a row that are no messages, as a program says them that is no server.
pub(super) const MOST_GARBAGE: usize = 10_000;

/// How long a server may take until it has said what it is and what its tools are.
pub(super) const START: Duration = Duration::from_mins(1);

/// How long it may take to list its tools again.
pub(super) const LISTING: Duration = Duration::from_secs(30);

/// How many pages its tools may take.
pub(super) const MOST_PAGES: usize = 64;

/// How many tools are offered.
pub(super) const MOST_TOOLS: usize = 256;

/// Bytes of one tool's definition.
pub(super) const MOST_DEFINITION: usize = 128 << 10;

/// Bytes of a description.
pub(super) const MOST_DESCRIPTION: usize = 16 << 10;

/// How many calls may be under way.
pub(super) const MOST_CALLS: usize = 16;

/// How long a call may take where the config sets no time.
pub(super) const CALL: Duration = Duration::from_mins(10);

/// Bytes that a call may give where the config sets no bound.
pub(super) const MOST_OUTPUT: u64 = 1 << 20;
