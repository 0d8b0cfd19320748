//! The way out of a network namespace that has nothing but a loopback.
//!
//! Before each command of a profile with a list of hosts, the forker makes sockets that listen on the
//! loopback of its namespace ([`inside`]) and passes them to the parent; it keeps none, and no command ever
//! has one. The parent holds them against what was asked for ([`outside`]) and gives them to a proxy, which
//! judges every connection. So the proxy itself is nowhere in the namespace, and nothing else leads out of
//! it.
//!
//! Each command gets sockets and a port of its own. A connection that a dead command left behind (in the
//! backlog, half open, or in a kernel that still sends its last bytes) ends with that command's sockets, so what comes
//! to these is the new command's.
//!
//! [`client_process()`] finds the process behind a connection, to show it in a question.

mod client_process;
mod error;
pub(super) mod inside;
pub(super) mod outside;

pub use client_process::{ClientProcess, client_process};
pub use error::WayOutError;
pub use outside::WayOut;

/// How many connections wait until they are taken.
const BACKLOG: i32 = 1024;
