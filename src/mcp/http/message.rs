//! What a message asks, as far as bounds depend on it; rmcp reads the rest.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;

use crate::mcp::values::too_many;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// A request to call a tool.
    Call,
    /// A request that stays open to listen.
    Listen,
    /// A request that begins a session.
    Initialize,
    /// Any other request.
    Other,
    /// A notification, or an answer to what the server asked.
    Notice,
}

/// What is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoMessage {
    /// It is no JSON.
    NotJson,
    /// It is no JSON-RPC.
    NotRpc,
    /// It has more values than anything that is parsed.
    TooMany,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(default)]
    id: Option<IgnoredAny>,
}

impl Message {
    /// The message that the bytes are.
    pub(super) fn of(bytes: &[u8]) -> Result<Self, NoMessage> {
        if too_many(bytes) {
            return Err(NoMessage::TooMany);
        }
        // A list would do for an object that is read by position.
        if bytes.trim_ascii_start().starts_with(b"[") {
            let read: Result<IgnoredAny, _> = serde_json::from_slice(bytes);
            return Err(read.map_or_else(|error| why(&error), |_list| NoMessage::NotRpc));
        }
        let head: Head<'_> = serde_json::from_slice(bytes).map_err(|error| why(&error))?;
        Ok(match (head.method.as_deref(), head.id) {
            (None, _) | (Some(_), None) => Self::Notice,
            (Some("tools/call"), Some(_)) => Self::Call,
            (Some("subscriptions/listen"), Some(_)) => Self::Listen,
            (Some("initialize"), Some(_)) => Self::Initialize,
            (Some(_), Some(_)) => Self::Other,
        })
    }
}

fn why(error: &serde_json::Error) -> NoMessage {
    match error.classify() {
        Category::Data => NoMessage::NotRpc,
        Category::Io | Category::Syntax | Category::Eof => NoMessage::NotJson,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_what_its_method_and_id_say() {
        for (text, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
                Message::Call,
            ),
            (r#"{"id":"a","method":"tools\/call"}"#, Message::Call),
            (r#"{"id":1,"method":"subscriptions/listen"}"#, Message::Listen),
            (r#"{"id":1,"method":"initialize"}"#, Message::Initialize),
            (r#"{"id":1,"method":"tools/list"}"#, Message::Other),
            (r#"{"method":"tools/call"}"#, Message::Notice),
            (r#"{"id":null,"method":"tools/call"}"#, Message::Notice),
            (r#"{"id":1,"result":{"method":"tools/call"}}"#, Message::Notice),
        ] {
            assert_eq!(Message::of(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_message_is_none() {
        for (text, expected) in [
            ("", NoMessage::NotJson),
            ("{", NoMessage::NotJson),
            ("hello", NoMessage::NotJson),
            (r#"{"id":1}{"id":2}"#, NoMessage::NotJson),
            ("[", NoMessage::NotJson),
            ("[]", NoMessage::NotRpc),
            (r#" ["initialize",1]"#, NoMessage::NotRpc),
            ("3", NoMessage::NotRpc),
            (r#"{"id":1,"method":3}"#, NoMessage::NotRpc),
            (r#"{"id":1,"method":"ping","method":"initialize"}"#, NoMessage::NotRpc),
        ] {
            assert_eq!(Message::of(text.as_bytes()), Err(expected), "{text}");
        }
        assert_eq!(Message::of(b"{\"id\":1,\"method\":\"\xff\"}"), Err(NoMessage::NotJson));
    }
}
