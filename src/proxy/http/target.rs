//! The destination of a request, and whether it opens a tunnel or is forwarded.

use http::Method;
use http::uri::PathAndQuery;

use super::authority::Authority;
use super::head::{Framing, Head};
use crate::policy::Host;
use crate::proxy::unreadable::Unreadable;

/// The port of `http://` without one.
const HTTP: u16 = 80;

/// A request to the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy) struct Request {
    pub(in crate::proxy) host: Host,
    pub(in crate::proxy) port: u16,
    pub(in crate::proxy) kind: RequestKind,
}

/// The kind of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy) enum RequestKind {
    /// CONNECT: a tunnel.
    Tunnel,
    /// Another method: one request to the server, for this target.
    Forward(PathAndQuery),
}

impl Request {
    /// The request of a head.
    ///
    /// # Errors
    /// The head is no request to a proxy, or names two hosts.
    pub(in crate::proxy) fn of(head: &Head) -> Result<Self, Unreadable> {
        if head.method == Method::CONNECT {
            return Self::tunnel(head);
        }
        let target = &*head.target;
        if target.starts_with('/') || target == "*" {
            return Err(Unreadable::NoHost);
        }
        let Some((scheme, rest)) = target.split_once("://") else {
            return Err(Unreadable::Target);
        };
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(Unreadable::Scheme);
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let Authority { host, port } = Authority::parse(authority)?;
        let port = port.unwrap_or(HTTP);
        if head.host.as_ref().is_some_and(|named| !named.is(&host, port, HTTP)) {
            return Err(Unreadable::HostDiffers);
        }
        let kind = RequestKind::Forward(origin_form(path)?);
        Ok(Self { host, port, kind })
    }

    fn tunnel(head: &Head) -> Result<Self, Unreadable> {
        match head.framing {
            Framing::None | Framing::Length(0) => {}
            Framing::Length(_) | Framing::Chunked => return Err(Unreadable::ConnectBody),
        }
        if head.target.contains(['/', '?', '#']) {
            return Err(Unreadable::Target);
        }
        let Authority { host, port } = Authority::parse(&head.target)?;
        let port = port.ok_or(Unreadable::Port)?;
        // Some clients leave out the port in their Host header, also where it is not the default.
        if head.host.as_ref().is_some_and(|named| !named.is(&host, port, port)) {
            return Err(Unreadable::HostDiffers);
        }
        let kind = RequestKind::Tunnel;
        Ok(Self { host, port, kind })
    }
}

/// The path and query of a URL, as the request line of a server has them.
fn origin_form(path: &str) -> Result<PathAndQuery, Unreadable> {
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    // Some servers read a second slash as the beginning of a host.
    if path.starts_with("//") {
        return Err(Unreadable::Target);
    }
    let parsed = PathAndQuery::try_from(path.as_str()).map_err(|_| Unreadable::Target)?;
    // A fragment is refused, not removed: it is for the client alone.
    (parsed.as_str() == path).then_some(parsed).ok_or(Unreadable::Target)
}
