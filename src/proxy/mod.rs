//! The only way out of a command that may reach named hosts: connection attempts → allowed sockets.
//!
//! A [`Proxy`] serves one command. It is given sockets that listen inside the command's own network namespace, where
//! nothing else leads out, and runs in the parent, as tasks of its runtime. Whatever comes in is hostile.
//!
//! One port takes HTTP CONNECT, plain HTTP and SOCKS5, told apart by the first byte (`accept`). Each is read
//! strictly, once, into a host and a port (`http`, `socks`); what could be read in two ways is refused. Then the
//! [`Gate`] decides, the name is resolved once (`resolve`), every address is judged, and one that was judged is the
//! one that is connected (`open`, `connect`). Nothing of a client's bytes is taken for a name again after that.
//!
//! An HTTP request is sent on as it was understood, built anew, over a connection of its own
//! (`http::forward`). A tunnel is bytes (`tunnel`), but its beginning is looked at (`look`): TLS (`tls`) and
//! HTTP in it must name the host that was asked for. `docs/network.md` says what is seen of a connection, and
//! what is not.
//!
//! Every attempt is recorded once ([`Attempt`]), also when the proxy is stopped or dropped in the middle of it.
//! Everything is bounded ([`Bounds`]): connections, files (`files`), time, and bytes that wait in either direction.

mod accept;
mod answer;
mod attempt;
mod bounds;
mod client;
mod connect;
mod files;
mod gate;
mod http;
mod inside;
mod look;
mod meter;
mod open;
mod pump;
#[cfg(any(test, feature = "fuzzing"))]
pub mod readings;
mod record;
mod resolve;
mod served;
mod socks;
#[cfg(test)]
mod tests;
mod tls;
mod tunnel;
mod unreadable;
mod upward;

pub use accept::Proxy;
pub use attempt::{Attempt, End, Failure, Outcome, Protocol, Refusal, Seen, Subject};
pub use bounds::Bounds;
pub use gate::{Decision, Gate, Verdict, Wanted};
pub use resolve::{Addresses, Resolve, SystemResolver};
pub use tls::HelloError;
pub use unreadable::Unreadable;
