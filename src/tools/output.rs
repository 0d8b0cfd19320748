//! The result of a call.

use serde::Serialize;
use serde_json::Value;

/// The result of a call, for the agent and for programs.
///
/// [`ToolSet::call`](crate::ToolSet::call) returns it. A tool of your own makes one.
///
/// ```
/// use serde_json::json;
/// use stockade::{Output, OutputEnd, Picture};
///
/// let mut output = Output::new(OutputEnd::Done, "a chart".to_owned(), json!({"bars": 3}));
/// output.pictures.push(Picture { mime_type: "image/png".to_owned(), base64: "iVBORw0KGgo=".to_owned() });
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Output {
    /// Whether the call succeeded.
    pub end: OutputEnd,
    /// The result as text, for the agent and for people.
    pub text: String,
    /// The result as JSON, for programs. That of a command is an [`Outcome`](crate::Outcome).
    pub data: Value,
    /// The pictures that belong to the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
}

impl Output {
    /// A result without pictures.
    pub const fn new(end: OutputEnd, text: String, data: Value) -> Self {
        Self {
            end,
            text,
            data,
            pictures: Vec::new(),
        }
    }
}

/// A picture in the result of a call.
///
/// Part of an [`Output`]; the example there makes one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Picture {
    /// The media type: `image/png`.
    pub mime_type: String,
    /// The bytes in base64, with padding (RFC 4648, section 4).
    pub base64: String,
}

/// Whether a call succeeded.
///
/// Part of an [`Output`]; the example there has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputEnd {
    /// The call succeeded.
    Done,
    /// The call ran and failed: a command with an exit code other than 0, or one that was killed.
    Failed,
}
