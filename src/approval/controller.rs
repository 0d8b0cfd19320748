//! Mode, then memory, then a person; anything else is no.

use std::fmt;
use std::time::SystemTime;

use super::approver::Approver;
use super::memory::Memory;
use super::request::{AnswerOf, ApprovalDecision, ApprovalRequest, Fingerprint, Remember};
use crate::policy::{Mode, path};

/// Decides the requests of one session.
pub struct Controller {
    mode: Mode,
    memory: Memory,
    approver: Box<dyn Approver + Send>,
    history: Vec<Record>,
}

/// What was decided, and what the agent is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The answer.
    pub decision: ApprovalDecision,
    /// Whose it was.
    pub by: DecidedBy,
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
    /// The payload it asked with.
    pub fingerprint: Fingerprint,
    /// The group it asked in.
    pub group_id: Option<String>,
    /// The answer, and whose it was.
    pub verdict: Verdict,
}

impl Controller {
    /// A controller with nothing remembered.
    pub fn new(mode: Mode, approver: Box<dyn Approver + Send>) -> Self {
        Self {
            mode,
            memory: Memory::default(),
            approver,
            history: Vec::new(),
        }
    }

    /// Decides a request. Waits for a person if the mode says so.
    ///
    /// `strict` denies what is required and approves the rest; `approve_all` approves; `interactive`
    /// asks, unless the session remembers a yes for the very same call. Where only the approver's answer
    /// counts, the other two deny, and nothing is remembered.
    pub fn decide(&mut self, request: &ApprovalRequest) -> Verdict {
        let (decision, by) = match (self.mode, request.required) {
            (mode @ (Mode::Strict | Mode::ApproveAll), true | false) if request.answer == AnswerOf::ApproverOnly => {
                (no(), DecidedBy::Mode(mode))
            }
            (Mode::Strict, true) => (no(), DecidedBy::Mode(Mode::Strict)),
            (Mode::Strict, false) => (yes(), DecidedBy::Mode(Mode::Strict)),
            (Mode::ApproveAll, true | false) => (yes(), DecidedBy::Mode(Mode::ApproveAll)),
            (Mode::Interactive, true | false) if request.answer == AnswerOf::Anyone && self.memory.covers(request) => {
                (yes(), DecidedBy::Memory)
            }
            (Mode::Interactive, true | false) => self.ask(request),
        };
        let denial = (!decision.approved).then(|| denial(request, &decision, &by));
        let verdict = Verdict { decision, by, denial };
        self.history.push(Record {
            at: SystemTime::now(),
            tool_name: request.tool_name.clone(),
            description: request.description.clone(),
            fingerprint: Fingerprint::of(&request.payload),
            group_id: request.group_id.clone(),
            verdict: verdict.clone(),
        });
        verdict
    }

    fn ask(&mut self, request: &ApprovalRequest) -> (ApprovalDecision, DecidedBy) {
        let presentation = match request.presentation.build() {
            Ok(presentation) => presentation,
            Err(why) => {
                return (
                    no(),
                    DecidedBy::Failure(format!("what it would do cannot be shown: {why}")),
                );
            }
        };
        match self.approver.ask(request, &presentation) {
            Ok(mut decision) if decision.approved => {
                decision.remember = match request.answer {
                    AnswerOf::Anyone => decision.remember.max(request.remember),
                    AnswerOf::ApproverOnly => Remember::None,
                };
                match decision.remember {
                    Remember::Session => self.memory.keep(request),
                    Remember::None => {}
                }
                (decision, DecidedBy::Approver)
            }
            // A no is never remembered: the agent may ask again, and the person may change their mind.
            Ok(decision) => (
                ApprovalDecision {
                    remember: Remember::None,
                    ..decision
                },
                DecidedBy::Approver,
            ),
            Err(error) => (no(), DecidedBy::Failure(error.to_string())),
        }
    }

    /// The mode.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// What is approved for the session.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What is approved for the session, to revoke or clear it.
    pub const fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Every decision so far, oldest first.
    pub fn history(&self) -> &[Record] {
        &self.history
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("mode", &self.mode)
            .field("memory", &self.memory)
            .field("history", &self.history)
            .finish_non_exhaustive()
    }
}

const fn yes() -> ApprovalDecision {
    ApprovalDecision {
        approved: true,
        note: None,
        remember: Remember::None,
    }
}

const fn no() -> ApprovalDecision {
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
    };
    let note = decision
        .note
        .as_deref()
        .map(|note| format!(": {note}"))
        .unwrap_or_default();
    let hint = match by {
        DecidedBy::Approver | DecidedBy::Memory => String::new(),
        DecidedBy::Mode(_) | DecidedBy::Failure(_) if request.allowed_by.is_empty() => String::new(),
        DecidedBy::Mode(_) | DecidedBy::Failure(_) => format!("; {}", request.allowed_by),
    };
    format!("permission denied: {who}{note}{hint}")
}
