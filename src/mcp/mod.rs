//! Agents → tools, over the Model Context Protocol.
//!
//! [`server`] answers requests of every revision that `rmcp` knows; [`describe`] converts tools and outcomes. [`approver`] selects who
//! answers questions: somebody on this host, or the client, by [`form`]. A client of an older revision gets a request; one of a newer
//! revision gets its call back with the question, and repeats it with the answer, which [`state`] verifies. [`stdio`] is the transport
//! of a client that started Stockade, over [`streams`]; [`http`] of others. [`params`] explains wrong parameters, and [`upstream`]
//! offers the tools of a third party's server.
//!
//! Clients are hostile input: they name a tool that the config offers, and its arguments. Nothing else that they send widens anything.

mod approver;
mod describe;
mod form;
mod head;
pub mod http;
mod notices;
mod params;
mod serve;
mod server;
mod state;
mod stdio;
mod streams;
mod upstream;
mod values;

pub use serve::serve;
