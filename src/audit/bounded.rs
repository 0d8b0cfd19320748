//! Bounded text: the beginning of a long text, with its length and hash.

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::policy::hex::hex;
use crate::policy::path::{escape, is_escaped};

/// The most bytes of one text.
pub const MOST_BYTES: usize = 4 << 10;
/// The deepest nesting.
const MOST_DEEP: usize = 32;
/// The most bytes of all arguments of a call.
const MOST_OF_A_VALUE: usize = 64 << 10;

/// A bounded text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Text {
    /// All of it.
    Full(String),
    /// Its beginning.
    Cut {
        /// The first bytes, as text.
        text: String,
        /// How many bytes there were.
        bytes: u64,
        /// The hash of all of them.
        sha256: String,
    },
}

impl Text {
    /// A text.
    pub fn of(text: &str) -> Self {
        Self::within(text, MOST_BYTES)
    }

    /// A text, cut to this many bytes.
    pub fn within(text: &str, most: usize) -> Self {
        if text.len() <= most {
            return Self::Full(text.to_owned());
        }
        let end = text.floor_char_boundary(most);
        Self::Cut {
            text: text.get(..end).unwrap_or_default().to_owned(),
            bytes: text.len() as u64,
            sha256: sha256(text.as_bytes()),
        }
    }

    /// Arbitrary bytes, escaped.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) if !is_escaped(bytes) => Self::of(text),
            Ok(_) | Err(_) if bytes.len() <= MOST_BYTES => Self::Full(escape(bytes)),
            Ok(_) | Err(_) => Self::Cut {
                text: escape(bytes.get(..MOST_BYTES).unwrap_or_default()),
                bytes: bytes.len() as u64,
                sha256: sha256(bytes),
            },
        }
    }
}

/// SHA-256 in hexadecimal, as `sha256sum` prints it.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A JSON value with bounded texts; one cut text if it is still too large.
pub fn bounded(value: &Value) -> Value {
    let small = cut(value, MOST_DEEP);
    let written = small.to_string();
    if written.len() <= MOST_OF_A_VALUE {
        return small;
    }
    text(&value.to_string())
}

fn cut(value: &Value, deep: usize) -> Value {
    match value {
        // Nested too deep.
        Value::Array(_) | Value::Object(_) if deep == 0 => text(&value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(written) => text(written),
        Value::Array(items) => items.iter().map(|item| cut(item, deep - 1)).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), cut(value, deep - 1)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

fn text(written: &str) -> Value {
    match Text::of(written) {
        Text::Full(text) => Value::String(text),
        Text::Cut { text, bytes, sha256 } => serde_json::json!({"text": text, "bytes": bytes, "sha256": sha256}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_its_length_and_its_hash() {
        let long = "é".repeat(3000);
        let Text::Cut { text, bytes, sha256 } = Text::of(&long) else {
            panic!("it was kept whole");
        };
        assert_eq!((text.len(), bytes), (MOST_BYTES, 6000));
        assert_eq!(sha256, super::sha256(long.as_bytes()));
        assert_eq!(Text::of("short"), Text::Full("short".to_owned()));
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_escapes() {
        assert_eq!(
            Text::of_bytes(b"a\xff\x1b[2J"),
            Text::Full("a\\xff\\u{1b}[2J".to_owned())
        );
        let Text::Cut { bytes, .. } = Text::of_bytes(&[0xff; 5000]) else {
            panic!("it was kept whole");
        };
        assert_eq!(bytes, 5000);
    }

    #[test]
    fn what_lies_deep_is_kept_as_text() {
        let mut deep = Value::from(7);
        for _ in 0..100 {
            deep = Value::from(vec![deep]);
        }
        let small = bounded(&deep).to_string();
        let (open, close) = ("[".repeat(32), "]".repeat(32));
        assert_eq!(
            small,
            format!("{open}\"{0}7{1}\"{close}", "[".repeat(68), "]".repeat(68))
        );
    }

    #[test]
    fn the_texts_in_a_value_are_cut_and_the_rest_of_it_stays() {
        let value = serde_json::json!({"path": "a", "content": "x".repeat(1 << 20), "list": [1, null]});
        let small = bounded(&value);
        assert_eq!(small["path"], "a");
        assert_eq!(small["content"]["bytes"], 1 << 20);
        assert_eq!(small["list"], serde_json::json!([1, null]));
        let many: Value = (0..100_000).map(Value::from).collect();
        let small = bounded(&many);
        assert_eq!(small["bytes"], many.to_string().len());
    }
}
