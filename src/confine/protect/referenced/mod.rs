//! What git and other tools are made to read or run: the files that configs, hooks, links and `.git` files refer to.

pub(super) mod git_paths;
pub(super) mod hooks;
pub(super) mod links;
pub(super) mod references;
pub(super) mod repository;
pub(super) mod resolve;
pub(super) mod targets;
pub(crate) mod ways;
