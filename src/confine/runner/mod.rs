//! The runner: one around each command or file server.
//!
//! [`run`] makes the process a subreaper in a layer of its own and forks the command, which [`command`] confines and executes;
//! [`running_command`] watches it to its end; [`command_tree`] holds the listener of attribute calls, and kills the whole tree before that
//! closes.

pub mod command;
pub(crate) mod command_tree;
pub mod run;
pub(crate) mod running_command;
