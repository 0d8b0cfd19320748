//! The question for a tool that Stockade knows only by its name and arguments.

use serde_json::Value;

use super::tool::ApprovalContext;
use crate::approval::{ApprovalRequest, Lazy, Presentation};

/// Asks about these arguments, of which nothing is left out that is not left out in `shown`. The guard says what would allow it.
pub(crate) fn by_name(context: &ApprovalContext, description: String, shown: Value) -> ApprovalRequest {
    let payload = payload(&[context.tool_name.as_bytes(), shown.to_string().as_bytes()]);
    ApprovalRequest {
        payload,
        presentation: Lazy::new(move || Ok(Presentation::Structured(fields(&shown)))),
        caller: context.caller.clone(),
        ..ApprovalRequest::new(&context.tool_name, description)
    }
}

/// Each argument by name; what is no object, as one.
pub(crate) fn fields(shown: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_else(|_| other.to_string()),
    };
    match shown {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
        Value::Null => Vec::new(),
        other => vec![("value".to_owned(), text(other))],
    }
}

/// Fields as bytes that differ whenever one of them does.
pub(crate) fn payload(fields: &[&[u8]]) -> Vec<u8> {
    let mut payload = Vec::new();
    for field in fields {
        payload.extend_from_slice(&u64::try_from(field.len()).unwrap_or(u64::MAX).to_le_bytes());
        payload.extend_from_slice(field);
    }
    payload
}
