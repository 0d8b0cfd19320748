//! What is decided, whose answer it was, and what the agent is told.

use std::time::SystemTime;

use super::request::{ApprovalDecision, ApprovalRequest, Fingerprint, Remember};
use crate::policy::{Channel, Mode, path};

/// Puts a decision on record before it takes effect, or says why it could not.
pub type Witness = Box<dyn Fn(&Record) -> Result<(), String> + Send + Sync>;

/// What was decided, and what the agent is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The answer.
    pub decision: ApprovalDecision,
    /// Whose it was.
    pub by: DecidedBy,
    /// Where somebody was asked, if somebody was; for an earlier yes, where it was given.
    pub channel: Option<Channel>,
    /// The error the agent sees; present exactly when the answer is no.
    pub denial: Option<String>,
}

/// Whose answer it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecidedBy {
    /// The mode's, without asking.
    Mode(Mode),
    /// An earlier yes for the session.
    Memory,
    /// The approver's.
    Approver,
    /// Nobody's: asking failed, for this reason.
    Failure(String),
    /// Nobody's that counts: it could not be put on record, for this reason.
    Unrecorded(String),
    /// Nobody's yet: the question was handed on, and an answer comes with another call. It counts as a no.
    Pending,
}

/// One decision, as kept in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When.
    pub at: SystemTime,
    /// The tool that asked.
    pub tool_name: String,
    /// What it asked.
    pub description: String,
    /// Which lines of the config made it a question.
    pub why: Vec<String>,
    /// The payload it asked with.
    pub fingerprint: Fingerprint,
    /// The call it asked for, as the audit log names it.
    pub call: Option<String>,
    /// The group it asked in.
    pub group_id: Option<String>,
    /// Who asked, if it was not the agent itself.
    pub caller: Option<String>,
    /// The answer, and whose it was.
    pub verdict: Verdict,
}

/// A decision that is not yet told.
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
        DecidedBy::Mode(mode) => format!("{mode} mode denied {tool}"),
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
        DecidedBy::Mode(_) | DecidedBy::Failure(_) => format!("; {}", request.allowed_by),
    };
    format!("permission denied: {who}{note}{hint}")
}
