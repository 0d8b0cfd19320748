//! The runner: one around each command or file server.
//!
//! [`run`] makes the process a subreaper in a layer of its own and forks the command, which [`command`] confines and executes;
//! [`underway`] watches it to its end; [`listening`] holds the listener of attribute calls, and kills the whole tree before that
//! closes.

pub mod command;
pub(crate) mod listening;
pub mod run;
pub(crate) mod underway;
