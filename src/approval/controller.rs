//! Mode, then memory, then a person; anything else is no.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::approver::{Approver, ApproverError};
use super::group;
use super::memory::{Approval, Memory};
use super::note;
use super::request::{AnswerOf, ApprovalDecision, ApprovalRequest, Fingerprint};
use super::scope::Remember;
use super::verdict::{Decided, DecidedBy, Record, RecordDecision, Verdict, no, yes};
use crate::policy::Mode;

/// The most decisions in the history.
const MAX_HISTORY: usize = 10_000;

/// An approver that answers one request at a time.
pub type SharedApprover = Mutex<Box<dyn Approver + Send>>;

/// Decides the requests of one session, of several threads at once.
pub struct Controller {
    mode: Mode,
    state: Mutex<State>,
    approver: SharedApprover,
    record_decision: Option<RecordDecision>,
}

/// The state of the session; never locked while somebody is asked.
#[derive(Debug, Default)]
struct State {
    memory: Memory,
    history: VecDeque<Record>,
    dropped: u64,
}

impl Controller {
    /// A controller with nothing remembered.
    pub fn new(mode: Mode, approver: Box<dyn Approver + Send>) -> Self {
        Self {
            mode,
            state: Mutex::default(),
            approver: Mutex::new(approver),
            record_decision: None,
        }
    }

    /// With a recorder: a decision that it cannot put on record is a no.
    #[must_use]
    pub fn recorded_by(self, record_decision: RecordDecision) -> Self {
        Self {
            record_decision: Some(record_decision),
            ..self
        }
    }

    /// Decides a request. Waits for a person if the mode says so.
    ///
    /// `strict` denies what is required and approves the rest; `approve_all` approves; `interactive`
    /// asks, unless the session remembers a yes for the very same call. Where only the approver's answer
    /// counts, the other two deny, and nothing is remembered.
    pub fn decide(&self, request: &ApprovalRequest) -> Verdict {
        match self.decide_without_asking(request) {
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
            let group: Vec<usize> = match &request.group_id {
                None => vec![index],
                Some(group) => (index..requests.len())
                    .filter(|other| {
                        requests
                            .get(*other)
                            .is_some_and(|other| other.group_id.as_ref() == Some(group))
                    })
                    .collect(),
            };
            let members = group
                .iter()
                .filter_map(|member| Some((*member, requests.get(*member)?)));
            for (member, verdict) in self.decide_group(members, approver) {
                if let Some(slot) = verdicts.get_mut(member) {
                    *slot = Some(verdict);
                }
            }
        }
        verdicts.into_iter().flatten().collect()
    }

    fn decide_group<'a>(
        &self,
        members: impl Iterator<Item = (usize, &'a ApprovalRequest)>,
        approver: &SharedApprover,
    ) -> Vec<(usize, Verdict)> {
        let mut verdicts = Vec::new();
        let mut open = Vec::new();
        for (index, request) in members {
            match self.decide_without_asking(request) {
                Some(decided) => verdicts.push((index, self.record(request, decided))),
                None => open.push((index, request)),
            }
        }
        if let [(index, request)] = open.as_slice() {
            verdicts.push((*index, self.ask(request, approver)));
        } else if !open.is_empty() {
            let requests: Vec<&ApprovalRequest> = open.iter().map(|(_, request)| *request).collect();
            let changed = requests
                .iter()
                .flat_map(|request| self.state().memory.changes(request))
                .collect();
            let mut decided = Self::ask_approver(&group::combine(&requests), changed, &mut lock(approver));
            // The whole question offers no scope, so a yes covers none of its parts'.
            if matches!(decided.decision.remember, Remember::Scope(_)) {
                decided.decision.remember = Remember::Session;
            }
            for (index, request) in open {
                let decided = Self::with_allowed_memory(request, decided.clone());
                verdicts.push((index, self.record(request, decided)));
            }
        }
        verdicts
    }

    /// The decision of the mode or the memory, if they decide.
    fn decide_without_asking(&self, request: &ApprovalRequest) -> Option<Decided> {
        let mut channel = None;
        let (decision, by) = match (self.mode, request.required) {
            (mode @ (Mode::Strict | Mode::ApproveAll), true | false) if request.answer == AnswerOf::ApproverOnly => {
                (no(), DecidedBy::Mode(mode))
            }
            (Mode::Strict, true) => (no(), DecidedBy::Mode(Mode::Strict)),
            (Mode::Strict, false) => (yes(), DecidedBy::Mode(Mode::Strict)),
            (Mode::ApproveAll, true | false) => (yes(), DecidedBy::Mode(Mode::ApproveAll)),
            (Mode::Interactive, true | false) => {
                let state = self.state();
                let earlier = state
                    .memory
                    .covering(request)
                    .filter(|_| request.answer == AnswerOf::Anyone)?;
                channel = earlier.channel;
                (yes(), DecidedBy::Memory)
            }
        };
        Some(Decided { decision, by, channel })
    }

    /// Puts the decision on record and into the history; into memory too, if it holds for the session.
    fn record(&self, request: &ApprovalRequest, decided: Decided) -> Verdict {
        let mut record = Record {
            at: SystemTime::now(),
            tool_name: request.tool_name.clone(),
            description: request.description.clone(),
            why: request.why.clone(),
            fingerprint: Fingerprint::of(&request.payload),
            call: request.call.clone(),
            group_id: request.group_id.clone(),
            caller: request.caller.clone(),
            covers: match decided.decision.remember {
                Remember::None | Remember::Session => None,
                Remember::Scope(number) => request
                    .scopes
                    .get(usize::from(number))
                    .map(|scope| scope.covers.clone()),
            },
            verdict: decided.verdict(request),
        };
        if record.verdict.by == DecidedBy::Pending {
            return record.verdict;
        }
        if let Some(Err(why)) = self
            .record_decision
            .as_ref()
            .map(|record_decision| record_decision(&record))
        {
            record.verdict = Decided {
                decision: no(),
                by: DecidedBy::Unrecorded(why),
                channel: record.verdict.channel,
            }
            .verdict(request);
        }
        let verdict = record.verdict.clone();
        let mut state = self.state();
        if verdict.decision.approved {
            state.memory.keep(request, verdict.decision.remember, verdict.channel);
            if verdict.by == DecidedBy::Approver {
                state.memory.note_facts(request);
            }
        }
        if state.history.len() >= MAX_HISTORY {
            state.history.pop_front();
            state.dropped = state.dropped.saturating_add(1);
        }
        state.history.push_back(record);
        verdict
    }

    /// Asks once no other request is open. The answer to that one may have covered this.
    fn ask(&self, request: &ApprovalRequest, approver: &SharedApprover) -> Verdict {
        let mut guard = lock(approver);
        let decided = self.decide_without_asking(request).unwrap_or_else(|| {
            let changed = self.state().memory.changes(request);
            Self::with_allowed_memory(request, Self::ask_approver(request, changed, &mut guard))
        });
        let verdict = self.record(request, decided);
        // Held until here, so that the next request finds this answer in memory.
        drop(guard);
        verdict
    }

    /// Shows the request to the approver, with what has changed since the last yes to the same words.
    fn ask_approver(request: &ApprovalRequest, changed: Vec<String>, approver: &mut ApproverGuard<'_>) -> Decided {
        let denied = |by: DecidedBy| Decided {
            decision: no(),
            by,
            channel: None,
        };
        let Ok(approver) = approver else {
            return denied(DecidedBy::Failure(
                "whoever is asked broke down at an earlier question".to_owned(),
            ));
        };
        let presentation = match request.presentation.build() {
            Ok(presentation) => presentation,
            Err(why) => {
                return denied(DecidedBy::Failure(format!("the request cannot be shown: {why}")));
            }
        };
        let channel = Some(approver.channel());
        let with_changes = (!changed.is_empty()).then(|| request.with_changes(changed));
        match approver.ask(with_changes.as_ref().unwrap_or(request), &presentation) {
            Ok(mut decision) => {
                decision.note = decision.note.as_deref().and_then(note::sanitize);
                Decided {
                    decision,
                    by: DecidedBy::Approver,
                    channel,
                }
            }
            Err(ApproverError::Deferred) => denied(DecidedBy::Pending),
            Err(error) => denied(DecidedBy::Failure(error.to_string())),
        }
    }

    /// The decision, remembered only as far as the request permits.
    fn with_allowed_memory(request: &ApprovalRequest, decided: Decided) -> Decided {
        let remember = match (decided.decision.approved, request.answer) {
            (true, AnswerOf::Anyone) => match chosen(decided.decision.remember, request.remember) {
                // What was not offered is not covered.
                Remember::Scope(number) if usize::from(number) >= request.scopes.len() => Remember::Session,
                offered => offered,
            },
            // A no is never remembered: the agent may ask again, and the person may change their mind.
            (true, AnswerOf::AnyoneOnce | AnswerOf::ApproverOnly) | (false, _) => Remember::None,
        };
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

    /// Adds an approval without asking.
    #[cfg(test)]
    pub(super) fn keep(&self, request: &ApprovalRequest) {
        self.state().memory.keep(request, Remember::Session, None);
    }

    /// The latest decisions, oldest first; [`Controller::dropped`] counts those that are no longer among them.
    pub fn history(&self) -> Vec<Record> {
        self.state().history.iter().cloned().collect()
    }

    /// How many older decisions the history no longer has.
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }

    /// No code under this lock asks anybody, or panics half way.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The locked approver; an error if it panicked at an earlier request.
type ApproverGuard<'a> = Result<MutexGuard<'a, Box<dyn Approver + Send>>, ApproverPanicked>;

/// An approver has panicked.
#[derive(Debug)]
struct ApproverPanicked;

fn lock(approver: &SharedApprover) -> ApproverGuard<'_> {
    approver.lock().map_err(|_| ApproverPanicked)
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("mode", &self.mode)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// What a yes is remembered for: what was chosen, else what the config says of a plain one.
const fn chosen(by_person: Remember, by_config: Remember) -> Remember {
    match by_person {
        Remember::None => by_config,
        chosen @ (Remember::Session | Remember::Scope(_)) => chosen,
    }
}
