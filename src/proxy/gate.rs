//! The interface to the policy decision about connections.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use super::attempt::{Attempt, Protocol, Refusal};
use crate::policy::Host;

/// A parsed request for a connection, in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectRequest {
    /// The host, not resolved yet.
    pub host: Host,
    /// The port, never 0.
    pub port: u16,
    /// The protocol of the request.
    pub protocol: Protocol,
    /// The client's end of its connection, in its own network namespace.
    pub client: SocketAddr,
}

/// Whether a connection may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allowed,
    /// It may not. The client is told the reason.
    Refused(Refusal),
}

/// A pending verdict. Dropped when the client closes the connection or the proxy is stopped.
pub type Decision<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// Decides about one command's connections, and records them.
pub trait Gate: Send + Sync + 'static {
    /// Decides about a request before its name is resolved. May wait for a person.
    fn decide(&self, request: ConnectRequest) -> Decision<'_>;

    /// Whether an address that is not public, or this machine's own, may be reached: a rule names it by number.
    fn reaches(&self, address: IpAddr, port: u16) -> bool;

    /// Records an attempt; called once, when it has ended.
    fn attempted(&self, attempt: Attempt);
}
