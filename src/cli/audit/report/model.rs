//! The data of a report.

use std::collections::VecDeque;

use serde::Serialize;

/// The report of a log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LogReport {
    /// The path of the log.
    pub(super) log: String,
    /// Whether the log is as it was written.
    pub(super) chain: Chain,
    /// The sessions, oldest first.
    pub(super) sessions: Vec<Session>,
    /// The profiles of commands, in order of first use.
    pub(super) profiles: Vec<Profile>,
    /// Totals.
    pub(super) counts: Counts,
    /// Calls beyond the limit.
    pub(super) left_out: u64,
    /// Lines that are no records.
    pub(super) unreadable: u64,
}

/// Whether a log is as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Chain {
    /// The first thing that is wrong; absent where nothing is.
    pub(super) fault: Option<String>,
    /// How many records are as they were written.
    pub(super) records: u64,
    /// The hash of the last of them.
    pub(super) last: Option<String>,
    /// Bytes of a partial record that a crash left at the end.
    pub(super) partial: Option<u64>,
}

/// Totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) approved: u64,
    pub(super) denied: u64,
    pub(super) blocked: u64,
    pub(super) failed: u64,
    pub(super) refused: u64,
    pub(super) violations: u64,
    pub(super) denials: u64,
}

impl Counts {
    pub(super) fn of<'c>(calls: impl Iterator<Item = &'c Call>) -> Self {
        let mut counts = Self::default();
        for call in calls {
            counts.calls += 1;
            counts.approved += call.approved;
            counts.denied += call.denied;
            counts.violations += call.violations;
            counts.denials += call.denials.all();
            counts.refused += call
                .reached
                .iter()
                .filter(|reached| reached.result == "refused")
                .count() as u64;
            match call.end {
                Ending::Blocked => counts.blocked += 1,
                Ending::Failed => counts.failed += 1,
                Ending::Done | Ending::Denied | Ending::Cancelled | Ending::Open => {}
            }
        }
        counts
    }
}

/// One session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Session {
    pub(super) name: String,
    pub(super) begun: String,
    pub(super) ended: Option<String>,
    pub(super) facts: Vec<(String, String)>,
    pub(super) calls: VecDeque<Call>,
    /// Calls of it that the log holds, shown or not.
    pub(super) called: u64,
    /// Events that belong to no call.
    pub(super) steps: Vec<Step>,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) time: String,
    pub(super) tool: String,
    pub(super) what: String,
    pub(super) end: Ending,
    /// Why it was stopped, where it was.
    pub(super) why: Vec<String>,
    pub(super) steps: Vec<Step>,
    pub(super) reached: Vec<Attempt>,
    /// What was denied to its commands.
    pub(super) denials: Denials,
    /// The profiles that held its commands.
    pub(super) profiles: Vec<String>,
    /// How many decisions approved it.
    pub(super) approved: u64,
    /// How many denied it.
    pub(super) denied: u64,
    /// Protected names that were restored.
    pub(super) violations: u64,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ending {
    Done,
    Failed,
    Denied,
    Blocked,
    Cancelled,
    /// The log has no end of it.
    Open,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Step {
    pub(super) time: String,
    pub(super) event: String,
    #[serde(rename = "told")]
    pub(super) text: String,
}

/// A host that a command tried to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Attempt {
    #[serde(rename = "place")]
    pub(super) host: String,
    pub(super) result: String,
    pub(super) why: String,
    pub(super) times: u64,
    pub(super) up: u64,
    pub(super) down: u64,
}

/// What was denied to the commands of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(super) struct Denials {
    /// The first denials.
    pub(super) blocked: Vec<Denial>,
    /// How many more there were.
    pub(super) more: u64,
    /// Attempts that were not examined.
    pub(super) unseen: u64,
}

impl Denials {
    /// The number of different denials.
    pub(super) fn all(&self) -> u64 {
        (self.blocked.len() as u64).saturating_add(self.more)
    }

    /// Keeps the first of them, and counts the others.
    pub(super) fn keep(&mut self, most: usize) {
        let left = self.blocked.len().saturating_sub(most);
        self.blocked.truncate(most);
        self.more = self.more.saturating_add(left as u64);
    }
}

/// One thing that was denied to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Denial {
    pub(super) wanted: String,
    pub(super) what: String,
    pub(super) times: u64,
    pub(super) by: String,
    pub(super) clause: String,
    pub(super) origin: String,
    pub(super) change: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// A profile that commands ran under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Profile {
    pub(super) name: String,
    pub(super) regime: String,
    pub(super) self_test: String,
    pub(super) rows: Vec<Row>,
    /// Clauses that the log leaves out.
    pub(super) more: u64,
    /// The number of commands under it.
    pub(super) commands: u64,
}

/// One clause of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    pub(super) clause: String,
    pub(super) origin: String,
    #[serde(rename = "held")]
    pub(super) status: String,
    pub(super) detail: String,
}
