//! Mode, then memory, then a person; anything else is no.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::approver::{Approver, ApproverError};
use super::group;
use super::memory::{Approval, Memory};
use super::note;
use super::request::{AnswerOf, ApprovalDecision, ApprovalRequest, Fingerprint, Remember};
use crate::policy::{Channel, Mode, path};

/// The most decisions that the history keeps.
const KEPT: usize = 10_000;

/// Whoever answers one request at a time. Others wait for their turn.
pub type SharedApprover = Mutex<Box<dyn Approver + Send>>;

/// Decides the requests of one session, of several threads at once.
pub struct Controller {
    mode: Mode,
    state: Mutex<State>,
    approver: SharedApprover,
}

/// What is known of the session; never held while somebody is asked.
#[derive(Debug, Default)]
struct State {
    memory: Memory,
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
    /// Where somebody was asked, if somebody was.
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
            state: Mutex::default(),
            approver: Mutex::new(approver),
        }
    }

    /// Decides a request. Waits for a person if the mode says so.
    ///
    /// `strict` denies what is required and approves the rest; `approve_all` approves; `interactive`
    /// asks, unless the session remembers a yes for the very same call. Where only the approver's answer
    /// counts, the other two deny, and nothing is remembered.
    pub fn decide(&self, request: &ApprovalRequest) -> Verdict {
        match self.unasked(request) {
            Some(decided) => self.record(request, decided),
            None => self.ask(request, &self.approver),
        }
    }

    /// Decides several requests, each as [`Controller::decide`] does, and answers in their order.
    ///
    /// Those of one group that mode and memory leave open, wherever they stand, are asked as one question: the
    /// answer holds for each of them, and each is remembered and recorded by itself.
    pub fn decide_all(&self, requests: &[ApprovalRequest]) -> Vec<Verdict> {
        self.decide_all_by(requests, &self.approver)
    }

    /// The same, where this approver is asked in place of the session's own.
    pub fn decide_all_by(&self, requests: &[ApprovalRequest], approver: &SharedApprover) -> Vec<Verdict> {
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
            for (member, verdict) in self.decide_together(members, approver) {
                if let Some(place) = verdicts.get_mut(member) {
                    *place = Some(verdict);
                }
            }
        }
        verdicts.into_iter().flatten().collect()
    }

    fn decide_together<'a>(
        &self,
        members: impl Iterator<Item = (usize, &'a ApprovalRequest)>,
        approver: &SharedApprover,
    ) -> Vec<(usize, Verdict)> {
        let mut verdicts = Vec::new();
        let mut open = Vec::new();
        for (index, request) in members {
            match self.unasked(request) {
                Some(decided) => verdicts.push((index, self.record(request, decided))),
                None => open.push((index, request)),
            }
        }
        if let [(index, request)] = open.as_slice() {
            verdicts.push((*index, self.ask(request, approver)));
        } else if !open.is_empty() {
            let requests: Vec<&ApprovalRequest> = open.iter().map(|(_, request)| *request).collect();
            let decided = Self::put(&group::as_one(&requests), &mut turn(approver));
            for (index, request) in open {
                let decided = self.remembered(request, decided.clone());
                verdicts.push((index, self.record(request, decided)));
            }
        }
        verdicts
    }

    /// What the mode or the memory decides without a question.
    fn unasked(&self, request: &ApprovalRequest) -> Option<Decided> {
        let (decision, by) = match (self.mode, request.required) {
            (mode @ (Mode::Strict | Mode::ApproveAll), true | false) if request.answer == AnswerOf::ApproverOnly => {
                (no(), DecidedBy::Mode(mode))
            }
            (Mode::Strict, true) => (no(), DecidedBy::Mode(Mode::Strict)),
            (Mode::Strict, false) => (yes(), DecidedBy::Mode(Mode::Strict)),
            (Mode::ApproveAll, true | false) => (yes(), DecidedBy::Mode(Mode::ApproveAll)),
            (Mode::Interactive, true | false)
                if request.answer == AnswerOf::Anyone && self.state().memory.covers(request) =>
            {
                (yes(), DecidedBy::Memory)
            }
            (Mode::Interactive, true | false) => return None,
        };
        Some(Decided {
            decision,
            by,
            channel: None,
        })
    }

    /// The verdict, kept in the history once there is one.
    fn record(&self, request: &ApprovalRequest, decided: Decided) -> Verdict {
        let Decided { decision, by, channel } = decided;
        let denial = (!decision.approved).then(|| denial(request, &decision, &by));
        let verdict = Verdict {
            decision,
            by,
            channel,
            denial,
        };
        if verdict.by == DecidedBy::Pending {
            return verdict;
        }
        let mut state = self.state();
        if state.history.len() >= KEPT {
            state.history.pop_front();
            state.dropped = state.dropped.saturating_add(1);
        }
        state.history.push_back(Record {
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

    /// Asks, when it is this request's turn. While it waited for another, that one's answer may have covered it.
    fn ask(&self, request: &ApprovalRequest, approver: &SharedApprover) -> Verdict {
        let mut turn = turn(approver);
        let decided = match self.unasked(request) {
            Some(decided) => decided,
            None => self.remembered(request, Self::put(request, &mut turn)),
        };
        drop(turn);
        self.record(request, decided)
    }

    /// Puts the question to the approver.
    fn put(request: &ApprovalRequest, approver: &mut Turn<'_>) -> Decided {
        let nobody = |by: DecidedBy| Decided {
            decision: no(),
            by,
            channel: None,
        };
        let Ok(approver) = approver else {
            return nobody(DecidedBy::Failure(
                "whoever is asked broke down at an earlier question".to_owned(),
            ));
        };
        let presentation = match request.presentation.build() {
            Ok(presentation) => presentation,
            Err(why) => {
                return nobody(DecidedBy::Failure(format!("what it would do cannot be shown: {why}")));
            }
        };
        let channel = Some(approver.channel());
        match approver.ask(request, &presentation) {
            Ok(mut decision) => {
                decision.note = decision.note.as_deref().and_then(note::cleaned);
                Decided {
                    decision,
                    by: DecidedBy::Approver,
                    channel,
                }
            }
            Err(ApproverError::Deferred) => nobody(DecidedBy::Pending),
            Err(error) => nobody(DecidedBy::Failure(error.to_string())),
        }
    }

    /// The approver's answer as it holds for this request, kept for the session where it says so.
    fn remembered(&self, request: &ApprovalRequest, decided: Decided) -> Decided {
        let remember = match (decided.decision.approved, request.answer) {
            (true, AnswerOf::Anyone) => decided.decision.remember.max(request.remember),
            // A no is never remembered: the agent may ask again, and the person may change their mind.
            (true, AnswerOf::ApproverOnly) | (false, AnswerOf::Anyone | AnswerOf::ApproverOnly) => Remember::None,
        };
        match remember {
            Remember::Session => self.state().memory.keep(request),
            Remember::None => {}
        }
        Decided {
            decision: ApprovalDecision {
                remember,
                ..decided.decision
            },
            ..decided
        }
    }

    /// The mode.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// What is approved for the session, oldest first.
    pub fn approvals(&self) -> Vec<Approval> {
        self.state().memory.list().into_iter().cloned().collect()
    }

    /// Takes one approval back; the same call is asked about again. `None` if no approval has the number.
    pub fn revoke(&self, id: u64) -> Option<Approval> {
        self.state().memory.revoke(id)
    }

    /// Takes every approval back.
    pub fn forget_approvals(&self) {
        self.state().memory.clear();
    }

    /// Keeps a yes for the session that nobody gave.
    #[cfg(test)]
    pub(super) fn keep(&self, request: &ApprovalRequest) {
        self.state().memory.keep(request);
    }

    /// The latest decisions, oldest first; [`Controller::dropped`] counts those that are no longer among them.
    pub fn history(&self) -> Vec<Record> {
        self.state().history.iter().cloned().collect()
    }

    /// How many older decisions the history no longer has.
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }

    /// Nothing under this lock asks anybody, or can stop half way.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A decision that is not yet told.
#[derive(Debug, Clone)]
struct Decided {
    decision: ApprovalDecision,
    by: DecidedBy,
    channel: Option<Channel>,
}

/// The approver for one question; an error where it broke down at an earlier one.
type Turn<'a> = Result<MutexGuard<'a, Box<dyn Approver + Send>>, Broken>;

/// That an approver broke down.
#[derive(Debug)]
struct Broken;

fn turn(approver: &SharedApprover) -> Turn<'_> {
    approver.lock().map_err(|_| Broken)
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("mode", &self.mode)
            .field("state", &self.state)
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
        DecidedBy::Pending => format!("{tool} waits for an answer"),
    };
    let note = decision
        .note
        .as_deref()
        .map(|note| format!(": {note}"))
        .unwrap_or_default();
    let hint = match by {
        DecidedBy::Approver | DecidedBy::Memory | DecidedBy::Pending => String::new(),
        DecidedBy::Mode(_) | DecidedBy::Failure(_) if request.allowed_by.is_empty() => String::new(),
        DecidedBy::Mode(_) | DecidedBy::Failure(_) => format!("; {}", request.allowed_by),
    };
    format!("permission denied: {who}{note}{hint}")
}
