//! What happens in a session, on record: where the policy says that a log is kept.
//!
//! A call is on record before it acts, a decision before it takes effect; an error on the way to the log refuses the one and
//! turns the other into a no. Without a log nothing here costs anything. `told` has the words.

mod open;
mod told;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) use open::OpenCall;

use super::call::{ShellCall, ToolError};
use super::outcome::Status;
use super::places::Places;
use super::plan::ProfileDigest;
use super::restored::Restored;
use crate::approval::{Record, random};
use crate::audit::event::{self, Event, SessionEnd, SessionStart};
use crate::audit::{AuditError, AuditLog, Durability, Keeping, Place, Text};
use crate::backend::status::ClauseStatus;
use crate::config::NamedFile;
use crate::policy::hex::hex;
use crate::policy::{Mode, Policy};

/// The name of a call in the log, unique in its session.
pub(super) type CallId = String;

/// The log of a session, and its name in it.
#[derive(Clone)]
pub(super) struct Recorder {
    inner: Arc<Inner>,
    part: Part,
}

/// Whether the session ends with whoever holds the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    First,
    Beside,
}

struct Inner {
    log: AuditLog,
    session: String,
    mode: Mode,
    calls: AtomicU64,
    profiles: Mutex<BTreeSet<ProfileDigest>>,
    /// What the session begins with; gone when it is on record.
    start: Mutex<Option<SessionStart>>,
    ended: AtomicBool,
}

/// Where the policy says that a log is kept, if it says so.
fn place(policy: &Policy, places: &Places) -> Option<Place> {
    match &policy.audit.log {
        crate::policy::AuditLog::Off => None,
        crate::policy::AuditLog::Default => Some(Place::default_in(&places.state)),
        crate::policy::AuditLog::At(path) => Some(Place::at(path.as_path())),
    }
}

/// Whether the log of this policy, if it has one, would lie where its commands cannot reach it. Nothing is made.
///
/// # Errors
/// Why no session could begin.
pub fn log_stays_out_of_reach(policy: &Policy, places: &Places) -> Result<(), AuditError> {
    let Some(place) = place(policy, places) else {
        return Ok(());
    };
    place
        .out_of_reach(&|path| super::apart::reached(policy, path))
        .map(drop)
}

impl Recorder {
    /// The log that the policy says is kept, if it says so. `mode` is the one that holds.
    pub(super) fn open(policy: &Policy, mode: Mode, places: &Places) -> Result<Option<Self>, AuditError> {
        let Some(place) = place(policy, places) else {
            return Ok(None);
        };
        let keeping = Keeping {
            max_bytes: policy.audit.max_bytes,
            keep: policy.audit.keep,
        };
        let session = random::<8>().map_err(|source| AuditError::Io {
            path: place.log().to_owned(),
            step: "naming a session of",
            source,
        })?;
        let session = hex(&session);
        let log = AuditLog::open(&place, keeping, &|path| super::apart::reached(policy, path), &session)?;
        let inner = Inner {
            log,
            session,
            mode,
            calls: AtomicU64::new(0),
            profiles: Mutex::default(),
            start: Mutex::new(Some(told::session_start(policy, mode))),
            ended: AtomicBool::new(false),
        };
        Ok(Some(Self {
            inner: Arc::new(inner),
            part: Part::First,
        }))
    }

    /// The same for a session beside this one.
    pub(super) fn beside(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            part: Part::Beside,
        }
    }

    /// The session's name in the log.
    pub(super) fn session(&self) -> &str {
        &self.inner.session
    }

    /// A name for the next call.
    pub(super) fn next_call(&self) -> CallId {
        (self.inner.calls.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }

    /// What the session begins with, as far as it is not known from the policy. Before anything is recorded.
    pub(super) fn begins_with(&self, files: &[NamedFile], regime_line: &str) {
        if let Some(start) = &mut *self.inner.start.lock().unwrap_or_else(PoisonError::into_inner) {
            told::complete(start, files, regime_line);
        }
    }

    /// Records that the session began.
    pub(super) async fn begin(&self) -> Result<(), ToolError> {
        self.note(Vec::new()).await
    }

    /// Records these, on a thread of its own: another process may have the log for a while.
    pub(super) async fn note(&self, events: Vec<Event>) -> Result<(), ToolError> {
        self.on_a_thread(events, Durability::Later).await
    }

    async fn on_a_thread(&self, events: Vec<Event>, durability: Durability) -> Result<(), ToolError> {
        let recorder = self.clone();
        let written = tokio::task::spawn_blocking(move || recorder.write(events, durability)).await;
        match written {
            Ok(written) => Ok(written?),
            Err(error) => Err(ToolError::Audit(AuditError::Failed(error.to_string()))),
        }
    }

    /// Records these here and now.
    fn write(&self, mut events: Vec<Event>, durability: Durability) -> Result<(), AuditError> {
        let inner = &self.inner;
        // Held until it is on record: nothing comes before it.
        let mut start = inner.start.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(start) = &*start {
            events.insert(0, Event::SessionStart(start.clone()));
        }
        if !events.is_empty() {
            inner.log.append(&inner.session, &events, durability)?;
        }
        *start = None;
        Ok(())
    }

    /// Records a decision, on disk when this returns; an error makes it a no.
    pub(super) fn decided(&self, record: &Record) -> Result<(), String> {
        let event = Event::Decision(told::decision(record, self.inner.mode));
        self.write(vec![event], Durability::Now)
            .map_err(|error| error.to_string())
    }

    /// Records a profile that holds commands from now on, once in a session.
    pub(super) async fn profile(
        &self,
        digest: ProfileDigest,
        regime: &str,
        statuses: Option<&[ClauseStatus]>,
    ) -> Result<(), ToolError> {
        let known = {
            let profiles = self.inner.profiles.lock().unwrap_or_else(PoisonError::into_inner);
            profiles.contains(&digest)
        };
        if known {
            return Ok(());
        }
        self.note(vec![Event::Profile(told::profile(&digest, regime, statuses))])
            .await?;
        let mut profiles = self.inner.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        profiles.insert(digest);
        Ok(())
    }

    /// Records that the session ended, where it ends with this; everything is on disk then.
    pub(super) async fn end(&self) -> Result<(), ToolError> {
        if self.part == Part::Beside || self.inner.ended.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let calls = self.inner.calls.load(Ordering::Relaxed);
        let end = Event::SessionEnd(SessionEnd { calls });
        self.on_a_thread(vec![end], Durability::Now).await
    }
}

/// How a command ended, for the log.
pub(super) struct CommandEnd<'a> {
    pub(super) status: &'a Status,
    pub(super) duration: Option<f64>,
    pub(super) output_bytes: Option<u64>,
    pub(super) restored: &'a [Restored],
    pub(super) unsettled: Option<&'a str>,
    pub(super) network: Option<&'a super::network::NetworkUse>,
    pub(super) explained: Option<&'a super::explain::Explained>,
}

/// The events of the end of a command.
pub(super) fn command_end(call: &str, end: &CommandEnd<'_>) -> Vec<Event> {
    let mut events = vec![Event::End(told::end(call, end))];
    events.extend(violations(call, end.restored));
    events.extend(end.network.map(|network| Event::Network(told::network(call, network))));
    let denials = end.explained.map(|explained| told::denials(call, explained));
    events.extend(denials.map(Event::Denials));
    events
}

/// The events of protected names that were restored.
pub(super) fn violations(call: &str, restored: &[Restored]) -> Vec<Event> {
    let restored = restored.iter();
    restored
        .map(|one| Event::Violation(told::violation(call, one)))
        .collect()
}

pub(super) use told::{assessment, command_start};

/// A command that a person runs, as a call of this tool.
pub(super) fn call_of_a_command(call: CallId, tool: &str, command: &ShellCall) -> Event {
    Event::Call(event::Call {
        operation: event::EXECUTE_TOOL,
        tool: Text::of(tool),
        call,
        arguments: told::command_arguments(command),
        caller: None,
        run: None,
        conversation: None,
        request: None,
    })
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("session", &self.inner.session)
            .finish_non_exhaustive()
    }
}
