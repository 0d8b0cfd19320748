//! Mode, then memory, then a person; anything else is no.

use std::collections::VecDeque;
use std::fmt;
use std::time::SystemTime;

use super::approver::Approver;
use super::group;
use super::memory::Memory;
use super::note;
use super::request::{AnswerOf, ApprovalDecision, ApprovalRequest, Fingerprint, Remember};
use crate::policy::{Mode, path};

/// The most decisions that the history keeps.
const KEPT: usize = 10_000;

/// Decides the requests of one session.
pub struct Controller {
    mode: Mode,
    memory: Memory,
    approver: Box<dyn Approver + Send>,
    history: VecDeque<Record>,
    dropped: u64,
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
    /// Who asked, if it was not the agent itself.
    pub caller: Option<String>,
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
            history: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Decides a request. Waits for a person if the mode says so.
    ///
    /// `strict` denies what is required and approves the rest; `approve_all` approves; `interactive`
    /// asks, unless the session remembers a yes for the very same call. Where only the approver's answer
    /// counts, the other two deny, and nothing is remembered.
    pub fn decide(&mut self, request: &ApprovalRequest) -> Verdict {
        let (decision, by) = match self.unasked(request) {
            Some(decided) => decided,
            None => self.ask(request),
        };
        self.record(request, decision, by)
    }

    /// Decides several requests, each as [`Controller::decide`] does, and answers in their order.
    ///
    /// Those of one group that mode and memory leave open, wherever they stand, are asked as one question: the
    /// answer holds for each of them, and each is remembered and recorded by itself.
    pub fn decide_all(&mut self, requests: &[ApprovalRequest]) -> Vec<Verdict> {
        let mut verdicts: Vec<Option<Verdict>> = requests.iter().map(|_| None).collect();
        for (index, request) in requests.iter().enumerate() {
            if verdicts.get(index).is_none_or(Option::is_some) {
                continue;
            }
            let together: Vec<usize> = match &request.group_id {
                None => vec![index],
                Some(group) => (index..requests.len())
                    .filter(|other| {
                        requests
                            .get(*other)
                            .is_some_and(|other| other.group_id.as_ref() == Some(group))
                    })
                    .collect(),
            };
            let members = together
                .iter()
                .filter_map(|member| Some((*member, requests.get(*member)?)));
            for (member, verdict) in self.decide_together(members) {
                if let Some(place) = verdicts.get_mut(member) {
                    *place = Some(verdict);
                }
            }
        }
        verdicts.into_iter().flatten().collect()
    }

    fn decide_together<'a>(
        &mut self,
        members: impl Iterator<Item = (usize, &'a ApprovalRequest)>,
    ) -> Vec<(usize, Verdict)> {
        let mut verdicts = Vec::new();
        let mut open = Vec::new();
        for (index, request) in members {
            match self.unasked(request) {
                Some((decision, by)) => verdicts.push((index, self.record(request, decision, by))),
                None => open.push((index, request)),
            }
        }
        if let [(index, request)] = open.as_slice() {
            let (decision, by) = self.ask(request);
            verdicts.push((*index, self.record(request, decision, by)));
        } else if !open.is_empty() {
            let requests: Vec<&ApprovalRequest> = open.iter().map(|(_, request)| *request).collect();
            let (decision, by) = self.put(&group::as_one(&requests));
            for (index, request) in open {
                let decision = self.remembered(request, decision.clone());
                verdicts.push((index, self.record(request, decision, by.clone())));
            }
        }
        verdicts
    }

    /// What the mode or the memory decides without a question.
    fn unasked(&self, request: &ApprovalRequest) -> Option<(ApprovalDecision, DecidedBy)> {
        match (self.mode, request.required) {
            (mode @ (Mode::Strict | Mode::ApproveAll), true | false) if request.answer == AnswerOf::ApproverOnly => {
                Some((no(), DecidedBy::Mode(mode)))
            }
            (Mode::Strict, true) => Some((no(), DecidedBy::Mode(Mode::Strict))),
            (Mode::Strict, false) => Some((yes(), DecidedBy::Mode(Mode::Strict))),
            (Mode::ApproveAll, true | false) => Some((yes(), DecidedBy::Mode(Mode::ApproveAll))),
            (Mode::Interactive, true | false) if request.answer == AnswerOf::Anyone && self.memory.covers(request) => {
                Some((yes(), DecidedBy::Memory))
            }
            (Mode::Interactive, true | false) => None,
        }
    }

    /// The verdict, kept in the history.
    fn record(&mut self, request: &ApprovalRequest, decision: ApprovalDecision, by: DecidedBy) -> Verdict {
        let denial = (!decision.approved).then(|| denial(request, &decision, &by));
        let verdict = Verdict { decision, by, denial };
        if self.history.len() >= KEPT {
            self.history.pop_front();
            self.dropped = self.dropped.saturating_add(1);
        }
        self.history.push_back(Record {
            at: SystemTime::now(),
            tool_name: request.tool_name.clone(),
            description: request.description.clone(),
            fingerprint: Fingerprint::of(&request.payload),
            group_id: request.group_id.clone(),
            caller: request.caller.clone(),
            verdict: verdict.clone(),
        });
        verdict
    }

    fn ask(&mut self, request: &ApprovalRequest) -> (ApprovalDecision, DecidedBy) {
        let (decision, by) = self.put(request);
        (self.remembered(request, decision), by)
    }

    /// Puts the question to the approver.
    fn put(&mut self, request: &ApprovalRequest) -> (ApprovalDecision, DecidedBy) {
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
            Ok(mut decision) => {
                decision.note = decision.note.as_deref().and_then(note::cleaned);
                (decision, DecidedBy::Approver)
            }
            Err(error) => (no(), DecidedBy::Failure(error.to_string())),
        }
    }

    /// The approver's answer as it holds for this request, kept for the session where it says so.
    fn remembered(&mut self, request: &ApprovalRequest, decision: ApprovalDecision) -> ApprovalDecision {
        let remember = match (decision.approved, request.answer) {
            (true, AnswerOf::Anyone) => decision.remember.max(request.remember),
            // A no is never remembered: the agent may ask again, and the person may change their mind.
            (true, AnswerOf::ApproverOnly) | (false, AnswerOf::Anyone | AnswerOf::ApproverOnly) => Remember::None,
        };
        match remember {
            Remember::Session => self.memory.keep(request),
            Remember::None => {}
        }
        ApprovalDecision { remember, ..decision }
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

    /// The latest decisions, oldest first; [`Controller::dropped`] counts those that are no longer among them.
    pub const fn history(&self) -> &VecDeque<Record> {
        &self.history
    }

    /// How many older decisions the history no longer has.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("mode", &self.mode)
            .field("memory", &self.memory)
            .field("history", &self.history)
            .field("dropped", &self.dropped)
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
