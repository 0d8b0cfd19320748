//! Statuses of clauses, as text for people.

use super::obstacles::touches;
use crate::backend::status::ClauseStatus;
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
    ClauseStatus::with_losses(deny, &deny.origin, &losses)
}
