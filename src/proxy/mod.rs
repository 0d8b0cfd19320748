//! The only way out of a command that may reach named hosts: connection attempts → allowed sockets.
//!
//! A [`Proxy`] serves one command. It is given sockets that listen inside the command's own network namespace, where
//! nothing else leads out, and runs in the parent, as tasks of its runtime. Whatever comes in is hostile.
//!
//! One port takes HTTP CONNECT, plain HTTP and SOCKS5, distinguished by the first byte (`accept`). Each is read
//! strictly, once, into a host and a port (`http`, `socks`); what is ambiguous is refused. Then the
//! [`Gate`] decides, the name is resolved once (`resolve`), every address is judged, and one that was judged is the
//! one that is connected (`open`, `connect`). The client's bytes are not parsed for a name again.
//!
//! An HTTP request is rebuilt from what was parsed, and sent over a connection of its own
//! (`http::forward`). A tunnel (`tunnel`, `client_to_server`) carries bytes, but its protocol is detected (`detect`): TLS (`tls`) and
//! HTTP (`tunnelled_request`) in it must name the requested host. `docs/network.md` says what is visible of a
//! connection, and what is not.
//!
//! Every attempt is recorded once ([`Attempt`]), also when the proxy is stopped or dropped in the middle of it.
//! Everything is bounded ([`Bounds`]): connections, files (`file_budget`), time, and buffered bytes.

mod accept;
mod attempt;
mod bounds;
mod client;
mod client_to_server;
mod connect;
mod detect;
mod file_budget;
mod first_reply;
mod gate;
mod http;
mod meter;
mod open;
#[cfg(any(test, feature = "fuzzing"))]
pub mod parser_laws;
mod pump;
mod record;
mod resolve;
mod socks;
mod state;
#[cfg(test)]
mod tests;
mod tls;
mod tunnel;
mod tunnelled_request;
mod unreadable;

pub use accept::Proxy;
pub use attempt::{Attempt, AttemptResult, End, Failure, Protocol, Refusal, Subject, TunnelContent};
pub use bounds::Bounds;
pub use gate::{ConnectRequest, Decision, Gate, Verdict};
pub use resolve::{Addresses, Resolve, SystemResolver};
pub use tls::HelloError;
pub use unreadable::Unreadable;
