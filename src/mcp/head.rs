//! What a message says of itself, told while its bytes come: what it is, and its id. So what is never parsed is answered too.

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::values::Values;

/// The longest id of a message, as it is written.
pub(super) const LONGEST_ID: usize = 4 * 1024;
/// The longest name of a member that says something here.
const LONGEST_NAME: usize = 6;

/// The code of a message that is no JSON.
pub(super) const NO_JSON: i32 = -32700;
/// The code of JSON that is no message of the protocol.
pub(super) const NO_MESSAGE: i32 = -32600;
/// The code of a request that finds the server full; nothing of it has been done. Those from -32000 to -32019 are a server's own.
pub(super) const BUSY: i32 = -32005;

/// Reads the members of the outermost object, and keeps what it needs of them.
#[derive(Debug, Clone)]
pub(super) struct Head {
    values: Values,
    depth: usize,
    outermost: Outermost,
    at: At,
    name: Vec<u8>,
    id: Option<Vec<u8>>,
    has_method: bool,
    has_answer: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outermost {
    Object,
    Other,
}

/// Where in the outermost object the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Name,
    Id,
    Value,
}

/// What a message is, and whose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request, and its id as it is written; `None` where nothing can be answered to it by name.
    Request(Option<String>),
    /// A notification, which is never answered.
    Notification,
    /// An answer to what was asked, and the id of that.
    Answer(Option<String>),
    /// Nothing of that.
    Neither,
}

impl Head {
    /// Nothing read yet.
    pub(super) const fn new() -> Self {
        Self {
            values: Values::none(),
            depth: 0,
            outermost: Outermost::Other,
            at: At::Value,
            name: Vec::new(),
            id: None,
            has_method: false,
            has_answer: false,
        }
    }

    /// That of a whole text.
    pub(super) fn of(text: &[u8]) -> Self {
        let mut head = Self::new();
        for byte in text {
            head.take(*byte);
        }
        head
    }

    /// Reads on; whether there are more values by now than anything has that is parsed.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let quoted = self.values.is_in_string();
        let many = self.values.take(byte);
        if quoted || byte == b'"' {
            match (self.depth, self.at) {
                // The quotes themselves are no part of it.
                (1, At::Name) if quoted && self.values.is_in_string() && self.name.len() <= LONGEST_NAME => {
                    self.name.push(byte);
                }
                (_, At::Id) => self.keep(byte),
                _ => {}
            }
            return many;
        }
        match byte {
            b'{' | b'[' => {
                self.keep(byte);
                self.depth += 1;
                if self.depth == 1 && byte == b'{' {
                    (self.outermost, self.at) = (Outermost::Object, At::Name);
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.at = At::Value;
                }
                self.keep(byte);
            }
            b':' if self.depth == 1 && self.at == At::Name => self.at = self.named(),
            b',' if self.depth == 1 && self.outermost == Outermost::Object => {
                self.at = At::Name;
                self.name.clear();
            }
            _ => self.keep(byte),
        }
        many
    }

    fn named(&mut self) -> At {
        match self.name.as_slice() {
            b"id" if self.id.is_none() => {
                self.id = Some(Vec::new());
                return At::Id;
            }
            b"method" => self.has_method = true,
            b"result" | b"error" => self.has_answer = true,
            _ => {}
        }
        At::Value
    }

    fn keep(&mut self, byte: u8) {
        if self.at == At::Id
            && let Some(id) = &mut self.id
            && id.len() <= LONGEST_ID
        {
            id.push(byte);
        }
    }

    /// What has been read.
    pub(super) fn kind(&self) -> Kind {
        match (self.has_method, self.id.as_deref(), self.has_answer) {
            (true, None, false) => Kind::Notification,
            (false, Some(id), true) => Kind::Answer(written(id)),
            (true, Some(id), _) | (false, Some(id), false) => Kind::Request(written(id)),
            (true, None, true) | (false, None, _) => Kind::Neither,
        }
    }
}

/// An id, if it is one.
fn written(id: &[u8]) -> Option<String> {
    let id = id.trim_ascii();
    let is_one = matches!(id.first(), Some(b'"' | b'-' | b'0'..=b'9'))
        && id.len() <= LONGEST_ID
        // What not every parser reads is not sent.
        && serde_json::from_slice::<Value>(id).is_ok();
    let text = is_one.then(|| String::from_utf8(id.to_vec()).ok()).flatten();
    // A line stays one.
    text.filter(|text| !text.contains(['\n', '\r']))
}

/// An error in answer to what is never handed on, without the end of its line.
pub(super) fn refusal(id: Option<&str>, code: i32, why: &str) -> Vec<u8> {
    let error = match code {
        BUSY => json!({"code": code, "message": why, "data": {"retry": true}}),
        _ => json!({"code": code, "message": why}),
    };
    let id = id.unwrap_or("null");
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into_bytes()
}

/// What is wrong with a text that is no message of the protocol.
pub(super) fn fault(text: &[u8], kind: &Kind) -> (i32, &'static str) {
    if serde_json::from_slice::<IgnoredAny>(text).is_err() {
        return (NO_JSON, "Parse error: this is no JSON");
    }
    if std::str::from_utf8(text).is_err() {
        return (NO_MESSAGE, "Invalid Request: the message is not UTF-8");
    }
    match kind {
        Kind::Request(None) => (
            NO_MESSAGE,
            "Invalid Request: the id must be a string or a whole number, and not longer than 4096 bytes",
        ),
        Kind::Request(Some(_)) | Kind::Notification | Kind::Answer(_) | Kind::Neither => (
            NO_MESSAGE,
            "Invalid Request: this is no message of the protocol (numbers of ids fit 64 bits with a sign, no surrogate stands alone, \
             nothing is nested deeper than 100)",
        ),
    }
}

/// The id that an error in answer to this bears: none where the text is no JSON, for then nothing in it is sure.
pub(super) fn answered(kind: &Kind, code: i32) -> Option<&str> {
    match kind {
        Kind::Request(id) if code != NO_JSON => id.as_deref(),
        Kind::Request(_) | Kind::Notification | Kind::Answer(_) | Kind::Neither => None,
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
        let long = "1".repeat(LONGEST_ID + 1);
        is(&format!("{{\"method\":\"x\",\"id\":{long}}}"), Kind::Request(None));
        is(r#"[{"id":1,"method":"x"}]"#, Kind::Neither);
        is(r#"{"ids":1,"idid":2}"#, Kind::Neither);
    }

    #[test]
    fn notifications_and_answers_are_known_as_what_they_are() {
        is(r#"{"method":"x"}"#, Kind::Notification);
        is(
            r#"{"id":3,"result":{"method":"x"}}"#,
            Kind::Answer(Some("3".to_owned())),
        );
        is(r#"{"error":{},"id":"a"}"#, Kind::Answer(Some("\"a\"".to_owned())));
        is("{}", Kind::Neither);
    }

    #[test]
    fn a_refusal_is_json_with_the_id_as_it_was_written() {
        let text = String::from_utf8(refusal(Some("18446744073709551616"), BUSY, "later")).unwrap();
        assert!(text.contains("\"id\":18446744073709551616,"), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&read["error"]["code"], &read["error"]["data"]["retry"]),
            (&json!(BUSY), &json!(true))
        );
        let none: serde_json::Value = serde_json::from_slice(&refusal(None, NO_JSON, "no")).unwrap();
        assert_eq!(none["id"], serde_json::Value::Null);
    }
}
