//! MCP: the server over standard streams and over HTTP, and servers of others behind it.
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
#[path = "../common/mod.rs"]
mod common;

#[cfg(test)]
mod crowd;
#[cfg(test)]
mod http;
#[cfg(test)]
mod stdio;
#[cfg(test)]
mod upstream;
