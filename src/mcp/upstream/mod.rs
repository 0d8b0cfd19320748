//! A third party's MCP server, run inside the sandbox, with the approval layer on its tools.
//!
//! [`bounds`] says how much of what it says anybody has reason for, [`wire`] moves the messages, [`client`] holds the
//! conversation, [`definition`] takes what it says of its tools, [`seen`] remembers what it said first.

mod bounds;
mod client;
mod definition;
mod seen;
mod wire;

pub use client::UpstreamError;
