//! Bounds on connections, time and buffers.

use std::time::Duration;

/// The bounds of one proxy; [`Bounds::default`] is what commands have.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most connections at a time; others wait to be accepted. Fewer where the process may not open as many files.
    pub connections: usize,
    /// How long the head of a request, or the greeting of SOCKS, may take.
    pub head_time: Duration,
    /// How long a connection may wait for its next request.
    pub keep_alive: Duration,
    /// How long nothing may be sent, in either direction, on what was let through.
    pub idle: Duration,
    /// The most addresses of a name that are tried.
    pub addresses: usize,
    /// How long connecting to one address may take.
    pub connect_time: Duration,
    /// How long a client may still send what was refused, so that it reads the answer.
    pub linger: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 256,
            head_time: Duration::from_secs(30),
            keep_alive: Duration::from_mins(1),
            idle: Duration::from_mins(10),
            addresses: 8,
            connect_time: Duration::from_secs(10),
            linger: Duration::from_secs(1),
        }
    }
}

/// The most bytes of a request's head, of the first message of TLS, and of what waits in either direction.
pub(super) const BUFFER: usize = 64 * 1024;
/// The most bytes that a server may send before the head of its response is complete: any number of interim responses
/// (`100 Continue`) may come first.
pub(super) const UNANSWERED: u64 = 4 * BUFFER as u64;
/// The most headers of a request.
pub(super) const HEADERS: usize = 100;
/// The most tokens in the Connection headers of a request or a response.
pub(super) const NAMED: usize = 32;
