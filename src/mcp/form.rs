//! A question as a form that a client shows, and what a client says was filled in.

use std::collections::BTreeMap;

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema, PrimitiveSchemaDefinition,
    StringSchema,
};
use serde_json::Value;

use crate::approval::{AnswerOf, ApprovalDecision, ApproverError, Asked, Remember};

/// The most lines of a question that is asked by a form. A client shows a form whole, or lets a person scroll; a longer one is
/// asked elsewhere: nobody says yes to what was not shown.
const MOST_LINES: usize = 2_000;
/// The columns of a form: what is longer goes on in the next line.
const COLUMNS: u16 = 100;
/// The longest note that is taken, in characters.
const NOTE: u32 = 2_000;

const DECISION: &str = "decision";
const NOTE_FIELD: &str = "note";
const ONCE: &str = "once";
const SESSION: &str = "session";
const DENY: &str = "deny";

/// What a form asks.
pub(super) fn ask(asked: &Asked) -> Result<ElicitRequestParams, ApproverError> {
    let message = shown(asked)?;
    let choices = choices(asked.answer);
    let decision = EnumSchema::builder(choices.iter().map(|choice| (*choice).to_owned()).collect())
        .title("Allow it?")
        .build();
    let note = StringSchema::new().title("Tell the agent (optional)").max_length(NOTE);
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

/// The whole question, if a form can hold it.
fn shown(asked: &Asked) -> Result<String, ApproverError> {
    let message = plain(&asked.text(COLUMNS));
    if message.lines().count() > MOST_LINES {
        return Err(ApproverError::TooLarge);
    }
    Ok(message)
}

/// The text without the frame that keeps it apart on a terminal.
fn plain(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("+--"));
    let bare = lines.map(|line| line.strip_prefix("| ").or(line.strip_prefix('|')).unwrap_or(line));
    bare.collect::<Vec<_>>().join("\n")
}

/// What may be chosen.
const fn choices(answer: AnswerOf) -> &'static [&'static str] {
    match answer {
        AnswerOf::Anyone => &[ONCE, SESSION, DENY],
        AnswerOf::AnyoneOnce | AnswerOf::ApproverOnly => &[ONCE, DENY],
    }
}

/// The decision that an answer to this question is; everything that is not clearly a yes is a no.
pub(super) fn decided(answer: ElicitResult, asked: &Asked) -> Result<ApprovalDecision, ApproverError> {
    let _shown = shown(asked)?;
    let choices = choices(asked.answer);
    match answer.action {
        ElicitationAction::Accept => {
            filled_in(answer.content.unwrap_or_default(), choices).ok_or(ApproverError::Unreadable)
        }
        ElicitationAction::Decline => Ok(decision(false, Remember::None, None)),
        ElicitationAction::Cancel => Err(ApproverError::NoDecision("the form was closed".to_owned())),
        _ => Err(ApproverError::Unreadable),
    }
}

/// What was filled in, if it is the form and nothing else. Read by hand: what is derived takes lists for objects and objects
/// for words.
fn filled_in(content: Value, choices: &[&str]) -> Option<ApprovalDecision> {
    let Value::Object(mut fields) = content else {
        return None;
    };
    let decided = fields.remove(DECISION)?;
    let note = match fields.remove(NOTE_FIELD) {
        None | Some(Value::Null) => None,
        Some(Value::String(note)) => Some(note),
        Some(_) => return None,
    };
    if !fields.is_empty() {
        return None;
    }
    match decided.as_str().filter(|decided| choices.contains(decided))? {
        ONCE => Some(decision(true, Remember::None, note)),
        SESSION => Some(decision(true, Remember::Session, note)),
        DENY => Some(decision(false, Remember::None, note)),
        _ => None,
    }
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

    const ALL: &[&str] = &[ONCE, SESSION, DENY];

    #[test]
    fn a_form_that_is_filled_in_is_a_decision() {
        let filled = |content| filled_in(content, ALL).unwrap();
        let once = filled(json!({"decision": "once"}));
        assert_eq!((once.approved, once.remember), (true, Remember::None));
        let session = filled(json!({"decision": "session", "note": null}));
        assert_eq!((session.approved, session.remember), (true, Remember::Session));
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
            assert_eq!(filled_in(odd.clone(), ALL), None, "{odd}");
        }
    }

    #[test]
    fn what_was_not_offered_cannot_be_chosen() {
        for answer in [AnswerOf::ApproverOnly, AnswerOf::AnyoneOnce] {
            let offered = choices(answer);
            assert_eq!(filled_in(json!({"decision": "session"}), offered), None);
            assert!(filled_in(json!({"decision": "once"}), offered).is_some());
        }
    }
}
