//! Why the bytes of a client are no request, or an ambiguous one.

use crate::policy::hosts::HostError;

/// Why a request is refused before the gate is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The connection ended in the middle.
    #[error("ended in the middle of a request")]
    Short,
    /// The request did not come in time.
    #[error("did not come in time")]
    Slow,
    /// The head of a request is longer than 64 KiB.
    #[error("has a head that is too long")]
    TooLong,
    /// There are more headers than a request may have.
    #[error("has too many headers")]
    TooMany,
    /// `Connection` names more headers than there may be.
    #[error("names too many headers in its Connection header")]
    TooManyNamed,
    /// A line does not end in CR and LF, or these stand elsewhere.
    #[error("has a line that does not end in CR LF")]
    LineEnd,
    /// A byte that stands in no request: a control character, NUL.
    #[error("holds a byte that stands in no request")]
    Byte,
    /// The first line is not a method, a target and a version with one blank between them.
    #[error("has no readable request line")]
    RequestLine,
    /// Neither HTTP/1.1 nor HTTP/1.0.
    #[error("is neither HTTP/1.1 nor HTTP/1.0")]
    Version,
    /// A header without a name, with blanks around it, or over several lines.
    #[error("has a header that can be read in two ways")]
    Header,
    /// The target is only a path: the client treats the proxy as a server.
    #[error("names no host: this is a proxy")]
    NoHost,
    /// The target is neither `http://HOST/` nor, for CONNECT, `HOST:PORT`.
    #[error("has a target that is neither http://HOST/… nor, for CONNECT, HOST:PORT")]
    Target,
    /// The scheme is not `http`: `https://` needs CONNECT.
    #[error("asks for another scheme than http; use CONNECT")]
    Scheme,
    /// A user or password before the host.
    #[error("has a user in its target")]
    User,
    /// The host is neither a name nor an address.
    #[error("names a host that {0}")]
    Host(#[from] HostError),
    /// A required port is missing, or is no number from 1 to 65535.
    #[error("has no readable port")]
    Port,
    /// HTTP/1.1 without a Host header.
    #[error("has no Host header")]
    HostMissing,
    /// More than one Host header.
    #[error("has two Host headers")]
    HostTwice,
    /// The Host header names another host or port than the target.
    #[error("has a Host header that names another host")]
    HostDiffers,
    /// Two lengths, a length that is no plain number, or a length beside a transfer encoding.
    #[error("says in two ways how long it is")]
    Length,
    /// A transfer encoding other than `chunked`.
    #[error("has a transfer encoding other than chunked")]
    Encoding,
    /// A chunk that can be read in two ways.
    #[error("has a body that can be read in two ways")]
    Chunk,
    /// A body on a method that has none. A server that ignores the body would parse it as the next request.
    #[error("has a body though it is a GET or a HEAD, which a server may take for another request")]
    Body,
    /// CONNECT with a body.
    #[error("is a CONNECT with a body")]
    ConnectBody,
    /// The header of the PROXY protocol, inside a tunnel. With it a client could claim another address.
    #[error("says, as a proxy does, for whom it speaks (the PROXY protocol)")]
    Preface,
    /// CONNECT inside a tunnel.
    #[error("is a CONNECT inside a tunnel")]
    Nested,
    /// An expectation other than `100-continue`.
    #[error("expects something else than 100-continue")]
    Expect,
    /// An upgrade to something else than a WebSocket, inside a tunnel.
    #[error("asks for an upgrade to something else than a WebSocket")]
    Upgrade,
    /// An upgrade after other requests of the same tunnel.
    #[error("asks for an upgrade after other requests")]
    LateUpgrade,
    /// TLS to the proxy itself.
    #[error("speaks TLS to the proxy itself, which is reached by http:// or socks5://")]
    ProxyTls,
    /// SOCKS4.
    #[error("is SOCKS4, which is not served; use SOCKS5")]
    Socks4,
    /// SOCKS5 where the client offers no method without authentication.
    #[error("offers no SOCKS5 method without a password")]
    SocksMethod,
    /// A SOCKS5 command other than CONNECT.
    #[error("asks SOCKS5 for something else than CONNECT")]
    SocksCommand,
    /// An address type that SOCKS5 does not define.
    #[error("has a SOCKS5 address of an unknown type")]
    SocksAddress,
    /// Bytes that are no SOCKS5.
    #[error("is no SOCKS5 request")]
    Socks,
}
