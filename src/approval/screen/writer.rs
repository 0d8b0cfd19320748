//! Values → lines behind the bar, long values cut.
//!
//! A line break of the value differs from one for lack of room: after the former the line has a label, number or sign.

use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::highlight;
use super::layout::{Charset, Colour, Layout};
use super::line::{Edge, LABEL, Line, Part, Style};
use super::text::{Backslash, Break, break_lines, visible, wrap};

/// The most lines of a long value before it is cut.
pub(super) const MAX_LINES: usize = 50;
/// The same for a value that should be short.
pub(super) const MAX_SHORT_LINES: usize = 10;
/// The width of a sign before a line of a shell, with its blank.
const SIGN: usize = 2;
/// The label after a line break in the value.
const NEW_LINE: &str = "(new line)";

/// The most lines of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Lines(usize),
    Unlimited,
}

impl Room {
    /// The limit for a value that should be short, so that it cannot push the rest off the screen.
    pub(super) const fn at_most_few(self) -> Self {
        match self {
            Self::Lines(lines) if lines < MAX_SHORT_LINES => Self::Lines(lines),
            Self::Lines(_) => Self::Lines(MAX_SHORT_LINES),
            Self::Unlimited => Self::Unlimited,
        }
    }
}

/// The lines of a question, while they are written.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) layout: Layout,
    pub(super) backslash: Backslash,
    pub(super) lines: Vec<Line>,
    /// Whether something was left out.
    pub(super) cut: bool,
}

impl Writer {
    pub(super) const fn new(layout: Layout, backslash: Backslash) -> Self {
        Self {
            layout,
            backslash,
            lines: Vec::new(),
            cut: false,
        }
    }

    /// Stockade's own text; further lines have the edge `below`.
    pub(super) fn own_text(&mut self, edge: Edge, below: Edge, text: &str, style: Style) {
        let room = edge.room(self.layout).min(below.room(self.layout));
        for (index, text) in wrap(text, room).into_iter().enumerate() {
            self.lines.push(Line {
                edge: if index == 0 { edge } else { below },
                label: String::new(),
                text,
                style,
                parts: Vec::new(),
            });
        }
    }

    /// A labelled value.
    pub(super) fn field(&mut self, label: &str, value: &[u8], room: Room) {
        let mut lines = Vec::new();
        let mut label = label;
        for line in value.split(|byte| *byte == b'\n') {
            self.labelled(&mut lines, label, line);
            label = if label.is_empty() { "" } else { NEW_LINE };
        }
        self.push(lines, room);
    }

    /// A line for a shell, as a shell shows it: `$` before it, `>` before each further line of it.
    pub(super) fn line_of_shell(&mut self, line: &[u8], room: Room) {
        let mut lines = Vec::new();
        for (index, line) in line.split(|byte| *byte == b'\n').enumerate() {
            self.labelled_in(&mut lines, if index == 0 { "$" } else { ">" }, SIGN, line);
        }
        self.push(lines, room);
    }

    /// One path per line.
    pub(super) fn paths(&mut self, label: &str, paths: &[PathBuf], room: Room) {
        let mut lines = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            self.labelled(&mut lines, label, path.as_os_str().as_bytes());
        }
        self.push(lines, room);
    }

    /// The lines of a diff. A continued line starts with a sign that no line of a diff has, so a long line cannot look like
    /// two.
    pub(super) fn diff(&mut self, text: &str, room: Room) {
        let mut lines = Vec::new();
        for line in lines_of(text) {
            let (sign, rest) = match line.chars().next() {
                Some(sign @ ('+' | '-' | ' ' | '@' | '\\')) => (String::from(sign), line.get(1..).unwrap_or_default()),
                // Not a line of a diff: indented, so that it cannot look like a sign.
                Some(_) => ("  ".to_owned(), line),
                None => (String::new(), ""),
            };
            let style = match sign.as_str() {
                "+" => Style::Added,
                "-" => Style::Removed,
                "@" if line.starts_with("@@ ") => Style::Hunk,
                _ => Style::Plain,
            };
            let shown = sign + &self.indented(rest);
            let width = Edge::Side.room(self.layout) - 2;
            for (index, piece) in break_lines(&shown, width, Break::Anywhere).into_iter().enumerate() {
                lines.push(Line {
                    edge: Edge::Side,
                    label: if index == 0 { "" } else { "> " }.to_owned(),
                    text: piece.to_owned(),
                    style,
                    parts: Vec::new(),
                });
            }
        }
        self.push(lines, room);
    }

    /// The lines of the file at `path`, numbered, with its language in colour. A continued line has no number.
    pub(super) fn numbered(&mut self, path: &Path, text: &str, room: Room) {
        let digits = lines_of(text).count().to_string().len().max(3);
        let width = Edge::Side.room(self.layout).saturating_sub(digits + 1).max(8);
        let escaped: Vec<String> = lines_of(text).map(|line| self.indented(line)).collect();
        let seen = match room {
            Room::Lines(most) => escaped.get(..most).unwrap_or(&escaped),
            Room::Unlimited => &escaped,
        };
        let mut coloured = match self.layout.colour {
            Colour::On => highlight::parts(path, seen),
            Colour::Off => Vec::new(),
        }
        .into_iter();
        let mut lines = Vec::new();
        for (index, line) in escaped.iter().enumerate() {
            let parts = coloured.next().unwrap_or_default();
            let mut begin = 0;
            for piece in break_lines(line, width, Break::Anywhere) {
                let end = begin + piece.len();
                lines.push(Line {
                    edge: Edge::Side,
                    label: if begin == 0 {
                        format!("{:>digits$} ", index + 1)
                    } else {
                        format!("{:>digits$} ", ">")
                    },
                    text: piece.to_owned(),
                    style: Style::Plain,
                    parts: within(&parts, begin..end),
                });
                begin = end;
            }
        }
        self.push(lines, room);
    }

    /// A line that counts what was left out.
    pub(super) fn more(&mut self, count: usize, what: &str) {
        self.cut = true;
        let dots = match self.layout.charset {
            Charset::Ascii => "...",
            Charset::Unicode => "…",
        };
        let text = format!("{dots} [{count} more {what}]");
        self.own_text(Edge::Side, Edge::Side, &text, Style::Warning);
    }

    /// All lines as text.
    pub(super) fn render(&self) -> String {
        self.lines.iter().map(|line| line.render(self.layout)).collect()
    }

    fn push(&mut self, mut lines: Vec<Line>, room: Room) {
        let more = match room {
            Room::Lines(most) => lines.len().saturating_sub(most),
            Room::Unlimited => 0,
        };
        lines.truncate(lines.len() - more);
        self.lines.append(&mut lines);
        if more > 0 {
            self.more(more, "lines");
        }
    }

    /// The lines of one line of a value. A tab has no fixed width, so it becomes a blank.
    fn labelled(&self, lines: &mut Vec<Line>, label: &str, line: &[u8]) {
        self.labelled_in(lines, label, LABEL, line);
    }

    /// The same with a label of this width.
    fn labelled_in(&self, lines: &mut Vec<Line>, label: &str, width: usize, line: &[u8]) {
        let line: Vec<u8> = line
            .iter()
            .map(|byte| if *byte == b'\t' { b' ' } else { *byte })
            .collect();
        let shown = visible(&line, self.layout.charset, self.backslash);
        let room = Edge::Side.room(self.layout) - width;
        for (index, piece) in break_lines(&shown, room, Break::BeforeBlank).into_iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            lines.push(Line {
                edge: Edge::Side,
                label: format!("{label:<width$}"),
                text: piece.to_owned(),
                style: Style::Plain,
                parts: Vec::new(),
            });
        }
    }

    /// Escapes a line in which tabs indent.
    fn indented(&self, line: &str) -> String {
        visible(
            line.replace('\t', "    ").as_bytes(),
            self.layout.charset,
            self.backslash,
        )
    }
}

/// The parts of a piece of a line, counted from its beginning.
fn within(parts: &[Part], piece: Range<usize>) -> Vec<Part> {
    let clip = |(range, style): &Part| {
        let (start, end) = (range.start.max(piece.start), range.end.min(piece.end));
        (start < end).then(|| (start - piece.start..end - piece.start, *style))
    };
    parts.iter().filter_map(clip).collect()
}

/// The lines; the last may have no line break.
pub(super) fn lines_of(text: &str) -> std::str::Split<'_, char> {
    text.strip_suffix('\n').unwrap_or(text).split('\n')
}
