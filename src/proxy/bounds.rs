//! Bounds on connections, time and buffers.

use std::time::Duration;

/// The bounds of one proxy; [`Bounds::default`] is what commands have.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most concurrent connections; others wait to be accepted. The limit on open files can lower it.
    pub connections: usize,
    /// The time limit of a request's head, and of the greeting of SOCKS.
    pub head_time: Duration,
    /// The time that a connection may wait for its next request.
    pub keep_alive: Duration,
    /// The time that a permitted connection may be idle in both directions.
    pub idle: Duration,
    /// The most addresses of a name that are tried.
    pub addresses: usize,
    /// The time limit of connecting to one address.
    pub connect_time: Duration,
    /// The time that a refused client may go on sending, so that it can read the rejection.
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
