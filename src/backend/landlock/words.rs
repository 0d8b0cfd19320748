//! Clauses and losses in the words a person would use.

use super::obstacles::touches;
use crate::backend::status::{ClauseStatus, Status};
use crate::policy::{Deny, Grant, Operation, Rights, Scope};

pub(super) fn frozen(grant: &Grant) -> String {
    let what = match grant.suffixes {
        Some(_) => "only files that match when the command starts are reachable",
        None => "some directories are ruled entry by entry",
    };
    format!("{what}; entries created later are not reachable there, and none can be created or removed")
}

pub(super) fn say_grant(grant: &Grant) -> String {
    let text = match grant.scope {
        Scope::Tree | Scope::File => in_words("grant", grant.rights, &grant.path),
        Scope::Names => format!("grant the names in {}", grant.path),
    };
    let suffixes = grant.suffixes.as_ref().map(|suffixes| format!(" {suffixes}"));
    text + &suffixes.unwrap_or_default()
}

pub(super) fn say_deny(deny: &Deny) -> String {
    let text = in_words("deny", deny.rights, &deny.target);
    let except = deny.except.as_ref().map(|except| format!(" but {except}"));
    let beyond = deny.beyond.map(|bytes| format!(" beyond {bytes} bytes"));
    text + &except.unwrap_or_default() + &beyond.unwrap_or_default()
}

/// The status of a deny, given whether something may be executed where it holds.
pub(super) fn deny_status(deny: &Deny, executes: bool) -> ClauseStatus {
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
        clause: say_deny(deny),
        origin: deny.origin.to_string(),
        status,
    }
}

fn in_words(verb: &str, rights: Rights, place: &dyn std::fmt::Display) -> String {
    if rights == Rights::ALL {
        format!("{verb} all {place}")
    } else {
        format!("{verb} {rights} {place}")
    }
}
