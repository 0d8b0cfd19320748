//! JSON in which every character can be seen: what could hide or reorder text is written as an escape.

use std::fmt::Write as _;

use serde::Serialize;

use super::error::ExportError;
use crate::policy::path::is_escaped;

/// The value, ending with a line break.
pub(super) fn lines(value: &impl Serialize) -> Result<String, ExportError> {
    let mut text = String::new();
    // Outside of strings, and where a string has its own escapes, there is nothing but plain ASCII and line breaks.
    for c in serde_json::to_string_pretty(value)?.chars() {
        if c != '\n' && is_escaped(c.encode_utf8(&mut [0; 4]).as_bytes()) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _infallible = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped_and_parse_back_the_same() {
        let text = "a\u{202e}b\u{2028}\u{e0041}\u{7f}\u{85}\n\"\\ é";
        let value = serde_json::json!({"k\u{200b}": [text, 1, null], "e": {}});
        let written = lines(&value).unwrap();
        assert!(!is_escaped(written.replace('\n', "").as_bytes()), "{written}");
        assert!(
            written.contains("\\u202e") && written.contains("\\udb40\\udc41") && written.contains(" é"),
            "{written}"
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
    }

    #[test]
    fn visible_text_is_as_serde_json_writes_it() {
        let value = serde_json::json!({"a": [1, [], {"b": "c d"}], "e": {}, "t": "\t"});
        assert_eq!(
            lines(&value).unwrap(),
            serde_json::to_string_pretty(&value).unwrap() + "\n"
        );
    }
}
