//! The lines of each kind of presentation.

use super::line::{Edge, Style};
use super::text::regime_text;
use super::writer::{MAX_LINES, Room, Writer, lines_of};
use crate::approval::request::{CommandView, Content, FileView, Presentation};

/// The fewest lines of a part.
const MIN_LINES: usize = 4;

impl Writer {
    pub(super) fn present(&mut self, presentation: &Presentation, room: Room) {
        match presentation {
            Presentation::Text(text) => self.field("", text.as_bytes(), room),
            Presentation::Diff(text) => self.diff(text, room),
            Presentation::Command(view) => self.command(view, room),
            Presentation::FileContent(view) => self.file(view, room),
            Presentation::Structured(fields) => self.arguments(fields, room),
            Presentation::Several(parts) => self.parts(parts, room),
        }
    }

    fn command(&mut self, view: &CommandView, room: Room) {
        self.field("command", &view.command, room);
        self.paths("directory", std::slice::from_ref(&view.directory), room.at_most_few());
        self.paths("program", &view.programs, room.at_most_few());
        self.paths("writable", &view.writable_programs, room);
        // What a yes permits is cut as late as possible.
        let full = match room {
            Room::Lines(_) => Room::Lines(MAX_LINES),
            Room::Unlimited => Room::Unlimited,
        };
        self.field(
            "regime",
            regime_text(&view.regime, self.layout.charset).as_bytes(),
            full,
        );
        self.paths("may read", &view.may_read, full);
        if view.may_write.is_empty() {
            self.field("may write", b"nothing", full);
        }
        self.paths("may write", &view.may_write, full);
        self.field("may reach", view.may_reach.as_bytes(), full);
    }

    fn file(&mut self, view: &FileView, room: Room) {
        self.paths("file", std::slice::from_ref(&view.path), room.at_most_few());
        match &view.content {
            Content::Text(text) => {
                let lines = if text.is_empty() { 0 } else { lines_of(text).count() };
                self.field("new", size(view.size, Some(lines)).as_bytes(), Room::Unlimited);
                if lines > 0 {
                    self.numbered(text, room);
                }
            }
            Content::Binary(what) => {
                self.field("new", size(view.size, None).as_bytes(), Room::Unlimited);
                self.field("binary", what.as_bytes(), room.at_most_few());
            }
        }
    }

    fn arguments(&mut self, fields: &[(String, String)], room: Room) {
        let (most, each) = divide(fields.len(), room);
        for (name, value) in fields.iter().take(most) {
            self.field("argument", name.as_bytes(), room.at_most_few());
            self.field("  value", value.as_bytes(), each);
        }
        if fields.len() > most {
            self.more(fields.len() - most, "arguments");
        }
        if fields.is_empty() {
            self.own_text(Edge::Side, Edge::Side, "no arguments", Style::Plain);
        }
    }

    fn parts(&mut self, parts: &[(String, Presentation)], room: Room) {
        let (most, each) = divide(parts.len(), room);
        for (index, (title, part)) in parts.iter().take(most).enumerate() {
            self.field(&format!("part {}", index + 1), title.as_bytes(), room.at_most_few());
            self.present(part, each);
        }
        if parts.len() > most {
            self.more(parts.len() - most, "parts");
        }
        let text = format!("One answer holds for all {} parts.", parts.len());
        self.own_text(Edge::Side, Edge::Side, &text, Style::Strong);
    }
}

/// How many of `count` are shown, and how many lines of each.
fn divide(count: usize, room: Room) -> (usize, Room) {
    match room {
        Room::Lines(lines) => (
            (lines / MIN_LINES).max(1),
            Room::Lines((lines / count.max(1)).clamp(MIN_LINES, MAX_LINES)),
        ),
        Room::Unlimited => (usize::MAX, Room::Unlimited),
    }
}

fn size(bytes: u64, lines: Option<usize>) -> String {
    let count = |count: u64, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let bytes = count(bytes, "byte");
    match lines.map(u64::try_from) {
        Some(Ok(lines)) => format!("{}, {bytes}", count(lines, "line")),
        Some(Err(_)) | None => bytes,
    }
}
