//! What becomes of calls and commands, put on record where there is a log.

use serde_json::{Value, json};

use super::call::{ShellCommand, ToolError};
use super::network::NetworkUse;
use super::outcome::{Outcome, Status};
use super::output::Output;
use super::plan::{self, ProfileDigest};
use super::recorder::{self, CommandEnd, Recorder};
use super::restored::{Changed, Recovered, Recovery, Restored};
use crate::backend::status::ClauseStatus;
use crate::confine::Confinement;
use crate::policy::AbsPath;
use crate::profile::Profile;

/// Puts on record what holds commands under this profile, where there is a log. The forker has tried it then.
pub(super) async fn record_profile(
    recorder: Option<&Recorder>,
    forker: &mut Confinement,
    profile: &Profile,
    regime: &str,
    statuses: Option<&[ClauseStatus]>,
) -> Result<(), ToolError> {
    let Some(recorder) = recorder else {
        return Ok(());
    };
    forker.ready().await?;
    recorder.profile(plan::digest(profile), regime, statuses).await
}

/// The error of a call, with what was put back before it.
pub(super) async fn failed(recorder: Option<&Recorder>, recovered: &Recovered, error: ToolError) -> ToolError {
    let Some(Recovery { restored, unsettled }) = recovered.take() else {
        return error;
    };
    let noted = record_restored(recorder, None, &restored).await;
    noted.err().unwrap_or(error).with_put_back(&restored, unsettled)
}

/// Puts on record what was put back before a call that was given up, and so told nobody.
pub(super) async fn record_unreported(recorder: Option<&Recorder>, recovered: &Recovered) -> Result<(), ToolError> {
    let mut unreported = recovered.take().unwrap_or_default().restored;
    unreported.append(&mut recovered.unrecorded_elsewhere());
    record_restored(recorder, None, &unreported).await
}

/// Puts on record that a command is about to start, where there is a log.
pub(super) async fn record_start(
    recorder: Option<&Recorder>,
    command: &ShellCommand,
    directory: &AbsPath,
    (digest, regime): (&ProfileDigest, &str),
    call: Option<&str>,
) -> Result<(), ToolError> {
    let Some(recorder) = recorder else {
        return Ok(());
    };
    let start = recorder::command_start(call.unwrap_or_default(), command, directory, digest, regime);
    recorder.note(vec![start]).await
}

/// The same for how it ended.
pub(super) async fn record_end(
    recorder: Option<&Recorder>,
    outcome: &Outcome,
    restored: &[Restored],
    call: Option<&str>,
) -> Result<(), ToolError> {
    let end = CommandEnd {
        status: &outcome.status,
        duration: Some(outcome.duration.as_secs_f64()),
        output_bytes: Some(outcome.output_bytes),
        restored,
        unsettled: outcome.unsettled.as_deref(),
        network: outcome.network.as_ref(),
        explained: outcome.explained.as_ref(),
    };
    record_command_end(recorder, &end, call).await
}

/// What is told of a command that failed while it was under way: what it had tried to reach is told and recorded, too.
pub(super) async fn failed_under_way(
    recorder: Option<&Recorder>,
    error: ToolError,
    network: Option<NetworkUse>,
    call: Option<&str>,
) -> ToolError {
    let end = CommandEnd {
        status: &Status::Failed { why: error.to_string() },
        duration: None,
        output_bytes: None,
        restored: &[],
        unsettled: None,
        network: network.as_ref(),
        explained: None,
    };
    if let Err(unrecorded) = record_command_end(recorder, &end, call).await {
        return unrecorded;
    }
    match network {
        Some(network) => ToolError::UnderWay {
            failure: Box::new(error),
            network,
        },
        None => error,
    }
}

async fn record_command_end(
    recorder: Option<&Recorder>,
    end: &CommandEnd<'_>,
    call: Option<&str>,
) -> Result<(), ToolError> {
    let Some(recorder) = recorder else {
        return Ok(());
    };
    let events = recorder::command_end(call.unwrap_or_default(), end);
    recorder.note(events).await.map_err(ToolError::after_the_call)
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
        Ok(output) => Ok(added_to(output, &recovery)),
        Err(error) => Err(error.with_put_back(&recovery.restored, recovery.unsettled)),
    }
}

/// What a call gave, with what was put back before it.
fn added_to(mut output: Output, recovery: &Recovery) -> Output {
    for line in recovery.messages() {
        if !output.text.is_empty() && !output.text.ends_with('\n') {
            output.text.push('\n');
        }
        output.text.extend(["[", &line, "]"]);
    }
    let (Value::Object(members), Value::Object(changed)) = (&mut output.data, json!(Changed::of(&recovery.restored)))
    else {
        return output;
    };
    members.extend(changed);
    output
}

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
