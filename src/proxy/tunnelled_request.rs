//! Judges HTTP requests inside a tunnel: they must name the host of the tunnel.

use http::Method;
use http::header::UPGRADE;

use super::http::authority::Authority;
use super::http::head::{Framing, Head};
use super::unreadable::Unreadable;
use crate::policy::Host;

/// The protocol after the head of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterHead {
    /// HTTP: the body, then other requests.
    Body,
    /// A WebSocket, if the server agrees to the upgrade.
    Upgrade,
}

/// The position of a request in a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The first request. The first response of the server belongs to it.
    First,
    /// A later request.
    Later,
}

/// Judges one request of a tunnel.
///
/// # Errors
/// It names another host, or requests a protocol that cannot be inspected.
pub(super) fn judge(head: &Head, order: Order, host: &Host, port: u16) -> Result<AfterHead, Unreadable> {
    if head.method == Method::CONNECT {
        return Err(Unreadable::Nested);
    }
    // A server may use the target or the Host header, so both must match.
    let target = named_by(&head.target)?;
    let is_same = |named: &Authority| named.is(host, port, port);
    if !target.iter().chain(&head.host).all(is_same) {
        return Err(Unreadable::HostDiffers);
    }
    if !head.headers.contains_key(UPGRADE) {
        return Ok(AfterHead::Body);
    }
    let mut upgrades = head.headers.get_all(UPGRADE).iter();
    let is_socket = upgrades.all(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !is_socket || head.method != Method::GET || head.framing != Framing::None {
        // Inside HTTP/2 or TLS, other hosts could be named.
        return Err(Unreadable::Upgrade);
    }
    match order {
        Order::First => Ok(AfterHead::Upgrade),
        Order::Later => Err(Unreadable::LateUpgrade),
    }
}

/// The host that a target names, if it is more than a path.
fn named_by(target: &str) -> Result<Option<Authority>, Unreadable> {
    // Some servers read `//` at the start as the beginning of a host.
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
