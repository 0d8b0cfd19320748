//! TLS in tunnels. The hellos of a client are not encrypted; they must name the requested host, or none.
//!
//! [`hello`] reads a hello and compares its name. [`record`] tells TLS by its first bytes, and finds a second
//! hello, which a client sends when the server's first message asks for it. Nothing is decrypted, and nothing
//! is changed.

mod error;
mod hello;
mod record;

pub use error::HelloError;
#[cfg(test)]
pub(super) use hello::Hello;
pub(super) use hello::HelloReader;
pub(super) use record::{NextRecord, ServerGreeting, begins_ssl2, begins_tls};
