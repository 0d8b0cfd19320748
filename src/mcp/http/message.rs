//! The kind of a message, as far as limits depend on it; rmcp parses the rest.

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
    /// A notification, or an answer to a request of the server.
    OneWay,
}

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InvalidMessage {
    /// It is no JSON.
    NotJson,
    /// It is no JSON-RPC.
    NotRpc,
    /// It has too many values.
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
    pub(super) fn of(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        if too_many(bytes) {
            return Err(InvalidMessage::TooMany);
        }
        // serde would accept a list for `Head`.
        if bytes.trim_ascii_start().starts_with(b"[") {
            let read: Result<IgnoredAny, _> = serde_json::from_slice(bytes);
            return Err(read.map_or_else(|error| classify(&error), |_list| InvalidMessage::NotRpc));
        }
        let head: Head<'_> = serde_json::from_slice(bytes).map_err(|error| classify(&error))?;
        Ok(match (head.method.as_deref(), head.id) {
            (None, _) | (Some(_), None) => Self::OneWay,
            (Some("tools/call"), Some(_)) => Self::Call,
            (Some("subscriptions/listen"), Some(_)) => Self::Listen,
            (Some("initialize"), Some(_)) => Self::Initialize,
            (Some(_), Some(_)) => Self::Other,
        })
    }
}

fn classify(error: &serde_json::Error) -> InvalidMessage {
    match error.classify() {
        Category::Data => InvalidMessage::NotRpc,
        Category::Io | Category::Syntax | Category::Eof => InvalidMessage::NotJson,
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
            (r#"{"method":"tools/call"}"#, Message::OneWay),
            (r#"{"id":null,"method":"tools/call"}"#, Message::OneWay),
            (r#"{"id":1,"result":{"method":"tools/call"}}"#, Message::OneWay),
        ] {
            assert_eq!(Message::of(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_message_is_none() {
        for (text, expected) in [
            ("", InvalidMessage::NotJson),
            ("{", InvalidMessage::NotJson),
            ("hello", InvalidMessage::NotJson),
            (r#"{"id":1}{"id":2}"#, InvalidMessage::NotJson),
            ("[", InvalidMessage::NotJson),
            ("[]", InvalidMessage::NotRpc),
            (r#" ["initialize",1]"#, InvalidMessage::NotRpc),
            ("3", InvalidMessage::NotRpc),
            (r#"{"id":1,"method":3}"#, InvalidMessage::NotRpc),
            (
                r#"{"id":1,"method":"ping","method":"initialize"}"#,
                InvalidMessage::NotRpc,
            ),
        ] {
            assert_eq!(Message::of(text.as_bytes()), Err(expected), "{text}");
        }
        assert_eq!(
            Message::of(b"{\"id\":1,\"method\":\"\xff\"}"),
            Err(InvalidMessage::NotJson)
        );
    }
}
