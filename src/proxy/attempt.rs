//! An attempt to reach a host, and its outcome.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::tls::HelloError;
use super::unreadable::Unreadable;
use crate::policy::Host;
use crate::policy::hosts::AddressKind;

/// An attempt that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The requested destination.
    pub subject: Subject,
    /// The protocol of the request, if it is known.
    pub protocol: Option<Protocol>,
    /// The client's end of its connection.
    pub client: SocketAddr,
    /// The outcome.
    pub outcome: AttemptResult,
    /// The connected address, if any.
    pub address: Option<SocketAddr>,
    /// The detected content of a tunnel.
    pub content: TunnelContent,
    /// Bytes sent to the server, HTTP heads included.
    pub up: u64,
    /// Bytes from the server. Of a tunnel only those that were sent on count.
    pub down: u64,
    /// The time from the first byte of the request to the end.
    pub duration: Duration,
}

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// HTTP `CONNECT`: a tunnel.
    Connect,
    /// HTTP with an absolute URL in the request line: one request, one response.
    Http,
    /// SOCKS5: a tunnel.
    Socks,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "CONNECT",
            Self::Http => "HTTP",
            Self::Socks => "SOCKS5",
        })
    }
}

/// The subject of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A host and a port.
    Destination {
        /// The host, in canonical form.
        host: Host,
        /// The port.
        port: u16,
    },
    /// A request that cannot be parsed: its beginning, escaped.
    Unreadable(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Destination { host, port } => write!(f, "{host}:{port}"),
            Self::Unreadable(text) => write!(f, "`{text}`"),
        }
    }
}

/// The content of a tunnel, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TunnelContent {
    /// Nothing, or no tunnel.
    Nothing,
    /// TLS that names the requested host.
    NamedTls,
    /// TLS that names no host.
    NamelessTls,
    /// HTTP whose requests name the requested host.
    Http,
    /// HTTP that the server upgraded to another protocol (a WebSocket).
    Upgraded,
    /// Something else.
    Other,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptResult {
    /// It was permitted and connected, and has ended.
    Passed(End),
    /// It was refused: not connected, or cut off.
    Refused(Refusal),
    /// It was permitted, and could not be connected.
    Failed(Failure),
    /// The client or the proxy ended it before it was decided or connected.
    Abandoned(End),
}

impl fmt::Display for AttemptResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed(end) => write!(f, "let through; {end}"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Abandoned(end) => write!(f, "given up: {end}"),
        }
    }
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// Both ends closed it, or the response was complete.
    Closed,
    /// The client closed it early.
    ClientClosed,
    /// The server closed it early.
    ServerClosed,
    /// Nothing was sent for too long.
    Idle,
    /// The proxy was stopped.
    Stopped,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::ClientClosed => "the client broke it off",
            Self::ServerClosed => "the server broke it off",
            Self::Idle => "nothing was sent for too long",
            Self::Stopped => "stopped with its command",
        })
    }
}

/// Why an attempt was refused. Each prints as one line, which follows the name of the destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No rule names the host. Holds the setting that could: `shell.network.allow`.
    #[error("is not in the list of hosts ({0})")]
    NotListed(Cow<'static, str>),
    /// A person said no.
    #[error("was denied by a person")]
    Denied,
    /// Somebody was asked, and nobody answered in time.
    #[error("is not in the list of hosts, and nobody answered in time")]
    Unanswered,
    /// Another reason of the gate.
    #[error("{0}")]
    Other(Cow<'static, str>),
    /// The request cannot be parsed, or is ambiguous.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    /// The host has an address that is not public, and no rule names that address by number.
    #[error("leads to {address}, which is {kind}; only a rule with that number lets it through")]
    Address {
        /// The first of its addresses.
        address: IpAddr,
        /// The kind of the address.
        kind: AddressKind,
    },
    /// The host has an address of this machine, and no rule names that address by number.
    #[error("leads to {0}, which is this machine; only a rule with that number lets it through")]
    OwnAddress(IpAddr),
    /// TLS in the tunnel cannot be read, or names another host.
    #[error("{0}")]
    Hello(#[from] HelloError),
    /// HTTP in the tunnel cannot be read, or names another host.
    #[error("HTTP in the tunnel: {0}")]
    Tunnelled(Unreadable),
}

/// Why a permitted attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// There is no such name.
    #[error("has no address")]
    NoAddress,
    /// No answer about the name came in time.
    #[error("was not resolved in time")]
    ResolveTime,
    /// The server refused the connection.
    #[error("refused the connection ({0})")]
    ConnectionRefused(SocketAddr),
    /// The server did not answer in time.
    #[error("did not answer in time ({0})")]
    ConnectTime(SocketAddr),
    /// There is no route.
    #[error("cannot be reached ({0})")]
    Unreachable(SocketAddr),
    /// The server closed the connection early, or its response is no HTTP.
    #[error("gave no answer that can be read")]
    BadAnswer,
}
