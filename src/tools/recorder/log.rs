//! The log of a session.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::command::CallId;
use super::to_event;
use crate::approval::{Record, random};
use crate::audit::event::{Event, SessionEnd, SessionStart};
use crate::audit::{AuditError, AuditLog, Durability, Keeping, LogPaths};
use crate::backend::status::ClauseStatus;
use crate::config::NamedFile;
use crate::policy::hex::hex;
use crate::policy::{Mode, Policy};
use crate::tools::call::ToolError;
use crate::tools::plan::ProfileDigest;
use crate::tools::user_paths::UserPaths;

/// The log of a session, and its name in it.
#[derive(Clone)]
pub(in crate::tools) struct Recorder {
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

/// Where the policy keeps the log, if it keeps one.
fn log_location(policy: &Policy, user_paths: &UserPaths) -> Option<LogPaths> {
    match &policy.audit.log {
        crate::policy::AuditLog::Off => None,
        crate::policy::AuditLog::Default => Some(LogPaths::default_in(&user_paths.state)),
        crate::policy::AuditLog::At(path) => Some(LogPaths::at(path.as_path())),
    }
}

/// Whether the log of this policy, if it has one, would lie where its commands cannot reach it. Nothing is made.
///
/// # Errors
/// Why no session could begin.
pub fn log_stays_out_of_reach(policy: &Policy, user_paths: &UserPaths) -> Result<(), AuditError> {
    let Some(log_location) = log_location(policy, user_paths) else {
        return Ok(());
    };
    log_location
        .out_of_reach(&|path| crate::tools::reachability::reachable_reason(policy, path))
        .map(drop)
}

impl Recorder {
    /// The log that the policy says is kept, if it says so. `mode` is the one that holds.
    pub(in crate::tools) fn open(
        policy: &Policy,
        mode: Mode,
        user_paths: &UserPaths,
    ) -> Result<Option<Self>, AuditError> {
        let Some(log_location) = log_location(policy, user_paths) else {
            return Ok(None);
        };
        let keeping = Keeping {
            max_bytes: policy.audit.max_bytes,
            keep: policy.audit.keep,
        };
        let session = random::<8>().map_err(|source| AuditError::Io {
            path: log_location.log().to_owned(),
            step: "naming a session of",
            source,
        })?;
        let session = hex(&session);
        let log = AuditLog::open(
            &log_location,
            keeping,
            &|path| crate::tools::reachability::reachable_reason(policy, path),
            &session,
        )?;
        let inner = Inner {
            log,
            session,
            mode,
            calls: AtomicU64::new(0),
            profiles: Mutex::default(),
            start: Mutex::new(Some(to_event::session_start(policy, mode))),
            ended: AtomicBool::new(false),
        };
        Ok(Some(Self {
            inner: Arc::new(inner),
            part: Part::First,
        }))
    }

    /// The same for a session beside this one.
    pub(in crate::tools) fn beside(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            part: Part::Beside,
        }
    }

    pub(in crate::tools) fn session(&self) -> &str {
        &self.inner.session
    }

    pub(in crate::tools) fn next_call(&self) -> CallId {
        (self.inner.calls.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }

    /// What the session begins with, as far as it is not known from the policy. Before anything is recorded.
    pub(in crate::tools) fn begins_with(&self, files: &[NamedFile], regime_line: &str) {
        if let Some(start) = &mut *self.inner.start.lock().unwrap_or_else(PoisonError::into_inner) {
            to_event::complete(start, files, regime_line);
        }
    }

    pub(in crate::tools) async fn begin(&self) -> Result<(), ToolError> {
        self.note(Vec::new()).await
    }

    /// Records these, on a thread of its own: another process may have the log for a while.
    pub(in crate::tools) async fn note(&self, events: Vec<Event>) -> Result<(), ToolError> {
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

    /// Records these on this thread.
    pub(super) fn write(&self, mut events: Vec<Event>, durability: Durability) -> Result<(), AuditError> {
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
    pub(in crate::tools) fn decided(&self, record: &Record) -> Result<(), String> {
        let event = Event::Decision(to_event::decision(record, self.inner.mode));
        self.write(vec![event], Durability::Now)
            .map_err(|error| error.to_string())
    }

    /// Records a profile that holds commands from now on, once in a session.
    pub(in crate::tools) async fn profile(
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
        self.note(vec![Event::Profile(to_event::profile(&digest, regime, statuses))])
            .await?;
        let mut profiles = self.inner.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        profiles.insert(digest);
        Ok(())
    }

    /// Records that the session ended, where it ends with this; everything is on disk then.
    pub(in crate::tools) async fn end(&self) -> Result<(), ToolError> {
        if self.part == Part::Beside || self.inner.ended.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let calls = self.inner.calls.load(Ordering::Relaxed);
        let end = Event::SessionEnd(SessionEnd { calls });
        self.on_a_thread(vec![end], Durability::Now).await
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("session", &self.inner.session)
            .finish_non_exhaustive()
    }
}
