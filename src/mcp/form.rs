//! A question as a form that a client shows, and what a client says was filled in.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema, PrimitiveSchemaDefinition,
    StringSchema,
};
use serde_json::Value;

use crate::approval::{AnswerOf, ApprovalDecision, ApproverError, Asked, Remember};

/// The most lines that a form shows of a question.
const LINES: usize = 60;
/// The most characters that it shows.
const CHARACTERS: usize = 6_000;
/// The longest note that is taken, in characters.
const NOTE: u32 = 2_000;

const DECISION: &str = "decision";
const NOTE_FIELD: &str = "note";
const ONCE: &str = "once";
const SESSION: &str = "session";
const DENY: &str = "deny";

/// What a form asks.
pub(super) fn ask(asked: &Asked) -> Result<ElicitRequestParams, ApproverError> {
    let (message, shown) = cut(&plain(&asked.text(100)));
    if asked.answer == AnswerOf::ApproverOnly && shown == Shown::Partly {
        // Nobody says yes to what was not shown.
        return Err(ApproverError::TooLarge);
    }
    let choices = match asked.answer {
        AnswerOf::Anyone => vec![ONCE, SESSION, DENY],
        AnswerOf::ApproverOnly => vec![ONCE, DENY],
    };
    let decision = EnumSchema::builder(choices.into_iter().map(str::to_owned).collect())
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

/// The text without the frame that keeps it apart on a terminal.
fn plain(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("+--"));
    let bare = lines.map(|line| line.strip_prefix("| ").or(line.strip_prefix('|')).unwrap_or(line));
    bare.collect::<Vec<_>>().join("\n")
}

/// Whether all of a question is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Whole,
    Partly,
}

/// As much of a text as a form shows.
fn cut(text: &str) -> (String, Shown) {
    let total = text.lines().count();
    let mut message = String::new();
    for (index, line) in text.lines().enumerate() {
        let room = CHARACTERS.saturating_sub(message.chars().count());
        if index >= LINES || line.chars().count() > room {
            let left = total - index;
            let lines = if left == 1 { "line" } else { "lines" };
            let _infallible = write!(
                message,
                "… [{left} more {lines} not shown; `stockade approvals` or a terminal shows all]"
            );
            return (message, Shown::Partly);
        }
        message.push_str(line);
        message.push('\n');
    }
    (message, Shown::Whole)
}

/// The decision that an answer is; everything that is not clearly a yes is a no. `of` is whose yes counts: it says what
/// could be chosen.
pub(super) fn decided(answer: ElicitResult, of: AnswerOf) -> Result<ApprovalDecision, ApproverError> {
    match answer.action {
        ElicitationAction::Accept => filled_in(answer.content.unwrap_or_default(), of).ok_or(ApproverError::Unreadable),
        ElicitationAction::Decline => Ok(decision(false, Remember::None, None)),
        ElicitationAction::Cancel => Err(ApproverError::NoDecision("the form was closed".to_owned())),
        _ => Err(ApproverError::Unreadable),
    }
}

/// What was filled in, if it is the form and nothing else. Read by hand: what is derived takes lists for objects and objects
/// for words.
fn filled_in(content: Value, of: AnswerOf) -> Option<ApprovalDecision> {
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
    match (decided.as_str()?, of) {
        (ONCE, _) => Some(decision(true, Remember::None, note)),
        (SESSION, AnswerOf::Anyone) => Some(decision(true, Remember::Session, note)),
        (DENY, _) => Some(decision(false, Remember::None, note)),
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

    fn accepted(content: Value) -> Result<ApprovalDecision, ApproverError> {
        decided(
            ElicitResult::new(ElicitationAction::Accept).with_content(content),
            AnswerOf::Anyone,
        )
    }

    #[test]
    fn a_form_that_is_filled_in_is_a_decision() {
        let once = accepted(json!({"decision": "once"})).unwrap();
        assert_eq!((once.approved, once.remember), (true, Remember::None));
        let session = accepted(json!({"decision": "session", "note": null})).unwrap();
        assert_eq!((session.approved, session.remember), (true, Remember::Session));
        let no = accepted(json!({"decision": "deny", "note": "why"})).unwrap();
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
            assert!(accepted(odd.clone()).is_err(), "{odd}");
        }
    }

    #[test]
    fn what_was_not_offered_cannot_be_chosen() {
        let answer = ElicitResult::new(ElicitationAction::Accept).with_content(json!({"decision": "session"}));
        assert!(decided(answer, AnswerOf::ApproverOnly).is_err());
    }
}
