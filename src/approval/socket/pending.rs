//! The open request, shared by the approver and the server thread.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::protocol::{ApprovalsEvent, ApprovalsReply, RequestSummary, title};
use crate::approval::random;
use crate::approval::request::{AnswerOf, ApprovalDecision};
use crate::approval::request_message::RequestMessage;
use crate::approval::scope::Remember;
use crate::policy::hex::hex;

/// The refusal for a request that is not open.
pub(super) const NOT_OPEN: &str = "no such question is open; it may have been answered, or be too old";
/// The most events kept for the server thread.
const MAX_EVENTS: usize = 1_000;

/// The open request, if any, and the events not yet sent.
#[derive(Debug)]
pub(super) struct Pending {
    state: Mutex<State>,
    waker: PipeWriter,
}

#[derive(Debug, Default)]
struct State {
    open: Option<PendingRequest>,
    events: VecDeque<ApprovalsEvent>,
}

/// A request that waits for an answer.
#[derive(Debug)]
pub(super) struct PendingRequest {
    id: String,
    message: RequestMessage,
    since: Instant,
    until: Option<Instant>,
    shown: Shown,
    answer: Option<ApprovalDecision>,
    answers: PipeWriter,
}

/// Whether a client was sent all of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    No,
    Yes,
}

/// Why a request ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    TimedOut,
    Withdrawn,
}

impl PendingRequest {
    pub(super) fn new(message: RequestMessage, answers: PipeWriter, until: Option<Instant>) -> io::Result<Self> {
        Ok(Self {
            // Long enough to be unique among sessions.
            id: hex(&random::<6>()?),
            message,
            since: Instant::now(),
            until,
            shown: Shown::No,
            answer: None,
            answers,
        })
    }

    fn summary(&self) -> RequestSummary {
        let left = |until: Instant| until.saturating_duration_since(Instant::now()).as_secs();
        RequestSummary {
            id: self.id.clone(),
            tool: title(&self.message.tool),
            description: title(&self.message.description),
            caller: self.message.caller.as_deref().map(title),
            fingerprint: self.message.fingerprint.clone(),
            open_for: self.since.elapsed().as_secs(),
            denied_in: self.until.map(left),
        }
    }
}

impl Pending {
    /// Nothing pending, and a pipe that becomes readable on each change.
    pub(super) fn new() -> io::Result<(Self, PipeReader)> {
        let (reader, waker) = io::pipe()?;
        fcntl(reader.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        fcntl(waker.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let state = Mutex::new(State::default());
        Ok((Self { state, waker }, reader))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the server thread.
    pub(super) fn wake(&self) {
        // A full pipe wakes the thread too.
        let _full = (&self.waker).write(b"!");
    }

    /// Opens a request.
    pub(super) fn open(&self, request: PendingRequest) {
        let mut state = self.state();
        state.push_event(ApprovalsEvent::Asked(request.summary()));
        state.open = Some(request);
        drop(state);
        self.wake();
    }

    /// Closes the request, and returns the answer if there was one.
    pub(super) fn close(&self, unanswered: Unanswered) -> Option<ApprovalDecision> {
        let mut state = self.state();
        let request = state.open.take()?;
        let how = match (&request.answer, unanswered) {
            (_, Unanswered::Withdrawn) => "withdrawn",
            (None, Unanswered::TimedOut) => "timed_out",
            (Some(answer), Unanswered::TimedOut) if answer.approved => "approved",
            (Some(_), Unanswered::TimedOut) => "denied",
        };
        state.push_event(ApprovalsEvent::Settled {
            id: request.id,
            how: how.to_owned(),
        });
        drop(state);
        self.wake();
        request.answer
    }

    /// The events since the last call.
    pub(super) fn take_events(&self, wakeups: &mut PipeReader) -> Vec<ApprovalsEvent> {
        let mut bytes = [0_u8; 64];
        while matches!(wakeups.read(&mut bytes), Ok(count) if count == bytes.len()) {}
        self.state().events.drain(..).collect()
    }

    /// The open requests.
    pub(super) fn list(&self) -> Vec<RequestSummary> {
        self.state().open.iter().map(PendingRequest::summary).collect()
    }

    /// All of one request.
    pub(super) fn show(&self, id: &str) -> ApprovalsReply {
        self.with(id, |open| {
            open.shown = Shown::Yes;
            ApprovalsReply::Question(Box::new(open.message.clone()))
        })
    }

    /// Stores an answer; the first one counts.
    pub(super) fn answer(&self, id: &str, decision: ApprovalDecision) -> ApprovalsReply {
        self.with(id, |open| {
            let refused = |why: &str| ApprovalsReply::Refused(why.to_owned());
            if open.answer.is_some() {
                return refused("it is answered already");
            }
            match (open.message.answer, decision.approved, decision.remember, open.shown) {
                (AnswerOf::ApproverOnly | AnswerOf::AnyoneOnce, true, Remember::Session | Remember::Scope(_), _) => {
                    return refused("this is approved once or not at all, never for the session");
                }
                (AnswerOf::Anyone, true, Remember::Scope(number), _)
                    if usize::from(number) >= open.message.scopes.len() =>
                {
                    return refused(&format!(
                        "it has no scope of that number; `stockade approvals show {id}` lists them"
                    ));
                }
                // Nobody says yes to what was not shown.
                (_, true, _, Shown::No) => {
                    return refused(&format!("have all of it shown first: `stockade approvals show {id}`"));
                }
                (_, true, _, Shown::Yes) | (_, false, _, _) => {}
            }
            open.answer = Some(decision);
            match (&open.answers).write_all(b"!") {
                Ok(()) => ApprovalsReply::Done,
                Err(error) => {
                    open.answer = None;
                    ApprovalsReply::Refused(format!("nobody waits for the answer: {error}"))
                }
            }
        })
    }

    fn with(&self, id: &str, act: impl FnOnce(&mut PendingRequest) -> ApprovalsReply) -> ApprovalsReply {
        match self.state().open.as_mut().filter(|open| open.id == id) {
            Some(open) => act(open),
            None => ApprovalsReply::Refused(NOT_OPEN.to_owned()),
        }
    }
}

impl State {
    fn push_event(&mut self, event: ApprovalsEvent) {
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
