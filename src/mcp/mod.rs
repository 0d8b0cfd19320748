//! Agents → tools, over the Model Context Protocol.
//!
//! [`server`] answers the requests of every revision that `rmcp` knows; [`describe`] says tools and outcomes
//! in its words. Whoever must be asked is found by [`asking`]: somebody here, or the client, by [`form`]. A
//! client of an older revision is sent a request of its own; one of a newer gets its call back with the
//! question, and calls again with the answer: [`state`] knows such a call again, once. [`stdio`] is the
//! transport of a client that started Stockade itself, over whatever [`streams`] it gave, [`http`] of those that are
//! somewhere else. [`params`] says what is wrong with a request that `rmcp` cannot read.
//! [`upstream`] offers the tools of a third party's server in place of a config's own.
//!
//! What a client sends is hostile input: it names a tool that the config offers and gives arguments, and nothing else
//! that it says widens anything.

mod asking;
mod describe;
mod form;
mod head;
pub mod http;
mod params;
mod serve;
mod server;
mod state;
mod stdio;
mod streams;
mod upstream;
mod values;
mod voice;

pub use serve::serve;
