//! A third party's MCP server, run inside the sandbox, with the approval layer on its tools.
//!
//! [`bounds`] says how much of what it says anybody has reason for, [`wire`] moves the messages, [`client`]
//! holds the conversation, [`definition`] takes what it says of its tools, [`seen`] remembers what it said
//! first. [`server`] is what is offered now, [`tool`] one tool of it behind the guard, [`provider`] all of
//! them together, [`results`] what a call gave, and `voice` tells whoever started Stockade.
//!
//! The server is a command that nobody was asked about, and stays one: a yes to a call of its tool opens nothing that
//! the sandbox keeps from it. What it says of its tools is told to agents and people as its own words, and never
//! believed; what it asks for itself reaches nobody.

mod bounds;
mod client;
mod definition;
mod provider;
mod results;
mod seen;
mod server;
mod tool;
mod wire;

pub(super) use provider::start;
