//! What a person is shown of each kind of thing that is asked about.

use super::line::{Edge, Tint};
use super::pen::{HEAD, Pen, Room, lines_of};
use super::text::told;
use crate::approval::request::{CommandView, Content, FileView, Presentation};

/// The fewest lines that a part of a question is given.
const LEAST: usize = 4;

impl Pen {
    pub(super) fn present(&mut self, presentation: &Presentation, room: Room) {
        match presentation {
            Presentation::Text(text) => self.field("", text.as_bytes(), room),
            Presentation::Diff(text) => self.change(text, room),
            Presentation::Command(view) => self.command(view, room),
            Presentation::FileContent(view) => self.file(view, room),
            Presentation::Structured(fields) => self.arguments(fields, room),
            Presentation::Several(parts) => self.parts(parts, room),
        }
    }

    fn command(&mut self, view: &CommandView, room: Room) {
        self.field("command", &view.command, room);
        self.paths("directory", std::slice::from_ref(&view.directory), room.few());
        self.paths("program", &view.programs, room.few());
        self.paths("writable", &view.writable_programs, room);
        // Stockade's own words, and what a yes opens: in full, if at all possible.
        let full = match room {
            Room::Lines(_) => Room::Lines(HEAD),
            Room::Whole => Room::Whole,
        };
        self.field("regime", told(&view.regime, self.look.letters).as_bytes(), full);
        self.paths("may read", &view.may_read, full);
        if view.may_write.is_empty() {
            self.field("may write", b"nothing", full);
        }
        self.paths("may write", &view.may_write, full);
        self.field("may reach", view.may_reach.as_bytes(), full);
    }

    fn file(&mut self, view: &FileView, room: Room) {
        self.paths("file", std::slice::from_ref(&view.path), room.few());
        match &view.content {
            Content::Text(text) => {
                let lines = if text.is_empty() { 0 } else { lines_of(text).count() };
                self.field("new", size(view.size, Some(lines)).as_bytes(), Room::Whole);
                if lines > 0 {
                    self.numbered(text, room);
                }
            }
            Content::Binary(what) => {
                self.field("new", size(view.size, None).as_bytes(), Room::Whole);
                self.field("binary", what.as_bytes(), room.few());
            }
        }
    }

    fn arguments(&mut self, fields: &[(String, String)], room: Room) {
        let (most, each) = shared(fields.len(), room);
        for (name, value) in fields.iter().take(most) {
            self.field("argument", name.as_bytes(), room.few());
            self.field("  value", value.as_bytes(), each);
        }
        if fields.len() > most {
            self.more(fields.len() - most, "arguments");
        }
        if fields.is_empty() {
            self.own(Edge::Side, Edge::Side, "no arguments", Tint::Plain);
        }
    }

    fn parts(&mut self, parts: &[(String, Presentation)], room: Room) {
        let (most, each) = shared(parts.len(), room);
        for (index, (title, part)) in parts.iter().take(most).enumerate() {
            self.field(&format!("part {}", index + 1), title.as_bytes(), room.few());
            self.present(part, each);
        }
        if parts.len() > most {
            self.more(parts.len() - most, "parts");
        }
        let told = format!("One answer holds for all {} parts.", parts.len());
        self.own(Edge::Side, Edge::Side, &told, Tint::Strong);
    }
}

/// How many of so many are shown, and how much of each.
fn shared(count: usize, room: Room) -> (usize, Room) {
    match room {
        Room::Lines(lines) => (
            (lines / LEAST).max(1),
            Room::Lines((lines / count.max(1)).clamp(LEAST, HEAD)),
        ),
        Room::Whole => (usize::MAX, Room::Whole),
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
