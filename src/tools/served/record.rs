//! A command that lives as long as the session, in the audit log.

use super::end::ServedEnd;
use crate::policy::AbsPath;
use crate::tools::call::{ShellCommand, ToolError};
use crate::tools::network::NetworkUse;
use crate::tools::on_record::record_restored;
use crate::tools::plan::ProfileDigest;
use crate::tools::recorder::{self, CallId, CommandEnd, Recorder};
use crate::tools::restored::Recovery;

/// Where its start and its end are put on record, if there is a log.
#[derive(Debug)]
pub(super) struct Record(Option<(Recorder, CallId)>);

impl Record {
    pub(super) fn of(recorder: Option<&Recorder>) -> Self {
        Self(recorder.map(|recorder| (recorder.clone(), recorder.next_call())))
    }

    pub(super) async fn start(
        &self,
        command: &ShellCommand,
        directory: &AbsPath,
        digest: &ProfileDigest,
        regime: &str,
    ) -> Result<(), ToolError> {
        match &self.0 {
            Some((recorder, call)) => {
                let start = recorder::command_start(call, command, directory, digest, regime);
                recorder.note(vec![start]).await
            }
            None => Ok(()),
        }
    }

    /// What was put back before it started. It is said as well, so that a log which takes nothing more hides nothing.
    pub(super) async fn restored(&self, recovery: &Recovery) {
        if let Some((recorder, call)) = &self.0 {
            let _unrecorded = record_restored(Some(recorder), Some(call), &recovery.restored).await;
        }
    }

    pub(super) async fn end(&self, end: &ServedEnd, network: Option<&NetworkUse>) -> Result<(), ToolError> {
        match &self.0 {
            Some((recorder, call)) => {
                let end = CommandEnd {
                    status: &end.status,
                    duration: None,
                    output_bytes: None,
                    restored: &end.restored,
                    unsettled: end.unsettled.as_deref(),
                    network,
                    explained: None,
                };
                recorder.note(recorder::command_end(call, &end)).await
            }
            None => Ok(()),
        }
    }
}
