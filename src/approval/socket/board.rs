//! The question that is open, shared by who asks and who serves.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::protocol::{ApprovalsEvent, ApprovalsReply, Waiting, title};
use crate::approval::asked::Asked;
use crate::approval::random;
use crate::approval::request::{AnswerOf, ApprovalDecision, Remember};
use crate::policy::hex::hex;

/// What is said of a question that is not open.
pub(super) const NOT_OPEN: &str = "no such question is open; it may have been answered, or be too old";
/// The most events that wait for the thread that serves.
const MOST_EVENTS: usize = 1_000;

/// What is asked now, and what has happened since somebody looked.
#[derive(Debug)]
pub(super) struct Board {
    state: Mutex<State>,
    waker: PipeWriter,
}

#[derive(Debug, Default)]
struct State {
    open: Option<Open>,
    events: VecDeque<ApprovalsEvent>,
}

/// A question that waits for an answer.
#[derive(Debug)]
pub(super) struct Open {
    id: String,
    asked: Asked,
    since: Instant,
    until: Option<Instant>,
    seen: Seen,
    answer: Option<ApprovalDecision>,
    answers: PipeWriter,
}

/// Whether a client was sent all of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Not,
    Whole,
}

/// How a question ends that nobody answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    TimedOut,
    Withdrawn,
}

impl Open {
    pub(super) fn new(asked: Asked, answers: PipeWriter, until: Option<Instant>) -> io::Result<Self> {
        Ok(Self {
            // Long enough that the name of one session's question is none of another's.
            id: hex(&random::<6>()?),
            asked,
            since: Instant::now(),
            until,
            seen: Seen::Not,
            answer: None,
            answers,
        })
    }

    fn waiting(&self) -> Waiting {
        let left = |until: Instant| until.saturating_duration_since(Instant::now()).as_secs();
        Waiting {
            id: self.id.clone(),
            tool: title(&self.asked.tool),
            description: title(&self.asked.description),
            caller: self.asked.caller.as_deref().map(title),
            fingerprint: self.asked.fingerprint.clone(),
            open_for: self.since.elapsed().as_secs(),
            denied_in: self.until.map(left),
        }
    }
}

impl Board {
    /// An empty one, and what becomes readable when it changes.
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

    /// Has the thread that serves look again.
    pub(super) fn wake(&self) {
        // A pipe that is full wakes as well.
        let _full = (&self.waker).write(b"!");
    }

    /// Opens a question.
    pub(super) fn put(&self, open: Open) {
        let mut state = self.state();
        state.tell(ApprovalsEvent::Asked(open.waiting()));
        state.open = Some(open);
        drop(state);
        self.wake();
    }

    /// Closes the question, and gives the answer if there was one.
    pub(super) fn take(&self, otherwise: Settled) -> Option<ApprovalDecision> {
        let mut state = self.state();
        let open = state.open.take()?;
        let how = match (&open.answer, otherwise) {
            (_, Settled::Withdrawn) => "withdrawn",
            (None, Settled::TimedOut) => "timed_out",
            (Some(answer), Settled::TimedOut) if answer.approved => "approved",
            (Some(_), Settled::TimedOut) => "denied",
        };
        state.tell(ApprovalsEvent::Settled {
            id: open.id,
            how: how.to_owned(),
        });
        drop(state);
        self.wake();
        open.answer
    }

    /// What has happened since this was last asked.
    pub(super) fn events(&self, woken: &mut PipeReader) -> Vec<ApprovalsEvent> {
        let mut bytes = [0_u8; 64];
        while matches!(woken.read(&mut bytes), Ok(count) if count == bytes.len()) {}
        self.state().events.drain(..).collect()
    }

    /// What is open.
    pub(super) fn list(&self) -> Vec<Waiting> {
        self.state().open.iter().map(Open::waiting).collect()
    }

    /// All of one question.
    pub(super) fn show(&self, id: &str) -> ApprovalsReply {
        self.with(id, |open| {
            open.seen = Seen::Whole;
            ApprovalsReply::Question(Box::new(open.asked.clone()))
        })
    }

    /// Takes an answer; the first one counts.
    pub(super) fn answer(&self, id: &str, decision: ApprovalDecision) -> ApprovalsReply {
        self.with(id, |open| {
            let refused = |why: &str| ApprovalsReply::Refused(why.to_owned());
            if open.answer.is_some() {
                return refused("it is answered already");
            }
            match (open.asked.answer, decision.approved, decision.remember, open.seen) {
                (AnswerOf::ApproverOnly | AnswerOf::AnyoneOnce, true, Remember::Session, _) => {
                    return refused("this is approved once or not at all, never for the session");
                }
                // Nobody says yes to what was not shown.
                (_, true, _, Seen::Not) => {
                    return refused(&format!("have all of it shown first: `stockade approvals show {id}`"));
                }
                (_, true, _, Seen::Whole) | (_, false, _, _) => {}
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

    fn with(&self, id: &str, act: impl FnOnce(&mut Open) -> ApprovalsReply) -> ApprovalsReply {
        match self.state().open.as_mut().filter(|open| open.id == id) {
            Some(open) => act(open),
            None => ApprovalsReply::Refused(NOT_OPEN.to_owned()),
        }
    }
}

impl State {
    fn tell(&mut self, event: ApprovalsEvent) {
        if self.events.len() >= MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
