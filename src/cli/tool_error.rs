//! Why a call came to nothing: in words, for a program, and as an exit code.

use serde_json::{Value, json};

use super::complain::Complaint;
use super::exit::Exit;
use super::policy;
use crate::tools::{NetworkUse, SessionError, ToolError};

/// Why a call gave no outcome, for a program.
pub(super) fn object(error: &ToolError) -> Value {
    let mut object = json!({"status": status_of(error), "reason": error.to_string()});
    // Nothing of it is beyond JSON.
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

/// The word for a call that gave no outcome.
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
pub(super) fn tool_complaint(error: ToolError) -> Complaint {
    let tried = error.network().into_iter().flat_map(NetworkUse::listed);
    let tried = tried.map(|line| format!("\nstockade: network: {line}"));
    let text: String = std::iter::once(error.to_string()).chain(tried).collect();
    let complaint = Complaint::ending(text, exit_of(&error));
    match error {
        ToolError::Directory(_) => complaint.remedy(
            "start it in a granted directory, or grant this one: in the config, or with `--rw DIR` or `--ro DIR` where \
                 no --config or --preset is named",
        ),
        _ => complaint,
    }
}

pub(super) fn session_complaint(error: SessionError) -> Complaint {
    match error {
        SessionError::Config(error) => policy::complain(error),
        SessionError::Tool(error) => tool_complaint(error),
        SessionError::NoHome => Complaint::failed(error).remedy("run as a user with a passwd entry"),
        SessionError::NotInitialized => Complaint::failed(error),
    }
}
