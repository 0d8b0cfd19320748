//! A third party's MCP server, run inside the sandbox, with the approval layer on its tools.
//!
//! [`bounds`] has the limits, [`wire`] is the transport, [`client`] makes requests, [`definition`] reads tool definitions, [`pins`] stores
//! their first digests. [`server`] has the offered tools, [`tool`] one of them behind the guard, [`provider`] all of them, [`results`]
//! converts results.
//!
//! The server runs as a command that was not approved: approving a call of its tool does not widen its sandbox. Its descriptions are
//! shown as its own and never trusted; its requests reach nobody.

mod bounds;
mod client;
mod definition;
mod pins;
mod provider;
mod results;
mod server;
mod tool;
mod wire;

pub(super) use provider::start;
