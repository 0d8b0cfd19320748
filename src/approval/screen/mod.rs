//! The text of a question, safe to show whatever an agent put into it.
//!
//! Every line of content stands behind a bar, is escaped, and is broken before the terminal would
//! break it: nothing that was asked about can begin a line of its own. What is long is cut, and shown
//! whole when asked for.

mod hidden;
mod line;
mod look;
mod pen;
mod text;
mod view;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

pub(super) use look::{Colour, Letters, Look};

use super::request::{AnswerOf, ApprovalRequest, Presentation, Remember};
use line::{Edge, LABEL, Tint};
use pen::{FEW, HEAD, Pen, Room};
use text::{Backslash, wrapped};

/// What is shown before the answer is typed.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) text: String,
    pub(super) rest: Rest,
}

/// What of a question cannot be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// All of it is on the screen.
    Nothing,
    /// Some of it was left out.
    Unseen,
    /// It is longer than the screen, but all of it was there.
    Seen,
}

/// The question, up to and without the place where the answer is typed.
pub(super) fn question(request: &ApprovalRequest, presentation: &Presentation, look: Look, rest: Rest) -> Question {
    let mut pen = asked(request, presentation, look, Room::Lines(HEAD));
    // Two lines of answers, and the prompt.
    let scrolls = pen.lines.len() + 3 > look.rows;
    let rest = match (pen.cut, rest) {
        (true, Rest::Nothing | Rest::Unseen) => Rest::Unseen,
        (true, Rest::Seen) => Rest::Seen,
        (false, Rest::Nothing | Rest::Unseen | Rest::Seen) if scrolls => Rest::Seen,
        (false, Rest::Nothing | Rest::Unseen | Rest::Seen) => Rest::Nothing,
    };
    pen.own(Edge::Bottom, Edge::Below, &legend(request, rest), Tint::Strong);
    Question {
        text: pen.drawn(),
        rest,
    }
}

/// All lines of what is asked about, uncut.
pub(super) fn whole(request: &ApprovalRequest, presentation: &Presentation, look: Look) -> Vec<String> {
    let pen = asked(request, presentation, look, Room::Whole);
    pen.lines.iter().map(|line| line.drawn(look)).collect()
}

/// Why it is asked, and what each answer means.
pub(super) fn why(request: &ApprovalRequest, look: Look, rest: Rest) -> String {
    let mut pen = Pen::new(look, hidden::in_reasons(request, look.letters));
    pen.own(Edge::Top, Edge::Below, "Why this is asked", Tint::Strong);
    let few = Room::Lines(FEW);
    let label = |index| if index == 0 { "because" } else { "" };
    for (index, why) in request.why.iter().enumerate().take(HEAD) {
        pen.field(label(index), why.as_bytes(), few);
    }
    if request.why.is_empty() {
        let said = match request.answer {
            AnswerOf::Anyone | AnswerOf::AnyoneOnce => "the config wants a person's yes for it",
            AnswerOf::ApproverOnly => "nothing but a person's yes allows it, in any mode",
        };
        pen.field(label(0), said.as_bytes(), few);
    }
    if !request.allowed_by.is_empty() {
        pen.field("config", request.allowed_by.as_bytes(), few);
    }
    for (key, meaning) in meanings(request, rest) {
        for (index, line) in wrapped(meaning, Edge::Side.room(look) - LABEL).iter().enumerate() {
            pen.field(if index == 0 { key } else { "" }, line.as_bytes(), Room::Whole);
        }
    }
    pen.warn();
    pen.own(Edge::Bottom, Edge::Below, "the question stands", Tint::Strong);
    pen.drawn()
}

/// Where the answer is typed.
pub(super) fn prompt(request: &ApprovalRequest, rest: Rest) -> String {
    let keys: Vec<&str> = meanings(request, rest).iter().map(|(key, _)| *key).collect();
    format!("approve? [{}/?] ", keys.join("/"))
}

/// What is said to an answer that is none.
pub(super) fn please(request: &ApprovalRequest, rest: Rest) -> String {
    let keys: Vec<&str> = meanings(request, rest).iter().map(|(key, _)| *key).collect();
    format!("Please type {} or ?.\n", keys.join(", "))
}

/// What is said to a yes to what was not shown.
pub(super) const SEE_FIRST: &str = "Please type v and see all of it first.\n";

/// Where the reason for a no is typed.
pub(super) const REASON: &str = "reason (empty: none): ";

fn asked(request: &ApprovalRequest, presentation: &Presentation, look: Look, room: Room) -> Pen {
    let few = room.few();
    let mut pen = Pen::new(look, hidden::in_question(request, presentation, look.letters));
    pen.own(Edge::Top, Edge::Below, "Stockade asks", Tint::Strong);
    pen.field("tool", request.tool_name.as_bytes(), few);
    pen.field("wants", request.description.as_bytes(), few);
    if let Some(caller) = &request.caller {
        pen.field("for", caller.as_bytes(), few);
    }
    if let Some(group) = &request.group_id {
        pen.field("group", group.as_bytes(), few);
    }
    pen.present(presentation, room);
    pen.warn();
    pen
}

const WARNING: &str =
    "WARNING: characters that do not print are shown as \\u{..}, \\n or \\x.., and a backslash as \\\\ above";

impl Pen {
    fn warn(&mut self) {
        match self.backslash {
            Backslash::Doubled => self.own(Edge::Side, Edge::Side, WARNING, Tint::Warning),
            Backslash::Single => {}
        }
    }
}

/// The letters that are answers, and what they mean.
fn meanings(request: &ApprovalRequest, rest: Rest) -> Vec<(&'static str, &'static str)> {
    let no = (
        "n",
        "no; you are asked for a reason, which the agent is told, or type it behind the n",
    );
    let view = ("v", "show all of it");
    let mut all = match (request.answer, rest) {
        // Nobody says yes to what was not shown.
        (_, Rest::Unseen) => return vec![("v", "show all of it; a yes counts after that"), no],
        (AnswerOf::ApproverOnly | AnswerOf::AnyoneOnce, Rest::Seen | Rest::Nothing) => vec![("y", "yes, once"), no],
        (AnswerOf::Anyone, Rest::Seen | Rest::Nothing) => {
            let yes = match request.remember {
                Remember::None => "yes, once",
                Remember::Session => "yes, and, as the config says, again for exactly this until the session ends",
            };
            let again = "yes, and again for exactly this until the session ends";
            vec![("y", yes), no, ("s", again)]
        }
    };
    match rest {
        Rest::Unseen | Rest::Seen => all.push(view),
        Rest::Nothing => {}
    }
    all
}

/// The same in a line.
fn legend(request: &ApprovalRequest, rest: Rest) -> String {
    let answers = match (request.answer, request.remember) {
        _ if rest == Rest::Unseen => return "v: show all of it, then y: yes; n: no; ?: why".to_owned(),
        (AnswerOf::Anyone, Remember::None) => "y: yes, once; n: no; s: yes, and again for exactly this",
        (AnswerOf::Anyone, Remember::Session) => "y or s: yes, and again for exactly this; n: no",
        (AnswerOf::AnyoneOnce | AnswerOf::ApproverOnly, _) => "y: yes, once; n: no",
    };
    let view = match rest {
        Rest::Nothing | Rest::Unseen => "",
        Rest::Seen => "; v: show all of it",
    };
    format!("{answers}{view}; ?: why")
}
