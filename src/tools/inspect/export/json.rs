//! JSON in which every character can be seen: what could hide or reorder text is written as an escape.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};

use super::ExportError;
use crate::policy::path::is_escaped;

/// The value, ending with a line break.
pub(super) fn lines(value: &impl Serialize) -> Result<String, ExportError> {
    let mut bytes = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(
        &mut bytes,
        Visible::default(),
    ))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(|error| serde_json::Error::io(io::Error::other(error)).into())
}

/// [`PrettyFormatter`] but for what strings look like.
#[derive(Default)]
struct Visible(PrettyFormatter<'static>);

impl Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        for c in fragment.chars() {
            let mut buffer = [0; 4];
            let text = c.encode_utf8(&mut buffer);
            if is_escaped(text.as_bytes()) {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            } else {
                writer.write_all(text.as_bytes())?;
            }
        }
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        self.0.write_char_escape(writer, escape)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_escaped_and_reads_back_the_same() {
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
    fn what_can_be_seen_is_as_serde_json_writes_it() {
        let value = serde_json::json!({"a": [1, [], {"b": "c d"}], "e": {}, "t": "\t"});
        assert_eq!(
            lines(&value).unwrap(),
            serde_json::to_string_pretty(&value).unwrap() + "\n"
        );
    }
}
