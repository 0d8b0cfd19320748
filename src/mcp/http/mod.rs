//! MCP over HTTP: agents that know a token → the server behind it.
//!
//! [`HttpSettings`] has address, hosts, origins and token, [`HttpServer`] listens. A request passes, in
//! this order: `listen` (connections, header timeout), `gate` (path, duplicate headers, token), `body` (size,
//! timeout), `message` (kind), `load` (concurrency, queue) and `sessions` (number, age), and only then rmcp's
//! transport, which checks hosts and origins and speaks all revisions. The limits are in [`Bounds`]; beyond each
//! there is an error reply.
//!
//! One token is one principal: with it a client may do what the config allows agents, without it nothing.
//! The token is in no log and no error, and does not reach rmcp. TLS is left to a proxy.

mod body;
mod bounds;
mod error;
pub(super) mod gate;
mod health;
mod listen;
mod load;
mod message;
mod origin;
mod permits;
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

/// Announces the address, serves until a signal comes, and drains. `shutdown` cancels calls that take longer.
pub async fn serve<S: ServerHandler + Send + 'static>(
    options: HttpOptions,
    service: impl Fn() -> S + Send + Sync + 'static,
    shutdown: CancellationToken,
    stops: mpsc::Receiver<Signal>,
    say: fn(&str),
) -> Result<ServeEnd, HttpError> {
    let token = match &options.token_file {
        Some(file) => HttpToken::read(file, &options.reachable_reason)?,
        None => HttpToken::generate()?,
    };
    let settings =
        HttpSettings::new(&options.address, &options.hosts, &options.origins, token)?.with_drain(options.drain);
    let server = HttpServer::bind(settings)?;
    say(server.announcement().trim_end());
    Ok(match server.serve(service, options.ready, shutdown, stops).await? {
        End::Drained(signal) | End::Withdrawn(signal) => ServeEnd::Stopped(signal),
        End::Cut(signal) => ServeEnd::Cut(signal),
    })
}
