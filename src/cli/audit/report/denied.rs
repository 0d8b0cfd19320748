//! What was denied to the commands of a call.

use serde_json::Value;

use super::model::{Call, Denial, Session};
use super::record::{Record, field, list, number};
use crate::cli::audit::describe;

/// The most denials that a report has of one call, and of all calls.
const MAX_DENIALS_PER_CALL: usize = 50;
const MAX_DENIALS: usize = 20_000;
/// The most of them that are reasons why a call was stopped.
const MAX_REASONS: usize = 5;

impl Call {
    /// Adds what was denied to a command of the call.
    pub(super) fn deny(&mut self, record: &Record) {
        let mut all = list(record, "blocked");
        let denied: Vec<Denial> = all.by_ref().take(MAX_DENIALS_PER_CALL).map(denial).collect();
        let more = (all.count() as u64).saturating_add(number(record, "more"));
        let reasons = list(record, "blocked").take(MAX_REASONS).map(describe::denial);
        self.why.extend(reasons.map(|reason| format!("denied: {reason}")));
        match (denied.len().saturating_sub(MAX_REASONS) as u64).saturating_add(more) {
            0 => {}
            more => self.why.push(format!("{more} more denied to its command")),
        }
        let denials = &mut self.denials;
        denials.blocked.extend(denied);
        denials.more = denials.more.saturating_add(more);
        denials.unseen = denials.unseen.saturating_add(number(record, "unseen"));
        denials.keep(MAX_DENIALS_PER_CALL);
    }
}

fn denial(record: &Record) -> Denial {
    let texts = |name: &str| match record.get(name) {
        Some(Value::Array(items)) => items.iter().map(describe::value_text).collect(),
        Some(_) | None => Vec::new(),
    };
    Denial {
        wanted: field(record, "wanted"),
        what: field(record, "what"),
        times: number(record, "times"),
        by: field(record, "by"),
        clause: field(record, "clause"),
        origin: field(record, "origin"),
        change: texts("change"),
        notes: texts("notes"),
    }
}

/// Limits the denials of a report to those of the last calls.
pub(super) fn keep_the_last(sessions: &mut [Session]) {
    let mut left = MAX_DENIALS;
    for call in sessions
        .iter_mut()
        .rev()
        .flat_map(|session| session.calls.iter_mut().rev())
    {
        call.denials.keep(left);
        left -= call.denials.blocked.len();
    }
}
