//! A decision, who made it, and the error for the agent.

use std::time::SystemTime;

use super::request::{ApprovalDecision, ApprovalRequest, Fingerprint};
use super::scope::Remember;
use crate::policy::{Channel, Mode, path};

/// Puts a decision on record before it takes effect, or says why it could not.
pub type RecordDecision = Box<dyn Fn(&Record) -> Result<(), String> + Send + Sync>;

/// A decision, who made it, and the error for the agent.
///
/// Part of a [`Record`]; the example there reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: ApprovalDecision,
    /// Who made it.
    pub by: DecidedBy,
    /// The channel of the answer; `None` where nobody was asked, now or earlier.
    pub channel: Option<Channel>,
    /// The error for the agent; `Some` exactly where the answer is no.
    pub denial: Option<String>,
}

/// The maker of a decision.
///
/// Part of a [`Verdict`]; the example of [`Record`] reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecidedBy {
    /// The mode of the session; nobody was asked.
    Mode(Mode),
    /// An earlier yes of the session; nobody was asked again.
    Memory,
    /// The approver.
    Approver,
    /// Nobody: asking failed, for this reason.
    Failure(String),
    /// Nobody: the decision could not be put on record, for this reason.
    Unrecorded(String),
    /// Nobody yet: the answer comes with another call. It counts as a no.
    Pending,
}

/// One decision in the history of a session.
///
/// [`Session::history`](crate::Session::history) returns them. The audit log has the same decisions, and survives the session.
///
/// ```no_run
/// use stockade::{DecidedBy, Session};
///
/// fn refusals(session: &Session) {
///     for record in session.history().iter().filter(|record| record.verdict.denial.is_some()) {
///         let by_person = record.verdict.by == DecidedBy::Approver;
///         println!("{} ({}) by a person: {by_person}", record.description, record.fingerprint);
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The time of the decision.
    pub at: SystemTime,
    /// The tool that asked.
    pub tool_name: String,
    /// The call in one line, as the request described it.
    pub description: String,
    /// The config lines that made it a question.
    pub why: Vec<String>,
    /// The fingerprint of the request's payload.
    pub fingerprint: Fingerprint,
    /// The name of the call in the audit log; `None` without a log.
    pub call: Option<String>,
    /// The group of the request.
    pub group_id: Option<String>,
    /// The nested worker or agent that asked; `None` for the agent itself.
    pub caller: Option<String>,
    /// What a yes for the session covers, where that is wider than the call.
    pub covers: Option<String>,
    /// The decision, and who made it.
    pub verdict: Verdict,
}

/// A decision before the error for the agent is written.
#[derive(Debug, Clone)]
pub(super) struct Decided {
    pub(super) decision: ApprovalDecision,
    pub(super) by: DecidedBy,
    pub(super) channel: Option<Channel>,
}

impl Decided {
    pub(super) fn verdict(self, request: &ApprovalRequest) -> Verdict {
        let Self { decision, by, channel } = self;
        let denial = (!decision.approved).then(|| denial(request, &decision, &by));
        Verdict {
            decision,
            by,
            channel,
            denial,
        }
    }
}

pub(super) const fn yes() -> ApprovalDecision {
    ApprovalDecision {
        approved: true,
        note: None,
        remember: Remember::None,
    }
}

pub(super) const fn no() -> ApprovalDecision {
    ApprovalDecision {
        approved: false,
        note: None,
        remember: Remember::None,
    }
}

fn denial(request: &ApprovalRequest, decision: &ApprovalDecision, by: &DecidedBy) -> String {
    let tool = path::escape(request.tool_name.as_bytes());
    let who = match by {
        DecidedBy::Mode(mode) => format!("{mode} mode denied {tool} (`--mode interactive` asks a person)"),
        DecidedBy::Memory | DecidedBy::Approver => format!("user denied {tool}"),
        DecidedBy::Failure(why) => format!("nobody could approve {tool}: {why}"),
        DecidedBy::Unrecorded(why) => format!("the decision about {tool} could not be put on record: {why}"),
        DecidedBy::Pending => format!("{tool} waits for an answer"),
    };
    let note = decision
        .note
        .as_deref()
        .map(|note| format!(": {note}"))
        .unwrap_or_default();
    let hint = match by {
        DecidedBy::Approver | DecidedBy::Memory | DecidedBy::Unrecorded(_) | DecidedBy::Pending => String::new(),
        DecidedBy::Mode(_) | DecidedBy::Failure(_) if request.allowed_by.is_empty() => String::new(),
        DecidedBy::Mode(_) | DecidedBy::Failure(_) => format!("\n  → {}", request.allowed_by),
    };
    format!("permission denied: {who}{note}{hint}")
}
