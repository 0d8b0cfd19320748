//! A third party's MCP server behind Stockade: what it may touch is what the config says, whatever it says or does.
//!
//! [`agent`] plays the client. The server is `server.py`, honest or hostile as it is told, or a published one
//! (`published`).
#![allow(missing_docs, reason = "a test file")]

#[cfg(test)]
mod agent;
#[cfg(test)]
mod definitions;
#[cfg(test)]
mod guarded;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod published;
#[cfg(test)]
mod reach;
