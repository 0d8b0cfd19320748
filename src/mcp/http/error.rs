//! Errors at the start of the HTTP server.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::policy::path::display;

/// Why nothing is served over HTTP.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address cannot be read.
    #[error("`{0}` is no address to listen at: write a port (`8080`), or an address and a port (`127.0.0.1:8080`)")]
    Address(String),
    /// A public address without an allowed host.
    #[error(
        "{0} is not a loopback address: name the host that clients use with --allowed-host, and put a proxy that speaks TLS before it"
    )]
    NotLoopback(SocketAddr),
    /// A host that no request can name.
    #[error("--allowed-host {0}: write a host name or an address, with a port or without")]
    Host(String),
    /// An origin that no browser sends.
    #[error("--allowed-origin {0}: write it as a browser does, `https://app.example.org`")]
    Origin(String),
    /// The token file is not valid.
    #[error("the token file {}: {why}", display(.file))]
    TokenFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The kernel gave no random numbers.
    #[error("no token can be made: {0}")]
    Random(io::Error),
    /// The address cannot be bound.
    #[error("{address} cannot be listened at: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
}
