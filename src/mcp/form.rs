//! A question as a form that a client shows, and what a client says was filled in.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema, PrimitiveSchemaDefinition,
    StringSchema,
};
use serde::Deserialize;

use crate::approval::{AnswerOf, ApprovalDecision, ApproverError, Asked, Remember};

/// The most lines that a form shows of a question.
const LINES: usize = 60;
/// The most characters that it shows.
const CHARACTERS: usize = 6_000;
/// The longest note that is taken, in characters.
const NOTE: u32 = 2_000;

const DECISION: &str = "decision";
const NOTE_FIELD: &str = "note";

/// What a form asks.
pub(super) fn ask(asked: &Asked) -> Result<ElicitRequestParams, ApproverError> {
    let (message, shown) = cut(&plain(&asked.text(100)));
    if asked.answer == AnswerOf::ApproverOnly && shown == Shown::Partly {
        // Nobody says yes to what was not shown.
        return Err(ApproverError::TooLarge);
    }
    let mut choices = vec![("once", "Yes, this once")];
    match asked.answer {
        AnswerOf::Anyone => choices.push(("session", "Yes, and for the rest of the session to exactly the same")),
        AnswerOf::ApproverOnly => {}
    }
    choices.push(("deny", "No"));
    let decision = EnumSchema::builder(choices.iter().map(|(value, _)| (*value).to_owned()).collect())
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

/// What was filled in.
#[derive(Debug, Deserialize)]
struct Filled {
    decision: Decision,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Once,
    Session,
    Deny,
}

/// The decision that an answer is; everything that is not clearly a yes is a no.
pub(super) fn decided(answer: ElicitResult) -> Result<ApprovalDecision, ApproverError> {
    let decision = |approved, remember, note| ApprovalDecision {
        approved,
        note,
        remember,
    };
    match answer.action {
        ElicitationAction::Accept => {
            let filled: Filled =
                serde_json::from_value(answer.content.unwrap_or_default()).map_err(|_| ApproverError::Unreadable)?;
            Ok(match filled.decision {
                Decision::Once => decision(true, Remember::None, filled.note),
                Decision::Session => decision(true, Remember::Session, filled.note),
                Decision::Deny => decision(false, Remember::None, filled.note),
            })
        }
        ElicitationAction::Decline => Ok(decision(false, Remember::None, None)),
        ElicitationAction::Cancel => Err(ApproverError::NoDecision("the form was closed".to_owned())),
        _ => Err(ApproverError::Unreadable),
    }
}
