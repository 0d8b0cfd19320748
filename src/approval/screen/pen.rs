//! Values → lines behind the bar, each value cut where it is long.
//!
//! A line that ends in the value itself is told from one that was broken: what the value begins anew says so in its
//! label, or has a number or a sign of its own.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::line::{Edge, LABEL, Line, Tint};
use super::look::{Letters, Look};
use super::text::{Backslash, Break, broken, visible, wrapped};

/// How many lines of something long are shown at first.
pub(super) const HEAD: usize = 50;
/// How many lines of what should be short are.
pub(super) const FEW: usize = 10;
/// Stands before a line that the value itself begins.
const NEW_LINE: &str = "(new line)";

/// How many lines of something are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Lines(usize),
    Whole,
}

impl Room {
    /// For what should be short, and must not push the rest off the screen.
    pub(super) const fn few(self) -> Self {
        match self {
            Self::Lines(lines) if lines < FEW => Self::Lines(lines),
            Self::Lines(_) => Self::Lines(FEW),
            Self::Whole => Self::Whole,
        }
    }
}

/// Writes lines.
#[derive(Debug)]
pub(super) struct Pen {
    pub(super) look: Look,
    pub(super) backslash: Backslash,
    pub(super) lines: Vec<Line>,
    /// Whether something was left out.
    pub(super) cut: bool,
}

impl Pen {
    pub(super) const fn new(look: Look, backslash: Backslash) -> Self {
        Self {
            look,
            backslash,
            lines: Vec::new(),
            cut: false,
        }
    }

    /// Text of Stockade's own; what does not fit goes on under `below`.
    pub(super) fn own(&mut self, edge: Edge, below: Edge, text: &str, tint: Tint) {
        let room = edge.room(self.look).min(below.room(self.look));
        for (index, text) in wrapped(text, room).into_iter().enumerate() {
            self.lines.push(Line {
                edge: if index == 0 { edge } else { below },
                label: String::new(),
                text,
                tint,
            });
        }
    }

    /// A labelled value.
    pub(super) fn field(&mut self, label: &str, value: &[u8], room: Room) {
        let mut lines = Vec::new();
        let mut label = label;
        for line in value.split(|byte| *byte == b'\n') {
            self.labelled(&mut lines, label, line);
            // Where a line is only broken, the label stays empty.
            label = if label.is_empty() { "" } else { NEW_LINE };
        }
        self.put(lines, room);
    }

    /// One path a line; nothing where there are none.
    pub(super) fn paths(&mut self, label: &str, paths: &[PathBuf], room: Room) {
        let mut lines = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            self.labelled(&mut lines, label, path.as_os_str().as_bytes());
        }
        self.put(lines, room);
    }

    /// The lines of a change. What goes on in the next line stands behind a sign that no line of a change begins
    /// with, so that a long line cannot pass for two.
    pub(super) fn change(&mut self, text: &str, room: Room) {
        let mut lines = Vec::new();
        for line in lines_of(text) {
            let (sign, rest) = match line.chars().next() {
                Some(sign @ ('+' | '-' | ' ' | '@' | '\\')) => (String::from(sign), line.get(1..).unwrap_or_default()),
                // Not of a change at all: never where a label could stand.
                Some(_) => ("  ".to_owned(), line),
                None => (String::new(), ""),
            };
            let tint = match sign.as_str() {
                "+" => Tint::Added,
                "-" => Tint::Removed,
                "@" if line.starts_with("@@ ") => Tint::Place,
                _ => Tint::Plain,
            };
            let shown = sign + &self.indented(rest);
            let width = Edge::Side.room(self.look) - 2;
            for (index, piece) in broken(&shown, width, Break::Anywhere).into_iter().enumerate() {
                lines.push(Line {
                    edge: Edge::Side,
                    label: if index == 0 { "" } else { "> " }.to_owned(),
                    text: piece.to_owned(),
                    tint,
                });
            }
        }
        self.put(lines, room);
    }

    /// The lines of a file, numbered. What goes on in the next line has no number.
    pub(super) fn numbered(&mut self, text: &str, room: Room) {
        let digits = lines_of(text).count().to_string().len().max(3);
        let width = Edge::Side.room(self.look).saturating_sub(digits + 1).max(8);
        let mut lines = Vec::new();
        for (index, line) in lines_of(text).enumerate() {
            for (piece_index, piece) in broken(&self.indented(line), width, Break::Anywhere)
                .into_iter()
                .enumerate()
            {
                lines.push(Line {
                    edge: Edge::Side,
                    label: if piece_index == 0 {
                        format!("{:>digits$} ", index + 1)
                    } else {
                        format!("{:>digits$} ", ">")
                    },
                    text: piece.to_owned(),
                    tint: Tint::Plain,
                });
            }
        }
        self.put(lines, room);
    }

    /// That there are more of something.
    pub(super) fn more(&mut self, count: usize, what: &str) {
        self.cut = true;
        let dots = match self.look.letters {
            Letters::Ascii => "...",
            Letters::Unicode => "…",
        };
        let text = format!("{dots} [{count} more {what}]");
        self.own(Edge::Side, Edge::Side, &text, Tint::Warning);
    }

    /// Everything that was written, as text.
    pub(super) fn drawn(&self) -> String {
        self.lines.iter().map(|line| line.drawn(self.look)).collect()
    }

    fn put(&mut self, mut lines: Vec<Line>, room: Room) {
        let more = match room {
            Room::Lines(most) => lines.len().saturating_sub(most),
            Room::Whole => 0,
        };
        lines.truncate(lines.len() - more);
        self.lines.append(&mut lines);
        if more > 0 {
            self.more(more, "lines");
        }
    }

    /// A tab is a blank of unknown width.
    fn labelled(&self, lines: &mut Vec<Line>, label: &str, line: &[u8]) {
        let line: Vec<u8> = line
            .iter()
            .map(|byte| if *byte == b'\t' { b' ' } else { *byte })
            .collect();
        let shown = visible(&line, self.look.letters, self.backslash);
        let room = Edge::Side.room(self.look) - LABEL;
        for (index, piece) in broken(&shown, room, Break::BeforeBlank).into_iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            lines.push(Line {
                edge: Edge::Side,
                label: format!("{label:<LABEL$}"),
                text: piece.to_owned(),
                tint: Tint::Plain,
            });
        }
    }

    /// Of a text in which tabs indent.
    fn indented(&self, line: &str) -> String {
        visible(line.replace('\t', "    ").as_bytes(), self.look.letters, self.backslash)
    }
}

/// The last line may lack its end.
pub(super) fn lines_of(text: &str) -> std::str::Split<'_, char> {
    text.strip_suffix('\n').unwrap_or(text).split('\n')
}
