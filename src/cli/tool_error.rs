//! Errors of tool calls, as text, as JSON and as exit codes.

use serde_json::{Value, json};

use super::error::CliError;
use super::exit::Exit;
use crate::tools::{NetworkUse, SessionError, ToolError};

/// The error as a JSON object.
pub(super) fn object(error: &ToolError) -> Value {
    let mut object = json!({"status": status_of(error), "reason": error.to_string()});
    if let Some(Ok(network)) = error.network().map(serde_json::to_value) {
        object["network"] = network;
    }
    if let ToolError::PutBack { changed, unsettled, .. } = error {
        if let (Value::Object(all), Value::Object(changed)) = (&mut object, json!(changed)) {
            all.extend(changed);
        }
        object["unsettled"] = json!(unsettled);
    }
    object
}

/// The JSON status of an error.
fn status_of(error: &ToolError) -> &'static str {
    match error {
        ToolError::Blocked(_) => "blocked",
        ToolError::Denied(_) | ToolError::Pending => "denied",
        ToolError::Stopped(_) => "cancelled",
        ToolError::UnderWay { failure, .. } | ToolError::PutBack { failure, .. } => status_of(failure),
        ToolError::Refused(_)
        | ToolError::Directory(_)
        | ToolError::Plan(_)
        | ToolError::NoSuchTool(_)
        | ToolError::Audit(_) => "refused",
        ToolError::Confine(_)
        | ToolError::Io(_)
        | ToolError::Private(_)
        | ToolError::AuditAfter(_)
        | ToolError::Changed(_)
        | ToolError::Arguments { .. }
        | ToolError::File(_)
        | ToolError::Function(_) => "failed",
    }
}

pub(super) fn exit_of(error: &ToolError) -> Exit {
    match error {
        ToolError::Blocked(_) | ToolError::Denied(_) | ToolError::Pending => Exit::Denied,
        ToolError::Stopped(signal) => Exit::Signaled(*signal as i32),
        ToolError::UnderWay { failure, .. } | ToolError::PutBack { failure, .. } => exit_of(failure),
        ToolError::File(_) | ToolError::Function(_) => Exit::Command(1),
        ToolError::Changed(_)
        | ToolError::Arguments { .. }
        | ToolError::NoSuchTool(_)
        | ToolError::Refused(_)
        | ToolError::Directory(_)
        | ToolError::Plan(_)
        | ToolError::Confine(_)
        | ToolError::Io(_)
        | ToolError::Private(_)
        | ToolError::Audit(_)
        | ToolError::AuditAfter(_) => Exit::Failed,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is the argument of map_err")]
pub(super) fn tool_failure(error: ToolError) -> CliError {
    let tried = error.network().into_iter().flat_map(NetworkUse::listed);
    let tried = tried.map(|line| format!("\nstockade: network: {line}"));
    let text: String = std::iter::once(error.to_string()).chain(tried).collect();
    let failure = CliError::with_exit(text, exit_of(&error));
    match error {
        ToolError::Directory(_) => failure.remedy(
            "start it in a granted directory, or grant this one: in the config, or with `--rw DIR` or `--ro DIR` where \
                 no --config or --preset is named",
        ),
        _ => failure,
    }
}

pub(super) fn session_failure(error: SessionError) -> CliError {
    match error {
        SessionError::Config(error) => CliError::failed(error),
        SessionError::Tool(error) => tool_failure(error),
        SessionError::NoHome => CliError::failed(error).remedy("run as a user with a passwd entry"),
        SessionError::NotInitialized
        | SessionError::InitializedLate(_)
        | SessionError::Approver(_)
        | SessionError::Directory { .. } => CliError::failed(error),
    }
}
