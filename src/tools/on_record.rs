//! What an executor puts on record, where there is a log.

use super::call::{ShellCommand, ToolError};
use super::executor::Executor;
use super::footing::Footing;
use super::network::NetworkUse;
use super::outcome::{Outcome, Status};
use super::plan::{self, ProfileDigest, Walls};
use super::recorder::{self, CommandEnd, Recorder};
use super::restored::{Recovered, Recovery, Restored};
use super::session::Session;
use super::tool::Output;
use crate::backend::status::ClauseStatus;
use crate::config::NamedFile;
use crate::confine::Confinement;
use crate::policy::AbsPath;
use crate::profile::Profile;

impl Executor {
    /// Has the record of the session, where there is one, name these files. Before anything is recorded.
    pub fn named_in_record(&self, files: &[NamedFile]) {
        if let Some(recorder) = &self.deciding.recorder {
            let line = self.regime_line();
            let line = line.map_or_else(|error| error.to_string(), |line| line.to_string());
            recorder.begins_with(files, &line);
        }
    }

    /// The session's name in the audit log, if there is one.
    pub fn audit_session(&self) -> Option<&str> {
        self.deciding.recorder.as_ref().map(Recorder::session)
    }

    /// Puts on record what holds commands under this profile, where there is a log. The worker has tried it then.
    pub(super) async fn record_profile(
        &self,
        worker: &mut Confinement,
        profile: &Profile,
        statuses: Option<&[ClauseStatus]>,
    ) -> Result<(), ToolError> {
        let Some(recorder) = &self.deciding.recorder else {
            return Ok(());
        };
        worker.ready().await?;
        recorder
            .profile(plan::digest(profile), self.regime_name(), statuses)
            .await
    }

    /// The error of a call, with what was put back before it.
    pub(super) async fn with_recovery(&self, error: ToolError) -> ToolError {
        let Some(Recovery { restored, unsettled }) = self.recovered.take() else {
            return error;
        };
        let noted = record_restored(self.deciding.recorder.as_ref(), None, &restored).await;
        noted.err().unwrap_or(error).with_put_back(&restored, unsettled)
    }

    /// Puts on record what was put back before a call that was given up, and so told nobody.
    pub(super) async fn record_untold(&self) -> Result<(), ToolError> {
        let untold = self.recovered.take().unwrap_or_default();
        record_restored(self.deciding.recorder.as_ref(), None, &untold.restored).await
    }

    /// The regime that holds commands.
    pub(super) fn regime_name(&self) -> &'static str {
        match &self.chosen.footing {
            Footing::Confined(ground) => match ground.walls {
                Walls::Landlock => "landlock",
                Walls::Namespaces(_) => "namespaces",
            },
            Footing::Unconfined(_) | Footing::Refused(_) => "none",
        }
    }

    /// Puts on record that a command is about to start, where there is a log.
    pub(super) async fn record_start(
        &self,
        command: &ShellCommand,
        directory: &AbsPath,
        digest: &ProfileDigest,
        call: Option<&str>,
    ) -> Result<(), ToolError> {
        let Some(recorder) = &self.deciding.recorder else {
            return Ok(());
        };
        let start = recorder::command_start(call.unwrap_or_default(), command, directory, digest, self.regime_name());
        recorder.note(vec![start]).await
    }

    /// The same for how it ended.
    pub(super) async fn record_end(
        &self,
        outcome: &Outcome,
        restored: &[Restored],
        call: Option<&str>,
    ) -> Result<(), ToolError> {
        let Some(recorder) = &self.deciding.recorder else {
            return Ok(());
        };
        let end = CommandEnd {
            status: &outcome.status,
            duration: Some(outcome.duration.as_secs_f64()),
            output_bytes: Some(outcome.output_bytes),
            restored,
            unsettled: outcome.unsettled.as_deref(),
            network: outcome.network.as_ref(),
            explained: outcome.explained.as_ref(),
        };
        let events = recorder::command_end(call.unwrap_or_default(), &end);
        recorder.note(events).await.map_err(ToolError::after_the_call)
    }

    /// Records that a command failed while it was under way, and what it had tried to reach.
    pub(super) async fn record_failure(
        &self,
        why: &ToolError,
        network: Option<&NetworkUse>,
        call: Option<&str>,
    ) -> Result<(), ToolError> {
        let Some(recorder) = &self.deciding.recorder else {
            return Ok(());
        };
        let end = CommandEnd {
            status: &Status::Failed { why: why.to_string() },
            duration: None,
            output_bytes: None,
            restored: &[],
            unsettled: None,
            network,
            explained: None,
        };
        let events = recorder::command_end(call.unwrap_or_default(), &end);
        recorder.note(events).await.map_err(ToolError::after_the_call)
    }
}

impl Session {
    /// Records that the session began, where there is a log; the first call does it otherwise.
    pub async fn begin_record(&self) -> Result<(), ToolError> {
        let recorder = self.shared().executor.lock().await.deciding.recorder.clone();
        match recorder {
            Some(recorder) => recorder.begin().await,
            None => Ok(()),
        }
    }
}

/// What came of a call, with what was put back before it that the call has not told itself.
pub(super) async fn with_recovery(
    recovered: &Recovered,
    recorder: Option<&Recorder>,
    call: Option<&str>,
    done: Result<Output, ToolError>,
) -> Result<Output, ToolError> {
    // A call that waits for its answer is made again, and tells it then.
    if matches!(done, Err(ToolError::Pending)) {
        return done;
    }
    let Some(recovery) = recovered.take() else {
        return done;
    };
    let done = record_restored(recorder, call, &recovery.restored).await.and(done);
    match done {
        Ok(output) => Ok(recovery.added_to(output)),
        Err(error) => Err(error.with_put_back(&recovery.restored, recovery.unsettled)),
    }
}

/// Puts on record what was put back, where there is a log.
pub(super) async fn record_restored(
    recorder: Option<&Recorder>,
    call: Option<&str>,
    restored: &[Restored],
) -> Result<(), ToolError> {
    match recorder {
        Some(recorder) if !restored.is_empty() => {
            let events = recorder::violations(call.unwrap_or_default(), restored);
            recorder.note(events).await.map_err(ToolError::after_the_call)
        }
        Some(_) | None => Ok(()),
    }
}

/// Records that the session ended, where it ends with whoever holds this.
pub(super) async fn end(recorder: Option<&Recorder>) -> Result<(), ToolError> {
    match recorder {
        Some(recorder) => recorder.end().await,
        None => Ok(()),
    }
}
