//! Limits on what a server sends.

use std::time::Duration;

/// Bytes of one message.
pub(super) const MAX_MESSAGE: usize = 8 << 20;

/// Bytes of a longer one that are skipped to get to its end.
pub(super) const MAX_SKIPPED: usize = 256 << 20;

/// Consecutive lines that are no messages.
pub(super) const MAX_GARBAGE: usize = 10_000;

/// How long a server may take to initialize.
pub(super) const START_TIMEOUT: Duration = Duration::from_mins(1);

/// How long it may take to list its tools again.
pub(super) const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// How many pages its tools may take.
pub(super) const MAX_PAGES: usize = 64;

/// How many tools are offered.
pub(super) const MAX_TOOLS: usize = 256;

/// Bytes of one tool's definition.
pub(super) const MAX_DEFINITION: usize = 128 << 10;

/// Bytes of a description.
pub(super) const MAX_DESCRIPTION: usize = 16 << 10;

/// How many calls may be under way.
pub(super) const MAX_CALLS: usize = 16;

/// The default timeout of a call.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_mins(10);

/// The default limit on the bytes of a result.
pub(super) const MAX_OUTPUT: u64 = 1 << 20;
