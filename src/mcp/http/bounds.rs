//! Limits and timeouts.

use std::time::Duration;

/// The bounds of a server; [`Bounds::default`] is what `stockade mcp --http` has.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most connections at a time; fewer where the process may not open as many files.
    pub connections: usize,
    /// The most bytes of a request's line and headers, about.
    pub header_bytes: usize,
    /// How long a request's line and headers may take; a connection that says nothing is closed after it as well.
    pub header_time: Duration,
    /// The most bytes of a body.
    pub body_bytes: usize,
    /// How long a body may take.
    pub body_time: Duration,
    /// How many bodies may be larger than [`Bounds::SMALL_BODY`] at a time; others wait.
    pub large_bodies: usize,
    /// The most tool calls at a time; others wait.
    pub calls: usize,
    /// The most other requests at a time; others wait.
    pub others: usize,
    /// The most requests that wait; beyond it they are refused with `Retry-After`.
    pub waiting: usize,
    /// How long a request waits while only reserved connection slots are free (for cancellations, answers and ends of sessions); then it is
    /// refused.
    pub crowded: Duration,
    /// The most streams that only listen; fewer where there are not twice as many connections.
    pub streams: usize,
    /// The most sessions of older revisions; for another one the longest idle one is closed.
    pub sessions: usize,
    /// How long such a session is kept when nobody uses it.
    pub session_idle: Duration,
    /// How long a reply may stay unread before the connection is closed.
    pub unread: Duration,
    /// How long cancelled calls may take to end.
    pub withdrawal: Duration,
}

impl Bounds {
    /// A body up to this size waits for nothing.
    pub const SMALL_BODY: usize = 64 * 1024;
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 4096,
            header_bytes: 64 * 1024,
            header_time: Duration::from_secs(10),
            // The largest arguments of a call, and what the protocol says around them.
            body_bytes: (16 * 1024 + 64) * 1024,
            body_time: Duration::from_secs(30),
            large_bodies: 8,
            calls: 128,
            others: 128,
            waiting: 4096,
            crowded: Duration::from_secs(10),
            streams: 512,
            sessions: 256,
            session_idle: Duration::from_mins(30),
            unread: Duration::from_mins(1),
            withdrawal: Duration::from_secs(5),
        }
    }
}
