//! Clauses and losses in the words a person would use.

use super::obstacles::touches;
use crate::backend::status::{ClauseStatus, Status};
use crate::policy::{Deny, Grant, Operation};

pub(in crate::backend) fn frozen(grant: &Grant) -> String {
    let what = match grant.suffixes {
        Some(_) => "only files that match when the command starts are reachable",
        None => "some directories are ruled entry by entry",
    };
    format!("{what}; entries created later are not reachable there, and none can be created or removed")
}

/// The status of a deny, given whether something may be executed where it holds.
pub(in crate::backend) fn deny_status(deny: &Deny, executes: bool) -> ClauseStatus {
    let sized = deny.beyond.is_some() && touches(deny, Operation::Write);
    let unread = touches(deny, Operation::Read) && !touches(deny, Operation::Execute);
    let mut losses = Vec::new();
    if sized {
        losses.push("a size limit cannot be held for commands: they write nothing there");
    }
    if unread && executes {
        losses.push("the kernel reads what it executes: nothing there runs");
    }
    let status = if losses.is_empty() {
        Status::Enforced
    } else {
        Status::Stricter(losses.join("; "))
    };
    ClauseStatus {
        clause: deny.to_string(),
        origin: deny.origin.to_string(),
        status,
    }
}
