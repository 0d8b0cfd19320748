//! A request as JSON, for an approver in another process.

use serde::{Deserialize, Serialize};

use super::approver::ApproverError;
use super::presentation::{Lazy, Presentation};
use super::request::{AnswerOf, ApprovalRequest, Fingerprint};
use super::scope::{Remember, SessionScope, WiderAnswer, wider_answers};
use super::screen::{self, Charset, Colour, Layout};
use crate::policy::hex::unhex;

/// The version of the format.
const VERSION: u32 = 1;
/// The largest request, as JSON.
pub(super) const MAX_BYTES: usize = 16 * 1024 * 1024;

/// A request with its presentation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestMessage {
    /// The version of the format: 1.
    pub version: u32,
    /// The tool.
    pub tool: String,
    /// What it would do, in a line.
    pub description: String,
    /// Who asks, if it is not the agent itself.
    pub caller: Option<String>,
    /// The group it is asked in.
    pub group: Option<String>,
    /// Whether `strict` mode would deny it.
    pub required: bool,
    /// Who may approve.
    pub answer: AnswerOf,
    /// How long a plain yes holds, and for what.
    pub remember: Remember,
    /// What a yes for the session can cover beyond this very call.
    #[serde(default)]
    pub scopes: Vec<SessionScope>,
    /// What has changed since the last yes to the same words.
    #[serde(default)]
    pub changed: Vec<String>,
    /// SHA-256 of what exactly would run, in hexadecimal digits.
    pub fingerprint: String,
    /// Which lines of the config make it a question.
    pub why: Vec<String>,
    /// What in the config would allow it.
    pub allowed_by: String,
    /// What is shown.
    pub presentation: Presentation,
}

impl RequestMessage {
    /// The message for this request.
    pub fn of(request: &ApprovalRequest, presentation: &Presentation) -> Self {
        Self {
            version: VERSION,
            tool: request.tool_name.clone(),
            description: request.description.clone(),
            caller: request.caller.clone(),
            group: request.group_id.clone(),
            required: request.required,
            answer: request.answer,
            remember: request.remember,
            scopes: request.scopes.clone(),
            changed: request.changed.clone(),
            fingerprint: Fingerprint::of(&request.payload).to_string(),
            why: request.why.clone(),
            allowed_by: request.allowed_by.clone(),
            presentation: presentation.clone(),
        }
    }

    /// What a plain yes is remembered for, as the config says; `None` where it holds once.
    pub(crate) fn covered_by_plain_yes(&self) -> Option<&str> {
        match (self.answer, self.remember) {
            (AnswerOf::AnyoneOnce | AnswerOf::ApproverOnly, _) | (AnswerOf::Anyone, Remember::None) => None,
            (AnswerOf::Anyone, Remember::Session) => Some("exactly this"),
            (AnswerOf::Anyone, Remember::Scope(number)) => {
                let scope = self.scopes.get(usize::from(number));
                Some(scope.map_or("exactly this", |scope| &scope.covers))
            }
        }
    }

    /// What a person can choose beyond a plain yes, narrowest first; empty where no yes is remembered.
    pub(crate) fn wider_answers(&self) -> Vec<WiderAnswer<'_>> {
        match self.answer {
            AnswerOf::Anyone => wider_answers(self.remember, &self.scopes),
            AnswerOf::AnyoneOnce | AnswerOf::ApproverOnly => Vec::new(),
        }
    }

    /// One line of JSON; an error if it is too large.
    pub(super) fn json(&self) -> Result<Vec<u8>, ApproverError> {
        let mut json = serde_json::to_vec(self).map_err(|_| ApproverError::TooLarge)?;
        json.push(b'\n');
        if json.len() > MAX_BYTES {
            return Err(ApproverError::TooLarge);
        }
        Ok(json)
    }

    /// The request, for an approver of this process.
    ///
    /// Its payload is the fingerprint only: the session that decides has the rest.
    pub fn request(&self) -> ApprovalRequest {
        let presentation = self.presentation.clone();
        ApprovalRequest {
            required: self.required,
            answer: self.answer,
            scopes: self.scopes.clone(),
            changed: self.changed.clone(),
            payload: unhex(&self.fingerprint).unwrap_or_default(),
            presentation: Lazy::new(move || Ok(presentation.clone())),
            group_id: self.group.clone(),
            remember: self.remember,
            allowed_by: self.allowed_by.clone(),
            why: self.why.clone(),
            caller: self.caller.clone(),
            ..ApprovalRequest::new(&self.tool, &self.description)
        }
    }

    /// All of it as text, safe to print.
    pub fn text(&self, columns: u16) -> String {
        let layout = Layout::new(Some((columns, u16::MAX)), Colour::Off, Charset::Ascii);
        screen::all_lines(&self.request(), &self.presentation, layout).concat()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;
    use crate::approval::{CommandView, Content, FileView};

    fn request_message() -> RequestMessage {
        let odd = || OsStr::from_bytes(b"/w/\xff\n").into();
        let command = CommandView {
            command: b"echo \xff".to_vec(),
            directory: odd(),
            programs: vec!["/usr/bin/echo".into()],
            writable_programs: vec![odd()],
            notes: vec![("echo".to_owned(), "says it".to_owned())],
            regime: "landlock".to_owned(),
            weaker: None,
            may_read: vec![odd(), "/r".into()],
            may_write: vec![],
            may_reach: "nothing".to_owned(),
        };
        let file = FileView {
            path: odd(),
            content: Content::Text("x\u{202e}".to_owned()),
            size: 4,
        };
        let parts = vec![
            ("a".to_owned(), Presentation::Command(command)),
            ("b".to_owned(), Presentation::FileContent(file)),
            (
                "c".to_owned(),
                Presentation::Structured(vec![("k".to_owned(), "v".to_owned())]),
            ),
            ("d".to_owned(), Presentation::Diff("+x".to_owned())),
        ];
        let presentation = Presentation::Several(parts);
        let request = ApprovalRequest {
            payload: b"payload".to_vec(),
            group_id: Some("g".to_owned()),
            remember: Remember::Session,
            allowed_by: "a rule".to_owned(),
            why: vec!["agent.yaml:3".to_owned()],
            ..ApprovalRequest::new("shell", "run a command")
        };
        RequestMessage::of(&request, &presentation)
    }

    #[test]
    fn a_question_comes_back_as_it_was_sent() {
        let request_message = request_message();
        let json = request_message.json().unwrap();
        assert_eq!(json.iter().position(|byte| *byte == b'\n'), Some(json.len() - 1));
        assert_eq!(
            serde_json::from_slice::<RequestMessage>(&json).unwrap(),
            request_message
        );
        assert_eq!(request_message.fingerprint, Fingerprint::of(b"payload").to_string());
    }

    #[test]
    fn the_form_is_the_documented_one() {
        let json: serde_json::Value = serde_json::from_slice(&request_message().json().unwrap()).unwrap();
        assert_eq!(json["version"], 1);
        assert_eq!(json["tool"], "shell");
        assert_eq!(json["answer"], "anyone");
        assert_eq!(json["remember"], "session");
        let parts = &json["presentation"]["several"];
        assert_eq!(parts[0][1]["command"]["command"]["hex"], "6563686f20ff");
        assert_eq!(parts[0][1]["command"]["may_read"][1], "/r");
        assert_eq!(parts[1][1]["file_content"]["content"]["text"], "x\u{202e}");
    }

    #[test]
    fn a_question_that_is_too_large_is_not_sent() {
        let large = RequestMessage {
            presentation: Presentation::Text("x".repeat(MAX_BYTES)),
            ..request_message()
        };
        assert!(matches!(large.json(), Err(ApproverError::TooLarge)));
    }

    #[test]
    fn what_is_printed_of_it_moves_no_cursor() {
        let text = request_message().text(80);
        assert!(text.contains("\\u{202e}") && text.contains("/w/\\xff"), "{text}");
        assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text}");
        assert!(text.ends_with('\n') && !text.contains("\n\n"), "{text}");
    }
}
