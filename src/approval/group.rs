//! Several requests → one.

use std::sync::Arc;

use super::presentation::{Lazy, Presentation};
use super::request::{AnswerOf, ApprovalRequest};
use super::scope::Remember;

/// One request for all of a group, each a part under its description.
///
/// It is as strict as the strictest part, because a yes holds for each. If one part cannot be shown, the whole cannot.
pub(super) fn combine(requests: &[&ApprovalRequest]) -> ApprovalRequest {
    let any = |answer| requests.iter().any(|request| request.answer == answer);
    let parts: Vec<Result<(String, Presentation), String>> = requests
        .iter()
        .map(|request| {
            let shown = request.presentation.build();
            // The config has a yes to this part remembered.
            let title = match request.remember {
                Remember::None => request.description.clone(),
                Remember::Session => format!("{} (for the session, as the config says)", request.description),
                Remember::Scope(_) => format!(
                    "{} (for the session and its path, as the config says)",
                    request.description
                ),
            };
            shown
                .map(|shown| (title, shown))
                .map_err(|why| format!("{}: {why}", request.description))
        })
        .collect();
    let parts: Arc<Result<Vec<_>, String>> = Arc::new(parts.into_iter().collect());
    ApprovalRequest {
        required: requests.iter().any(|request| request.required),
        answer: if any(AnswerOf::ApproverOnly) {
            AnswerOf::ApproverOnly
        } else if any(AnswerOf::Anyone) {
            AnswerOf::Anyone
        } else {
            AnswerOf::AnyoneOnce
        },
        tool_name: distinct(requests.iter().map(|request| Some(request.tool_name.as_str()))).unwrap_or_default(),
        description: format!("do {} things, all of them or none", requests.len()),
        payload: payload(requests),
        presentation: Lazy::new(move || parts.as_ref().clone().map(Presentation::Several)),
        group_id: requests.first().and_then(|request| request.group_id.clone()),
        allowed_by: distinct(requests.iter().map(|request| Some(request.allowed_by.as_str()))).unwrap_or_default(),
        why: requests
            .iter()
            .flat_map(|request| request.why.iter().cloned())
            .collect(),
        caller: distinct(requests.iter().map(|request| request.caller.as_deref())),
        ..ApprovalRequest::new("", "")
    }
}

/// The texts without duplicates, in order.
fn distinct<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> Option<String> {
    let mut known: Vec<&str> = Vec::new();
    for text in texts.flatten().filter(|text| !text.is_empty()) {
        if !known.contains(&text) {
            known.push(text);
        }
    }
    (!known.is_empty()).then(|| known.join(", "))
}

/// A payload that differs whenever a part differs.
fn payload(requests: &[&ApprovalRequest]) -> Vec<u8> {
    let mut payload = Vec::new();
    for request in requests {
        for field in [request.tool_name.as_bytes(), &request.payload] {
            payload.extend_from_slice(&u64::try_from(field.len()).unwrap_or(u64::MAX).to_le_bytes());
            payload.extend_from_slice(field);
        }
    }
    payload
}
