//! What was denied to commands: by call, and by clause of the profile that held them.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::gather::{Record, field, list, number};
use super::model::{Call, Denial, Profile, Session};
use crate::cli::audit::told;

/// The most denials that are told of one call, and of all of them.
const MOST_DENIALS: usize = 50;
const MOST_DENIALS_OF_ALL: usize = 20_000;
/// The most of them that are reasons why a call was stopped.
const MOST_REASONS: usize = 5;
/// How the origin of a clause begins that there is one of in each profile.
const KEYS: &str = "shell.";

impl Call {
    /// What was denied to a command of it.
    pub(super) fn deny(&mut self, record: &Record) {
        let mut all = list(record, "blocked");
        let denied: Vec<Denial> = all.by_ref().take(MOST_DENIALS).map(denial).collect();
        let more = (all.count() as u64).saturating_add(number(record, "more"));
        let reasons = denied.iter().take(MOST_REASONS);
        self.why.extend(reasons.map(reason));
        match (denied.len().saturating_sub(MOST_REASONS) as u64).saturating_add(more) {
            0 => {}
            more => self.why.push(format!("{more} more denied to its command")),
        }
        let denials = &mut self.denials;
        denials.blocked.extend(denied);
        denials.more = denials.more.saturating_add(more);
        denials.unseen = denials.unseen.saturating_add(number(record, "unseen"));
        denials.keep(MOST_DENIALS);
    }
}

fn denial(record: &Record) -> Denial {
    let texts = |name: &str| match record.get(name) {
        Some(Value::Array(items)) => items.iter().map(told::text).collect(),
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

/// What was denied, and the clause that decides with its line.
fn reason(one: &Denial) -> String {
    let because = match (one.clause.as_str(), one.origin.as_str()) {
        ("", _) => String::new(),
        (clause, "") => format!(": {clause}"),
        (clause, origin) => format!(": {clause} ({origin})"),
    };
    format!("{} {} was denied by {}{because}", one.wanted, one.what, one.by)
}

/// Counts for each clause of a profile the calls to whose commands it denied something.
pub(super) fn mark_clauses(profiles: &mut [Profile], sessions: &[Session]) {
    let mut denied: HashMap<(&str, &str, &str), u64> = HashMap::new();
    for call in sessions.iter().flat_map(|session| &session.calls) {
        let blocked = call.denials.blocked.iter();
        let clauses = blocked.flat_map(|one| [(&*one.clause, &*one.origin), (&*one.clause, "")]);
        let clauses: BTreeSet<(&str, &str)> = clauses.collect();
        for profile in &call.profiles {
            for (clause, origin) in &clauses {
                *denied.entry((profile, clause, origin)).or_default() += 1;
            }
        }
    }
    for profile in profiles {
        for row in &mut profile.rows {
            // What there is one of names its key, where a denial names the line that says so.
            let origin = if row.origin.starts_with(KEYS) { "" } else { &row.origin };
            let count = denied.get(&(&*profile.name, &*row.clause, origin));
            row.denied = count.copied().unwrap_or_default();
        }
    }
}

/// Of more denials than a page may have, those of the last calls.
pub(super) fn keep_the_last(sessions: &mut [Session]) {
    let mut left = MOST_DENIALS_OF_ALL;
    for call in sessions
        .iter_mut()
        .rev()
        .flat_map(|session| session.calls.iter_mut().rev())
    {
        call.denials.keep(left);
        left -= call.denials.blocked.len();
    }
}
