//! The kind and id of a message, read byte by byte, so that messages that are never parsed can be answered too.

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::values::ValueCounter;

/// The longest id of a message, as it is written.
pub(super) const MAX_ID: usize = 4 * 1024;
/// The longest member name that matters here.
const MAX_NAME: usize = 6;

/// The code of a message that is no JSON.
pub(super) const PARSE_ERROR: i32 = -32700;
/// The code of JSON that is no message of the protocol.
pub(super) const INVALID_REQUEST: i32 = -32600;
/// The code of a request that was refused as busy. -32000 to -32019 are for servers.
pub(super) const BUSY: i32 = -32005;

/// A scanner of the members of the outermost object.
#[derive(Debug, Clone)]
pub(super) struct Head {
    values: ValueCounter,
    depth: usize,
    outermost: Outermost,
    position: Position,
    name: Vec<u8>,
    id: Option<Vec<u8>>,
    has_method: bool,
    has_result: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outermost {
    Object,
    Other,
}

/// The position of the next byte in the outermost object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Name,
    Id,
    Value,
}

/// The kind of a message, and its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request, and its id as written; `None` if the id is invalid.
    Request(Option<String>),
    /// A notification, which is never answered.
    Notification,
    /// An answer, and the id of its request.
    Answer(Option<String>),
    /// None of these.
    Other,
}

impl Head {
    /// A scanner at the start of a message.
    pub(super) const fn new() -> Self {
        Self {
            values: ValueCounter::new(),
            depth: 0,
            outermost: Outermost::Other,
            position: Position::Value,
            name: Vec::new(),
            id: None,
            has_method: false,
            has_result: false,
        }
    }

    /// Scans a text.
    pub(super) fn of(text: &[u8]) -> Self {
        let mut head = Self::new();
        for byte in text {
            head.take(*byte);
        }
        head
    }

    /// Scans a byte; returns whether there are too many values.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let quoted = self.values.is_in_string();
        let many = self.values.take(byte);
        if quoted || byte == b'"' {
            match (self.depth, self.position) {
                // Without the quotes.
                (1, Position::Name) if quoted && self.values.is_in_string() && self.name.len() <= MAX_NAME => {
                    self.name.push(byte);
                }
                (_, Position::Id) => self.keep(byte),
                _ => {}
            }
            return many;
        }
        match byte {
            b'{' | b'[' => {
                self.keep(byte);
                self.depth += 1;
                if self.depth == 1 && byte == b'{' {
                    (self.outermost, self.position) = (Outermost::Object, Position::Name);
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.position = Position::Value;
                }
                self.keep(byte);
            }
            b':' if self.depth == 1 && self.position == Position::Name => self.position = self.member(),
            b',' if self.depth == 1 && self.outermost == Outermost::Object => {
                self.position = Position::Name;
                self.name.clear();
            }
            _ => self.keep(byte),
        }
        many
    }

    fn member(&mut self) -> Position {
        match self.name.as_slice() {
            b"id" if self.id.is_none() => {
                self.id = Some(Vec::new());
                return Position::Id;
            }
            b"method" => self.has_method = true,
            b"result" | b"error" => self.has_result = true,
            _ => {}
        }
        Position::Value
    }

    fn keep(&mut self, byte: u8) {
        if self.position == Position::Id
            && let Some(id) = &mut self.id
            && id.len() <= MAX_ID
        {
            id.push(byte);
        }
    }

    /// The kind so far.
    pub(super) fn kind(&self) -> Kind {
        match (self.has_method, self.id.as_deref(), self.has_result) {
            (true, None, false) => Kind::Notification,
            (false, Some(id), true) => Kind::Answer(valid_id(id)),
            (true, Some(id), _) | (false, Some(id), false) => Kind::Request(valid_id(id)),
            (true, None, true) | (false, None, _) => Kind::Other,
        }
    }
}

/// The id, if it is valid.
fn valid_id(id: &[u8]) -> Option<String> {
    let id = id.trim_ascii();
    let is_one = matches!(id.first(), Some(b'"' | b'-' | b'0'..=b'9'))
        && id.len() <= MAX_ID
        // An id that not every parser accepts is not sent back.
        && serde_json::from_slice::<Value>(id).is_ok();
    let text = is_one.then(|| String::from_utf8(id.to_vec()).ok()).flatten();
    // No line break in an answer.
    text.filter(|text| !text.contains(['\n', '\r']))
}

/// A JSON-RPC error as a line, without its end.
pub(super) fn error_reply(id: Option<&str>, code: i32, why: &str) -> Vec<u8> {
    let error = match code {
        BUSY => json!({"code": code, "message": why, "data": {"retry": true}}),
        _ => json!({"code": code, "message": why}),
    };
    let id = id.unwrap_or("null");
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into_bytes()
}

/// The error for a text that is no message.
pub(super) fn error_of(text: &[u8], kind: &Kind) -> (i32, &'static str) {
    if serde_json::from_slice::<IgnoredAny>(text).is_err() {
        return (PARSE_ERROR, "Parse error: this is no JSON");
    }
    if std::str::from_utf8(text).is_err() {
        return (INVALID_REQUEST, "Invalid Request: the message is not UTF-8");
    }
    match kind {
        Kind::Request(None) => (
            INVALID_REQUEST,
            "Invalid Request: the id must be a string or a whole number, and not longer than 4096 bytes",
        ),
        Kind::Request(Some(_)) | Kind::Notification | Kind::Answer(_) | Kind::Other => (
            INVALID_REQUEST,
            "Invalid Request: this is no message of the protocol (numbers of ids fit 64 bits with a sign, no surrogate stands alone, \
             nothing is nested deeper than 100)",
        ),
    }
}

/// The id for an error reply; none if the text is no JSON.
pub(super) fn reply_id(kind: &Kind, code: i32) -> Option<&str> {
    match kind {
        Kind::Request(id) if code != PARSE_ERROR => id.as_deref(),
        Kind::Request(_) | Kind::Notification | Kind::Answer(_) | Kind::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(text: &str, kind: Kind) {
        assert_eq!((Head::of(text.as_bytes()).kind(), text), (kind, text));
    }

    fn request(id: &str) -> Kind {
        Kind::Request(Some(id.to_owned()))
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        is(r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#, request("7"));
        is(
            r#"{"method":"x","params":{"id":1,"a":["id",{"id":2}],"b":"\"id\":3"},"id" : "a,}:" }"#,
            request(r#""a,}:""#),
        );
        is(
            r#" {"id":18446744073709551616,"method":"x"}"#,
            request("18446744073709551616"),
        );
        is(r#"{"id":5,"method":"x","params":{"a":"\ud800"}"#, request("5"));
        is(r#"{"id":-1.5e3}"#, request("-1.5e3"));
    }

    #[test]
    fn what_is_no_id_is_none() {
        for id in [
            "null",
            "true",
            "[1]",
            "{\"a\":1}",
            "",
            "1 2",
            "\"a\"b",
            "1\u{a0}",
            "1e400",
            r#""\ud800""#,
        ] {
            is(&format!("{{\"id\":{id},\"method\":\"x\"}}"), Kind::Request(None));
        }
        let long = "1".repeat(MAX_ID + 1);
        is(&format!("{{\"method\":\"x\",\"id\":{long}}}"), Kind::Request(None));
        is(r#"[{"id":1,"method":"x"}]"#, Kind::Other);
        is(r#"{"ids":1,"idid":2}"#, Kind::Other);
    }

    #[test]
    fn notifications_and_answers_are_known_as_what_they_are() {
        is(r#"{"method":"x"}"#, Kind::Notification);
        is(
            r#"{"id":3,"result":{"method":"x"}}"#,
            Kind::Answer(Some("3".to_owned())),
        );
        is(r#"{"error":{},"id":"a"}"#, Kind::Answer(Some("\"a\"".to_owned())));
        is("{}", Kind::Other);
    }

    #[test]
    fn a_refusal_is_json_with_the_id_as_it_was_written() {
        let text = String::from_utf8(error_reply(Some("18446744073709551616"), BUSY, "later")).unwrap();
        assert!(text.contains("\"id\":18446744073709551616,"), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&read["error"]["code"], &read["error"]["data"]["retry"]),
            (&json!(BUSY), &json!(true))
        );
        let null_id: serde_json::Value = serde_json::from_slice(&error_reply(None, PARSE_ERROR, "no")).unwrap();
        assert_eq!(null_id["id"], serde_json::Value::Null);
    }
}
