//! The result of a tool call, as JSON and as an exit code.

use serde_json::{Value, json};

use super::exit::Exit;
use super::tool_error;
use crate::tools::{Output, OutputEnd, ToolError};

/// The result as a JSON object.
pub(super) fn object(done: &Result<Output, ToolError>) -> (Value, Exit) {
    match done {
        Ok(output) => {
            let status = match output.end {
                OutputEnd::Done => "done",
                OutputEnd::Failed => "failed",
            };
            let object = json!({"status": status, "text": output.text, "data": output.data});
            (object, exit_of_output(output))
        }
        Err(error) => (tool_error::object(error), tool_error::exit_of(error)),
    }
}

pub(super) fn exit_of_output(output: &Output) -> Exit {
    match output.end {
        OutputEnd::Done => Exit::Success,
        OutputEnd::Failed => {
            let code = output
                .data
                .get("code")
                .and_then(Value::as_i64)
                .and_then(|code| i32::try_from(code).ok());
            let signal = output
                .data
                .get("signal")
                .and_then(Value::as_i64)
                .and_then(|signal| i32::try_from(signal).ok());
            match (output.data.get("status").and_then(Value::as_str), code, signal) {
                (Some("timed_out"), ..) => Exit::TimedOut,
                (Some("not_found"), ..) => Exit::NotFound,
                (Some("not_executable"), ..) => Exit::Denied,
                (Some("failed"), ..) => Exit::Failed,
                (Some("over_limit"), ..) => Exit::Signaled(9),
                (_, _, Some(signal)) => Exit::Signaled(signal),
                (_, Some(code), None) if code != 0 => Exit::Command(code),
                _ => Exit::Command(1),
            }
        }
    }
}
