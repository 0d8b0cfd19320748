//! An OS-sandboxed tool executor for AI agents.

pub mod approval;
pub mod backend;
pub mod cli;
pub mod config;
pub mod confine;
pub mod policy;
pub mod profile;
pub mod tools;
