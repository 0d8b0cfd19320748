//! Whoever decides about connections, as the proxy sees it.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use super::attempt::{Attempt, Protocol, Refusal};
use crate::policy::Host;

/// What a client wants to reach, once it is read and in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The host, as it was named: nothing is resolved yet.
    pub host: Host,
    /// The port, never 0.
    pub port: u16,
    /// How it was asked for.
    pub protocol: Protocol,
    /// The client's end of its connection, in its own network namespace.
    pub client: SocketAddr,
}

/// Whether a connection may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allowed,
    /// It may not; the client is told why.
    Refused(Refusal),
}

/// A verdict to come. Dropped when the client gives up, or when the proxy is stopped.
pub type Decision<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// Decides about one command's connections, and hears of each.
pub trait Gate: Send + Sync + 'static {
    /// Asked for every request, before anything is resolved. May take as long as a person takes.
    fn decide(&self, wanted: Wanted) -> Decision<'_>;

    /// Whether an address that is not public, or this machine's own, may be reached: a rule names it by number.
    fn reaches(&self, address: IpAddr, port: u16) -> bool;

    /// Told of every attempt once, when it has ended: what was refused at once, what was let through when it is closed.
    fn attempted(&self, attempt: Attempt);
}
