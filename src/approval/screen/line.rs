//! One line of the screen: an edge that only Stockade draws, a label, and text that was made harmless.

use super::look::{Colour, Letters, Look};
use super::text::{columns_of, width};

/// How wide a label and its padding are.
pub(super) const LABEL: usize = 11;

/// What a line begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// The first line.
    Top,
    /// What was asked about.
    Side,
    /// What may be answered.
    Bottom,
    /// More of that.
    Below,
}

/// What a line is, for its colour. Never taken from what the text says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tint {
    Plain,
    Strong,
    Warning,
    Added,
    Removed,
    Place,
}

/// A line that fits the screen it was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) edge: Edge,
    pub(super) label: String,
    pub(super) text: String,
    pub(super) tint: Tint,
}

const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

impl Edge {
    const fn drawn(self, letters: Letters) -> &'static str {
        match (self, letters) {
            (Self::Top | Self::Bottom, Letters::Ascii) => "+-- ",
            (Self::Side, Letters::Ascii) => "| ",
            (Self::Below, Letters::Ascii) => "    ",
            (Self::Top, Letters::Unicode) => "╭─ ",
            (Self::Side, Letters::Unicode) => "│ ",
            (Self::Bottom, Letters::Unicode) => "╰─ ",
            (Self::Below, Letters::Unicode) => "   ",
        }
    }

    /// How many columns are left behind it. The last one stays free: a terminal may break a line that fills it.
    pub(super) fn room(self, look: Look) -> usize {
        look.columns.saturating_sub(1 + width(self.drawn(look.letters)))
    }
}

impl Tint {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\x1b[1m",
            Self::Warning => "\x1b[1;33m",
            Self::Added => "\x1b[32m",
            Self::Removed => "\x1b[31m",
            Self::Place => "\x1b[36m",
        }
    }
}

impl Line {
    /// With its end.
    pub(super) fn drawn(&self, look: Look) -> String {
        let edge = self.edge.drawn(look.letters);
        let rule = match self.edge {
            Edge::Top => self.rule(look),
            Edge::Side | Edge::Bottom | Edge::Below => String::new(),
        };
        let in_colour = |code: &str, text: &str| match (look.colour, code, text) {
            (Colour::Off, ..) | (Colour::On, "", _) | (Colour::On, _, "") => text.to_owned(),
            (Colour::On, code, text) => format!("{code}{text}{RESET}"),
        };
        let before = in_colour(DIM, &format!("{edge}{}", self.label));
        let text = in_colour(self.tint.code(), &self.text);
        format!("{before}{text}{}\n", in_colour(DIM, &rule))
    }

    /// What fills the first line, so that it is found when one scrolls back.
    fn rule(&self, look: Look) -> String {
        let (blank, stroke) = match look.letters {
            Letters::Ascii => (' ', '-'),
            Letters::Unicode => (' ', '─'),
        };
        let free = self.edge.room(look).saturating_sub(width(&self.text) + 1);
        let strokes = free.min(60) / columns_of(stroke);
        std::iter::once(blank)
            .chain(std::iter::repeat_n(stroke, strokes))
            .collect()
    }
}
