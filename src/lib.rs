//! An OS-sandboxed tool executor for AI agents.

pub mod policy;
