//! Approval requests as forms, and the decisions that clients return.

use std::collections::BTreeMap;

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema, PrimitiveSchemaDefinition,
    StringSchema,
};
use serde_json::Value;

use crate::approval::{AnswerOf, ApprovalDecision, ApproverError, Remember, RequestMessage};
use crate::policy::path::escape;

/// The most lines of a form. A longer question is asked elsewhere: a person must have seen all of it.
const MAX_LINES: usize = 2_000;
/// The width of a form in columns.
const COLUMNS: u16 = 100;
/// The most characters of a note.
const MAX_NOTE: u32 = 2_000;

const DECISION: &str = "decision";
const NOTE_FIELD: &str = "note";
const ONCE: &str = "once";
const SESSION: &str = "session";
const DENY: &str = "deny";

/// The form for a question.
pub(super) fn elicitation(question: &RequestMessage) -> Result<ElicitRequestParams, ApproverError> {
    let message = message_of(question)?;
    let decision = EnumSchema::builder(choices(question).into_iter().map(|(choice, _)| choice).collect())
        .title("Allow it?")
        .build();
    let note = StringSchema::new()
        .title("Tell the agent (optional)")
        .max_length(MAX_NOTE);
    let properties = BTreeMap::from([
        (DECISION.to_owned(), PrimitiveSchemaDefinition::Enum(decision)),
        (NOTE_FIELD.to_owned(), PrimitiveSchemaDefinition::String(note)),
    ]);
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: ElicitationSchema::new(properties).with_required(vec![DECISION.to_owned()]),
    })
}

/// The text of a question, if it is short enough.
fn message_of(question: &RequestMessage) -> Result<String, ApproverError> {
    let message = without_frame(&question.text(COLUMNS));
    if message.lines().count() > MAX_LINES {
        return Err(ApproverError::TooLarge);
    }
    Ok(message)
}

/// The text without its frame for terminals.
fn without_frame(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("+--"));
    let bare = lines.map(|line| line.strip_prefix("| ").or(line.strip_prefix('|')).unwrap_or(line));
    bare.collect::<Vec<_>>().join("\n")
}

/// The choices, each with what it says.
fn choices(question: &RequestMessage) -> Vec<(String, (bool, Remember))> {
    let label = |remember: Remember| match remember {
        Remember::None => ONCE.to_owned(),
        Remember::Session => SESSION.to_owned(),
        Remember::Scope(number) => match question.scopes.get(usize::from(number)) {
            Some(scope) => format!("{SESSION}: {}", escape(scope.covers.as_bytes())),
            None => SESSION.to_owned(),
        },
    };
    let plain = match question.answer {
        AnswerOf::Anyone => question.remember,
        AnswerOf::AnyoneOnce | AnswerOf::ApproverOnly => Remember::None,
    };
    let mut choices = vec![(label(plain), (true, Remember::None))];
    choices.extend(
        question
            .wider_answers()
            .into_iter()
            .map(|wider| (label(wider.remember), (true, wider.remember))),
    );
    choices.push((DENY.to_owned(), (false, Remember::None)));
    choices
}

/// Reads the decision from an answer. Anything unclear is an error, never an approval.
pub(super) fn read_decision(
    answer: ElicitResult,
    question: &RequestMessage,
) -> Result<ApprovalDecision, ApproverError> {
    let _fits = message_of(question)?;
    match answer.action {
        ElicitationAction::Accept => {
            parse(answer.content.unwrap_or_default(), &choices(question)).ok_or(ApproverError::Unreadable)
        }
        ElicitationAction::Decline => Ok(decision(false, Remember::None, None)),
        ElicitationAction::Cancel => Err(ApproverError::NoDecision("the form was closed".to_owned())),
        _ => Err(ApproverError::Unreadable),
    }
}

/// Parses the fields, and refuses any others. Not derived: serde would accept lists for objects and objects for strings.
fn parse(content: Value, choices: &[(String, (bool, Remember))]) -> Option<ApprovalDecision> {
    let Value::Object(mut fields) = content else {
        return None;
    };
    let chosen = fields.remove(DECISION)?;
    let note = match fields.remove(NOTE_FIELD) {
        None | Some(Value::Null) => None,
        Some(Value::String(note)) => Some(note),
        Some(_) => return None,
    };
    if !fields.is_empty() {
        return None;
    }
    let chosen = chosen.as_str()?;
    let (_, (approved, remember)) = choices.iter().find(|(choice, _)| choice == chosen)?;
    Some(decision(*approved, *remember, note))
}

const fn decision(approved: bool, remember: Remember, note: Option<String>) -> ApprovalDecision {
    ApprovalDecision {
        approved,
        note,
        remember,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::approval::{ApprovalRequest, Presentation, SessionScope};

    fn question(answer: AnswerOf) -> RequestMessage {
        let request = ApprovalRequest {
            answer,
            scopes: vec![SessionScope {
                covers: "commands that begin with `git push`".to_owned(),
                key: Vec::new(),
            }],
            ..ApprovalRequest::new("shell", "$ git push")
        };
        RequestMessage::of(&request, &Presentation::Text(String::new()))
    }

    fn all() -> Vec<(String, (bool, Remember))> {
        choices(&question(AnswerOf::Anyone))
    }

    #[test]
    fn a_form_that_is_filled_in_is_a_decision() {
        let filled = |content| parse(content, &all()).unwrap();
        let once = filled(json!({"decision": "once"}));
        assert_eq!((once.approved, once.remember), (true, Remember::None));
        let session = filled(json!({"decision": "session", "note": null}));
        assert_eq!((session.approved, session.remember), (true, Remember::Session));
        let wider = filled(json!({"decision": "session: commands that begin with `git push`"}));
        assert_eq!((wider.approved, wider.remember), (true, Remember::Scope(0)));
        let no = filled(json!({"decision": "deny", "note": "why"}));
        assert_eq!((no.approved, no.note.as_deref()), (false, Some("why")));
    }

    #[test]
    fn what_only_looks_like_the_form_is_none() {
        for odd in [
            json!(["once"]),
            json!(["once", null]),
            json!({"decision": {"once": null}}),
            json!({"decision": ["once"]}),
            json!({"decision": "Once"}),
            json!({"decision": "once", "decision2": "deny"}),
            json!({"decision": "once", "note": ["x"]}),
            json!({}),
            json!("once"),
            json!(true),
            Value::Null,
        ] {
            assert_eq!(parse(odd.clone(), &all()), None, "{odd}");
        }
    }

    #[test]
    fn what_was_not_offered_cannot_be_chosen() {
        for answer in [AnswerOf::ApproverOnly, AnswerOf::AnyoneOnce] {
            let offered = choices(&question(answer));
            for session in ["session", "session: commands that begin with `git push`"] {
                assert_eq!(parse(json!({ "decision": session }), &offered), None);
            }
            assert!(parse(json!({"decision": "once"}), &offered).is_some());
        }
    }
}
