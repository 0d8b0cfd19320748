//! A working directory of which commands see nothing.

use crate::policy::path::escape;
use crate::policy::{AbsPath, Access, Operation, Policy};

/// What is so of a working directory in no root, and what would show it; `None` where commands see something of it.
pub fn unseen_directory_warning(policy: &Policy, directory: &AbsPath) -> Option<(String, String)> {
    if policy.root_for(directory).is_some() || policy.access(Operation::List, directory) > Access::Denied {
        return None;
    }
    let shown = escape(directory.as_bytes());
    Some((
        format!("the working directory {shown} is in no root: commands start there and see nothing of it"),
        format!(
            "`here: {{root: {shown}, mode: ro}}` under `sandbox.paths` shows it, and so does `--ro {shown}` without a config"
        ),
    ))
}
