//! The text of a question, safe to show whatever an agent put into it.
//!
//! Every line of content is escaped, stands behind a bar, and is broken before the terminal would break it, so content
//! cannot forge a line of Stockade's own. Long values are cut; the pager shows all.

mod hidden;
mod highlight;
mod layout;
mod line;
mod text;
mod view;
mod writer;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

pub(super) use layout::{Charset, Colour, Layout};

use super::presentation::Presentation;
use super::request::{AnswerOf, ApprovalRequest};
use super::scope::Remember;
use line::{Edge, LABEL, Style};
use text::{Backslash, wrap};
use writer::{MAX_LINES, MAX_SHORT_LINES, Room, Writer};

/// What is shown before the answer is typed.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) text: String,
    pub(super) overflow: Overflow,
}

/// Whether all of a question is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overflow {
    /// All of it is on the screen.
    None,
    /// Part of it was not shown, or has left the screen.
    Unseen,
    /// It is longer than the screen, and was looked at to its end.
    Seen,
}

/// The question without the prompt.
pub(super) fn question(
    request: &ApprovalRequest,
    presentation: &Presentation,
    layout: Layout,
    overflow: Overflow,
) -> Question {
    let mut writer = write_request(request, presentation, layout, Room::Lines(MAX_LINES));
    // Two lines of answers, and the prompt.
    let scrolls = writer.lines.len() + 3 > layout.rows;
    let overflow = match (writer.cut || scrolls, overflow) {
        (true, Overflow::None | Overflow::Unseen) => Overflow::Unseen,
        (true, Overflow::Seen) => Overflow::Seen,
        (false, Overflow::None | Overflow::Unseen | Overflow::Seen) => Overflow::None,
    };
    writer.own_text(Edge::Bottom, Edge::Below, &legend(request, overflow), Style::Strong);
    Question {
        text: writer.render(),
        overflow,
    }
}

/// All lines of the question, uncut.
pub(super) fn all_lines(request: &ApprovalRequest, presentation: &Presentation, layout: Layout) -> Vec<String> {
    let writer = write_request(request, presentation, layout, Room::Unlimited);
    writer.lines.iter().map(|line| line.render(layout)).collect()
}

/// The reasons for the question, and the meaning of each answer.
pub(super) fn why(request: &ApprovalRequest, layout: Layout, overflow: Overflow) -> String {
    let mut writer = Writer::new(layout, hidden::in_reasons(request, layout.charset));
    writer.own_text(Edge::Top, Edge::Below, "Why this is asked", Style::Strong);
    let at_most_few = Room::Lines(MAX_SHORT_LINES);
    let label = |index| if index == 0 { "because" } else { "" };
    for (index, why) in request.why.iter().enumerate().take(MAX_LINES) {
        writer.field(label(index), why.as_bytes(), at_most_few);
    }
    if request.why.is_empty() {
        let reason = match request.answer {
            AnswerOf::Anyone | AnswerOf::AnyoneOnce => "the config wants a person's yes for it",
            AnswerOf::ApproverOnly => "nothing but a person's yes allows it, in any mode",
        };
        writer.field(label(0), reason.as_bytes(), at_most_few);
    }
    if !request.allowed_by.is_empty() {
        writer.field("config", request.allowed_by.as_bytes(), at_most_few);
    }
    for (key, meaning) in meanings(request, overflow) {
        for (index, line) in wrap(meaning, Edge::Side.room(layout) - LABEL).iter().enumerate() {
            writer.field(if index == 0 { key } else { "" }, line.as_bytes(), Room::Unlimited);
        }
    }
    writer.warn();
    writer.own_text(Edge::Bottom, Edge::Below, "the question stands", Style::Strong);
    writer.render()
}

/// The prompt for an answer.
pub(super) fn prompt(request: &ApprovalRequest, overflow: Overflow) -> String {
    let keys: Vec<&str> = meanings(request, overflow).iter().map(|(key, _)| *key).collect();
    format!("approve? [{}/?] ", keys.join("/"))
}

/// The text after an answer that is not understood.
pub(super) fn retry_text(request: &ApprovalRequest, overflow: Overflow) -> String {
    let keys: Vec<&str> = meanings(request, overflow).iter().map(|(key, _)| *key).collect();
    format!("\nPlease press {} or ?.\n", keys.join(", "))
}

/// The text after a yes to what was not shown.
pub(super) const SEE_FIRST: &str = "\nPlease press v and see all of it first.\n";

/// The prompt for the reason of a no.
pub(super) const REASON: &str = "reason (empty: none): ";

fn write_request(request: &ApprovalRequest, presentation: &Presentation, layout: Layout, room: Room) -> Writer {
    let at_most_few = room.at_most_few();
    let mut writer = Writer::new(layout, hidden::in_question(request, presentation, layout.charset));
    writer.own_text(Edge::Top, Edge::Below, "Stockade asks", Style::Strong);
    // A command of the shell says all of it itself.
    let says_all = matches!(presentation, Presentation::Command(_)) && request.description.starts_with("$ ");
    if !says_all {
        writer.field("wants", request.description.as_bytes(), at_most_few);
        writer.field("tool", request.tool_name.as_bytes(), at_most_few);
    }
    if let Some(caller) = &request.caller {
        writer.field("for", caller.as_bytes(), at_most_few);
    }
    if let Some(group) = &request.group_id {
        writer.field("group", group.as_bytes(), at_most_few);
    }
    writer.present(presentation, room);
    for (index, changed) in request.changed.iter().enumerate().take(MAX_SHORT_LINES) {
        writer.field(if index == 0 { "changed" } else { "" }, changed.as_bytes(), at_most_few);
    }
    writer.warn();
    writer
}

/// What a yes for the session can cover, narrowest first, each with the key that chooses it.
pub(super) fn scopes(request: &ApprovalRequest, layout: Layout) -> String {
    let mut writer = Writer::new(layout, hidden::in_scopes(request, layout.charset));
    writer.own_text(
        Edge::Top,
        Edge::Below,
        "Yes, until the session ends, for",
        Style::Strong,
    );
    for wider in request.wider_answers() {
        writer.field(&wider.number.to_string(), wider.covers.as_bytes(), Room::Unlimited);
    }
    writer.warn();
    writer.own_text(
        Edge::Bottom,
        Edge::Below,
        "any other key: back to the question",
        Style::Strong,
    );
    writer.render()
}

/// The prompt for a scope.
pub(super) fn scope_prompt(request: &ApprovalRequest) -> String {
    let wider = request.wider_answers();
    let keys: Vec<String> = wider.iter().map(|wider| wider.number.to_string()).collect();
    format!("which? [{}] ", keys.join("/"))
}

const WARNING: &str =
    "WARNING: characters that do not print are shown as \\u{..}, \\n or \\x.., and a backslash as \\\\ above";

impl Writer {
    fn warn(&mut self) {
        match self.backslash {
            Backslash::Doubled => self.own_text(Edge::Side, Edge::Side, WARNING, Style::Warning),
            Backslash::Single => {}
        }
    }
}

/// The keys, and their meanings.
fn meanings(request: &ApprovalRequest, overflow: Overflow) -> Vec<(&'static str, &'static str)> {
    let no = (
        "n",
        "no; you are asked for a reason, which the agent is told, or type it behind the n",
    );
    let view = ("v", "show all of it");
    let mut all = match (request.answer, overflow) {
        // Nobody says yes to what was not shown.
        (_, Overflow::Unseen) => return vec![("v", "show all of it; a yes counts after that"), no],
        (AnswerOf::ApproverOnly | AnswerOf::AnyoneOnce, Overflow::Seen | Overflow::None) => {
            vec![("y", "yes, once"), no]
        }
        (AnswerOf::Anyone, Overflow::Seen | Overflow::None) => {
            let yes = match request.remember {
                Remember::None => "yes, once",
                Remember::Session => "yes, and, as the config says, again for exactly this until the session ends",
                Remember::Scope(_) => "yes, and, as the config says, for the same path until the session ends",
            };
            match request.wider_answers().as_slice() {
                [] => vec![("y", yes), no],
                [only] if only.remember == Remember::Session => {
                    vec![
                        ("y", yes),
                        no,
                        ("s", "yes, and again for exactly this until the session ends"),
                    ]
                }
                _ => vec![
                    ("y", yes),
                    no,
                    ("s", "yes, until the session ends: you choose for what"),
                ],
            }
        }
    };
    match overflow {
        Overflow::Unseen | Overflow::Seen => all.push(view),
        Overflow::None => {}
    }
    all
}

/// The same in a line.
fn legend(request: &ApprovalRequest, overflow: Overflow) -> String {
    let plain = match (request.answer, request.remember) {
        _ if overflow == Overflow::Unseen => return "v: show all of it, then y: yes; n: no; ?: why".to_owned(),
        (AnswerOf::Anyone, Remember::Session) => "y: yes, and again for exactly this; n: no",
        (AnswerOf::Anyone, Remember::Scope(_)) => "y: yes, and again for the same path; n: no",
        (AnswerOf::Anyone, Remember::None) | (AnswerOf::AnyoneOnce | AnswerOf::ApproverOnly, _) => {
            "y: yes, once; n: no"
        }
    };
    let wider = match request.wider_answers().as_slice() {
        [] => "",
        [only] if only.remember == Remember::Session => "; s: yes, and again for exactly this",
        _ => "; s: yes, for the session",
    };
    let view = match overflow {
        Overflow::None | Overflow::Unseen => "",
        Overflow::Seen => "; v: show all of it",
    };
    format!("{plain}{wider}{view}; ?: why")
}
