//! The text of a config, and spans in it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use super::scalar::Position;
use crate::policy::Origin;
use crate::policy::path::{display, escape};

/// Where a text came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceName {
    /// A file a person wrote.
    File(Arc<PathBuf>),
    /// A shipped preset.
    Preset(Arc<str>),
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.write_str(&display(path.as_os_str())),
            Self::Preset(name) => write!(f, "preset {name}"),
        }
    }
}

/// One text, kept for the messages that point into it.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it came from.
    pub name: SourceName,
    /// The text with every character that could hide or reorder others replaced one for one, so
    /// that lines and columns stay what they are to the parser.
    shown: Cow<'static, str>,
}

impl Source {
    /// The source, made safe to print.
    pub fn new(name: SourceName, text: &str) -> Arc<Self> {
        let mut rest = text.chars();
        let mut shown = String::with_capacity(text.len());
        while let Some(c) = rest.next() {
            // To YAML a carriage return alone ends a line.
            let ends = c == '\r' && !rest.as_str().starts_with('\n');
            shown.push(if ends { '\n' } else { harmless(c) });
        }
        let shown = Cow::Owned(shown);
        Arc::new(Self { name, shown })
    }

    /// The source of a preset, which a test holds to be safe to print.
    pub(crate) fn built_in(name: SourceName, text: &'static str) -> Arc<Self> {
        Arc::new(Self {
            name,
            shown: Cow::Borrowed(text),
        })
    }

    /// The text, safe to print.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The span that the parser reported.
    pub(crate) fn span(self: &Arc<Self>, at: Position) -> Span {
        Span {
            source: Arc::clone(self),
            line: at.line.max(1),
            column: at.column.max(1),
            length: at.length,
        }
    }

    /// The span of a line, without its indentation.
    pub fn line(self: &Arc<Self>, line: u64) -> Span {
        let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        let text = self.shown.lines().nth(index).unwrap_or_default();
        let count = |text: &str| u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        Span {
            source: Arc::clone(self),
            line,
            column: count(text).saturating_sub(count(text.trim_start())) + 1,
            length: count(text.trim()),
        }
    }

    /// The clause origin of a position.
    pub(crate) fn origin(&self, at: Position) -> Origin {
        let line = at.line.max(1);
        match &self.name {
            SourceName::File(file) => Origin::File {
                file: Arc::clone(file),
                line,
            },
            SourceName::Preset(name) => Origin::Preset {
                name: Arc::clone(name),
                line,
            },
        }
    }

    /// Whether the text is a shipped preset.
    pub fn is_preset(&self) -> bool {
        matches!(self.name, SourceName::Preset(_))
    }
}

/// The character itself if it shows as itself, else a replacement of the same width in columns.
fn harmless(c: char) -> char {
    // A fast path for nearly every character.
    if c == '\n' || c == ' ' || c.is_ascii_graphic() {
        return c;
    }
    let mut bytes = [0; 4];
    let text: &str = c.encode_utf8(&mut bytes);
    if escape(text.as_bytes()) == text {
        c
    } else if c == '\t' || c == '\r' {
        ' '
    } else {
        char::REPLACEMENT_CHARACTER
    }
}

/// A span of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The text.
    pub source: Arc<Source>,
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// How many characters it is long; 0 where only the start is known.
    pub length: u64,
}

impl Span {
    /// The byte range in [`Source::shown`], at least one character long and within one line.
    pub fn range(&self) -> Range<usize> {
        let text = self.source.shown();
        let skip = usize::try_from(self.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let column = usize::try_from(self.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let length = usize::try_from(self.length).unwrap_or(usize::MAX).max(1);
        let Some(line) = text.split_inclusive('\n').nth(skip) else {
            return text.len()..text.len();
        };
        let line_start = line.as_ptr().addr() - text.as_ptr().addr();
        let line = line.trim_end_matches('\n');
        let byte_of = |chars: usize| line.char_indices().nth(chars).map_or(line.len(), |(at, _)| at);
        let start = byte_of(column);
        let end = byte_of(column.saturating_add(length)).max(start);
        line_start + start..line_start + end
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Span", 4)?;
        fields.serialize_field("source", &self.source.name.to_string())?;
        fields.serialize_field("line", &self.line)?;
        fields.serialize_field("column", &self.column)?;
        fields.serialize_field("length", &self.length)?;
        fields.end()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.source.name, self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(text: &str, line: u64, column: u64, length: u64) -> Span {
        Span {
            source: Source::new(SourceName::Preset("t".into()), text),
            line,
            column,
            length,
        }
    }

    #[test]
    fn a_range_counts_characters_not_bytes() {
        let at = span("é: ü\nx: ö y\n", 2, 4, 1);
        assert_eq!(&at.source.shown()[at.range()], "ö");
    }

    #[test]
    fn a_range_ends_with_its_line() {
        let at = span("ab\ncd\n", 1, 2, 99);
        assert_eq!(&at.source.shown()[at.range()], "b");
    }

    #[test]
    fn a_place_past_the_end_is_the_end() {
        assert!(span("ab", 7, 1, 1).range().is_empty());
        assert!(span("ab", 1, 70, 1).range().is_empty());
    }

    #[test]
    fn a_carriage_return_ends_a_line_as_it_does_to_the_parser() {
        let at = span("a: 1\rb: 2\r\nc: 3\n", 3, 4, 1);
        assert_eq!(&at.source.shown()[at.range()], "3");
    }

    #[test]
    fn a_text_that_reorders_is_shown_harmless() {
        let source = Source::new(SourceName::Preset("t".into()), "a\u{202e}b\u{1b}[2J\tc");
        assert_eq!(source.shown(), "a\u{fffd}b\u{fffd}[2J c");
    }
}
