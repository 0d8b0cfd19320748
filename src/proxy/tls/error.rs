//! Why TLS in a tunnel is refused.

/// Why TLS in a tunnel is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// It is no `ClientHello`, or one that can be read in two ways.
    #[error("TLS in the tunnel cannot be read")]
    Unreadable,
    /// It is longer than 64 KiB.
    #[error("TLS in the tunnel has a first message that is too long")]
    TooLong,
    /// It did not come in time.
    #[error("TLS in the tunnel has a first message that did not come in time")]
    Slow,
    /// The greeting of SSL 2.
    #[error("SSL 2 in the tunnel")]
    Ssl2,
    /// It names another host.
    #[error("TLS in the tunnel names another host, `{0}`")]
    Differs(String),
    /// It names a host, where an address was asked for.
    #[error("TLS in the tunnel names a host, `{0}`, and an address was asked for")]
    Named(String),
}
