//! An OS-sandboxed tool executor for AI agents.

pub mod backend;
pub mod confine;
pub mod policy;
pub mod profile;
