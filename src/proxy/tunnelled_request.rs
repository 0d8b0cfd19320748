//! Whether a request inside a tunnel names the host that the tunnel was asked for.

use http::Method;
use http::header::UPGRADE;

use super::http::authority::Authority;
use super::http::head::{Framing, Head};
use super::unreadable::Unreadable;
use crate::policy::Host;

/// What stands behind a request's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// Its body, and then other requests.
    Body,
    /// Whatever the server makes of the connection: the client asks for a WebSocket.
    Upgrade,
}

/// Which request of a tunnel it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The first one: the server's first answer is the answer to it.
    First,
    /// Another one.
    Later,
}

/// Judges one request of a tunnel.
///
/// # Errors
/// It names another host, or asks for something in which nothing could be seen any more.
pub(super) fn judge(head: &Head, order: Order, host: &Host, port: u16) -> Result<Then, Unreadable> {
    if head.method == Method::CONNECT {
        return Err(Unreadable::Nested);
    }
    // A server may go by the target, by the header, or by either.
    let target = named_by(&head.target)?;
    let is_same = |named: &Authority| named.is(host, port, port);
    if !target.iter().chain(&head.host).all(is_same) {
        return Err(Unreadable::HostDiffers);
    }
    if !head.headers.contains_key(UPGRADE) {
        return Ok(Then::Body);
    }
    let mut wanted = head.headers.get_all(UPGRADE).iter();
    let is_socket = wanted.all(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !is_socket || head.method != Method::GET || head.framing != Framing::None {
        // HTTP/2 and TLS would name hosts anew.
        return Err(Unreadable::Upgrade);
    }
    match order {
        Order::First => Ok(Then::Upgrade),
        Order::Later => Err(Unreadable::LateUpgrade),
    }
}

/// The host that a target names, if it is more than a path.
fn named_by(target: &str) -> Result<Option<Authority>, Unreadable> {
    // Some servers read a second slash as the beginning of a host, and so may nobody here.
    if (target.starts_with('/') && !target.starts_with("//")) || target == "*" {
        return Ok(None);
    }
    let (scheme, rest) = target.split_once("://").ok_or(Unreadable::Target)?;
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(Unreadable::Scheme);
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    Authority::parse(rest.get(..end).unwrap_or_default()).map(Some)
}
