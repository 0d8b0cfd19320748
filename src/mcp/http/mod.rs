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
mod error;
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

pub use bounds::Bounds;
pub use error::HttpError;
pub use listen::{End, HttpServer};
pub use settings::HttpSettings;
pub use token::HttpToken;

use nix::sys::signal::Signal;
use rmcp::ServerHandler;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::tools::serving::{HttpOptions, ServeEnd};

/// Serves as it was asked for, and says where, until a signal comes and what is under way is done. What is not done in
/// time is told by `ending`.
pub async fn serve<S: ServerHandler + Send + 'static>(
    asked: HttpOptions,
    service: impl Fn() -> S + Send + Sync + 'static,
    ending: CancellationToken,
    stops: mpsc::Receiver<Signal>,
    say: fn(&str),
) -> Result<ServeEnd, HttpError> {
    let token = match &asked.token_file {
        Some(file) => HttpToken::read(file, &asked.reachable_reason)?,
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
