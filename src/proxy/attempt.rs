//! What became of one attempt to reach something.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::tls::HelloError;
use super::unreadable::Unreadable;
use crate::policy::Host;
use crate::policy::hosts::AddressKind;

/// One attempt, when it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// What was wanted.
    pub subject: Subject,
    /// How it was asked for, as far as that could be told.
    pub protocol: Option<Protocol>,
    /// The client's end of its connection.
    pub client: SocketAddr,
    /// What became of it.
    pub outcome: Outcome,
    /// The address that was connected, if it came to that.
    pub address: Option<SocketAddr>,
    /// What a tunnel was seen to carry.
    pub seen: Seen,
    /// Bytes that the server was sent: all, the heads of HTTP too.
    pub up: u64,
    /// Bytes that came from the server: of HTTP all, of a tunnel those that the client was sent.
    pub down: u64,
    /// How long it took, from the first byte that was read to the end.
    pub duration: Duration,
}

/// How a client asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// HTTP `CONNECT`: a tunnel.
    Connect,
    /// HTTP with the whole address in the request line: one request, one answer.
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

/// What a client wanted to reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A host and a port.
    Place {
        /// The host, in canonical form.
        host: Host,
        /// The port.
        port: u16,
    },
    /// What could not be read as such: its beginning, with everything that is not printable ASCII escaped.
    Unreadable(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place { host, port } => write!(f, "{host}:{port}"),
            Self::Unreadable(text) => write!(f, "`{text}`"),
        }
    }
}

/// What the first bytes of a tunnel were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Seen {
    /// Nothing, or no tunnel.
    Nothing,
    /// TLS that names the host that was asked for.
    NamedTls,
    /// TLS that names no host.
    NamelessTls,
    /// HTTP whose requests name the host that was asked for.
    Http,
    /// HTTP that the server turned into something else (a WebSocket).
    Upgraded,
    /// Something else, of which nothing is known.
    Other,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was let through, and has ended.
    Passed(End),
    /// It was refused: nothing was connected, or what was is cut.
    Refused(Refusal),
    /// It was let through, and did not come about.
    Failed(Failure),
    /// It ended before it was decided or connected.
    Abandoned(End),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed(end) => write!(f, "let through; {end}"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Abandoned(end) => write!(f, "given up: {end}"),
        }
    }
}

/// How what was under way ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// Both ends closed it, or the answer was complete.
    Closed,
    /// The client broke it off.
    ClientLeft,
    /// The server broke it off.
    ServerLeft,
    /// Nothing was sent for too long.
    Idle,
    /// The proxy was stopped.
    Stopped,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::ClientLeft => "the client broke it off",
            Self::ServerLeft => "the server broke it off",
            Self::Idle => "nothing was sent for too long",
            Self::Stopped => "stopped with its command",
        })
    }
}

/// Why an attempt was refused. One line each, to stand after the name of what was wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No rule names it. Holds the setting that would: `shell.network.allow`.
    #[error("is not in the list of hosts ({0})")]
    NotListed(Cow<'static, str>),
    /// A person said no.
    #[error("was denied by a person")]
    Denied,
    /// Somebody was asked, and nobody answered in time.
    #[error("is not in the list of hosts, and nobody answered in time")]
    Unanswered,
    /// Whoever decides has another reason.
    #[error("{0}")]
    Other(Cow<'static, str>),
    /// It cannot be read, or could be read in two ways.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    /// It leads to an address that is not public, and no rule names that by number.
    #[error("leads to {address}, which is {kind}; only a rule with that number lets it through")]
    Address {
        /// The first of its addresses.
        address: IpAddr,
        /// What kind of address that is.
        kind: AddressKind,
    },
    /// It leads to this machine itself, and no rule names that by number.
    #[error("leads to {0}, which is this machine; only a rule with that number lets it through")]
    OwnAddress(IpAddr),
    /// TLS in the tunnel cannot be read, or names another host.
    #[error("{0}")]
    Hello(#[from] HelloError),
    /// HTTP in the tunnel cannot be read, or names another host.
    #[error("HTTP in the tunnel: {0}")]
    Tunnelled(Unreadable),
}

/// Why what was let through did not come about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// There is no such name.
    #[error("has no address")]
    NoAddress,
    /// No answer about the name came in time.
    #[error("was not resolved in time")]
    ResolveTime,
    /// Nothing there takes connections.
    #[error("refused the connection ({0})")]
    ConnectionRefused(SocketAddr),
    /// No answer from there came in time.
    #[error("did not answer in time ({0})")]
    ConnectTime(SocketAddr),
    /// There is no way there.
    #[error("cannot be reached ({0})")]
    Unreachable(SocketAddr),
    /// The server broke off, or what it answered is no HTTP.
    #[error("gave no answer that can be read")]
    BadAnswer,
}
