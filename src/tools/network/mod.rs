//! The way out of a command whose network is a list of hosts.
//!
//! Such a command lives in a network namespace of its own; sockets that listen in there are held out here,
//! and one [proxy](crate::proxy) for each command accepts on them ([`proxy_session`]). The proxy asks a [`gate`] about
//! every connection: what the list says, and, where it says to ask, a person ([`question`]); what a ceiling
//! or a flag keeps from being said there is told with a refusal ([`bounds`]). What was tried, let through or
//! not, is told with the outcome ([`tried`], gathered in a [`mod@log`]).

mod bounds;
mod gate;
mod log;
mod proxy_session;
mod question;
#[cfg(test)]
mod tests;
mod tried;

pub(crate) use bounds::{Bound, Bounds, By};
pub(super) use gate::HostGate;
pub(super) use proxy_session::ProxySession;
pub(super) use question::{About, Asker};
pub use tried::{NetworkUse, Result as TriedResult, Tried};
