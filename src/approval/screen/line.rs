//! One line of the screen: an edge that only Stockade draws, a label, and escaped text.

use std::ops::Range;

use super::layout::{Charset, Colour, Layout};
use super::text::{columns_of, is_mark, width};

/// The width of a label with its padding.
pub(super) const LABEL: usize = 11;

/// The beginning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// The first line.
    Top,
    /// Content.
    Side,
    /// The line of answers.
    Bottom,
    /// Its continuation.
    Below,
}

/// The colour of a line. It never depends on escape sequences in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Strong,
    Warning,
    Added,
    Removed,
    Hunk,
    Comment,
    Quoted,
    Constant,
    Keyword,
}

/// A part of a line, and its colour.
pub(super) type Part = (Range<usize>, Style);

/// A line that fits the screen it was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) edge: Edge,
    pub(super) label: String,
    pub(super) text: String,
    pub(super) style: Style,
    /// The styles of its parts, in their order, where they differ.
    pub(super) parts: Vec<Part>,
}

const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

impl Edge {
    const fn render(self, charset: Charset) -> &'static str {
        match (self, charset) {
            (Self::Top | Self::Bottom, Charset::Ascii) => "+-- ",
            (Self::Side, Charset::Ascii) => "| ",
            (Self::Below, Charset::Ascii) => "    ",
            (Self::Top, Charset::Unicode) => "╭─ ",
            (Self::Side, Charset::Unicode) => "│ ",
            (Self::Bottom, Charset::Unicode) => "╰─ ",
            (Self::Below, Charset::Unicode) => "   ",
        }
    }

    /// The columns left for text. The last one stays free: a terminal may break a line that fills it.
    pub(super) fn room(self, layout: Layout) -> usize {
        layout.columns.saturating_sub(1 + width(self.render(layout.charset)))
    }
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\x1b[1m",
            Self::Warning => "\x1b[1;33m",
            Self::Added | Self::Quoted => "\x1b[32m",
            Self::Removed => "\x1b[31m",
            Self::Hunk | Self::Comment => "\x1b[36m",
            Self::Constant => "\x1b[33m",
            Self::Keyword => "\x1b[35m",
        }
    }
}

impl Line {
    /// The line with its line break.
    pub(super) fn render(&self, layout: Layout) -> String {
        let edge = self.edge.render(layout.charset);
        let rule = match self.edge {
            Edge::Top => self.rule(layout),
            Edge::Side | Edge::Bottom | Edge::Below => String::new(),
        };
        let in_colour = |code: &str, text: &str| match (layout.colour, code, text) {
            (Colour::Off, ..) | (Colour::On, "", _) | (Colour::On, _, "") => text.to_owned(),
            (Colour::On, code, text) => format!("{code}{text}{RESET}"),
        };
        let before = in_colour(DIM, &format!("{edge}{}", self.label));
        let in_parts = self.in_parts(in_colour);
        let text = in_parts.unwrap_or_else(|| in_colour(self.style.code(), &self.text));
        format!("{before}{text}{}\n", in_colour(DIM, &rule))
    }

    /// The text with each part in its colour, if the parts are those of the text.
    fn in_parts(&self, in_colour: impl Fn(&str, &str) -> String) -> Option<String> {
        let mut rest = 0;
        let mut shown = String::new();
        for (range, style) in &self.parts {
            let part = self.text.get(range.clone())?;
            // No colour begins between a letter and its mark.
            if range.start != rest || part.starts_with(is_mark) {
                return None;
            }
            shown.push_str(&in_colour(style.code(), part));
            rest = range.end;
        }
        (!self.parts.is_empty() && rest == self.text.len()).then_some(shown)
    }

    /// The rule that fills the first line, so that it is found when scrolling back.
    fn rule(&self, layout: Layout) -> String {
        let (blank, stroke) = match layout.charset {
            Charset::Ascii => (' ', '-'),
            Charset::Unicode => (' ', '─'),
        };
        let free = self.edge.room(layout).saturating_sub(width(&self.text) + 1);
        let strokes = free.min(60) / columns_of(stroke);
        std::iter::once(blank)
            .chain(std::iter::repeat_n(stroke, strokes))
            .collect()
    }
}
