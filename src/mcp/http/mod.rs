//! MCP over HTTP: agents that know a token → the server behind it.
//!
//! [`HttpSettings`] says where it listens and whom it believes, [`HttpServer`] listens. A request passes, in
//! this order: `listen` (how many connections, how long for a header), `gate` (which path, one header of
//! each, the token), `body` (how large, how long), `message` (what is asked), `load` (how many at a time, how
//! many wait) and `sessions` (how many of the older revisions' sessions), and only then rmcp's transport,
//! which checks hosts and origins and speaks both eras of the protocol. Each bound is a number in [`Bounds`],
//! and beyond each stands an answer.
//!
//! One token is one principal: whoever says it may do what the config allows agents to do, and nobody else anything.
//! The token is never logged and in no error; it does not reach rmcp either. There is no TLS: a proxy has that.

mod body;
mod bounds;
pub(super) mod gate;
mod health;
mod held;
mod listen;
mod load;
mod message;
mod origin;
mod reply;
pub(super) mod sessions;
mod settings;
mod token;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use bounds::Bounds;
pub use listen::{End, HttpServer};
pub use settings::HttpSettings;
pub use token::HttpToken;

use nix::sys::signal::Signal;
use rmcp::ServerHandler;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::policy::path::display;
use crate::tools::serving::{OverHttp, ServeEnd};

/// Serves as it was asked for, and says where, until a signal comes and what is under way is done. What is not done in
/// time is told by `ending`.
pub async fn serve<S: ServerHandler + Send + 'static>(
    asked: OverHttp,
    service: impl Fn() -> S + Send + Sync + 'static,
    ending: CancellationToken,
    stops: mpsc::Receiver<Signal>,
    say: fn(&str),
) -> Result<ServeEnd, HttpError> {
    let token = match &asked.token_file {
        Some(file) => HttpToken::read(file, &asked.reached)?,
        None => HttpToken::made()?,
    };
    let settings = HttpSettings::new(&asked.address, &asked.hosts, &asked.origins, token)?.draining_for(asked.drain);
    let server = HttpServer::bind(settings)?;
    say(server.announcement().trim_end());
    Ok(match server.serve(service, asked.ready, ending, stops).await? {
        End::Drained(signal) | End::Withdrawn(signal) => ServeEnd::Stopped(signal),
        End::Cut(signal) => ServeEnd::Cut(signal),
    })
}

/// Why nothing is served over HTTP.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address cannot be read.
    #[error("`{0}` is no address to listen at: write a port (`8080`), or an address and a port (`127.0.0.1:8080`)")]
    Address(String),
    /// Others could connect, and no name says that they are meant to.
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
    /// The token file is not what it must be.
    #[error("the token file {}: {why}", display(.file))]
    TokenFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No random numbers.
    #[error("no token can be made: {0}")]
    Random(io::Error),
    /// The address cannot be listened at.
    #[error("{address} cannot be listened at: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
}
