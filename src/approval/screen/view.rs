//! The lines of each kind of presentation.

use std::os::unix::ffi::OsStrExt as _;

use super::line::{Edge, Style};
use super::writer::{MAX_LINES, Room, Writer, lines_of};
use crate::approval::presentation::{CommandView, Content, FileView, Presentation};
use crate::approval::removal::{RemovalView, Removed};

/// The fewest lines of a part.
const MIN_LINES: usize = 4;

impl Writer {
    pub(super) fn present(&mut self, presentation: &Presentation, room: Room) {
        match presentation {
            Presentation::Text(text) => self.field("", text.as_bytes(), room),
            Presentation::Diff(text) => self.diff(text, room),
            Presentation::Command(view) => self.command(view, room),
            Presentation::FileContent(view) => self.file(view, room),
            Presentation::Removal(view) => self.removal(view, room),
            Presentation::Structured(fields) => self.arguments(fields, room),
            Presentation::Several(parts) => self.parts(parts, room),
        }
    }

    fn command(&mut self, view: &CommandView, room: Room) {
        self.line_of_shell(&view.command, room);
        for (part, note) in &view.notes {
            let note = if part.is_empty() {
                note.clone()
            } else {
                format!("`{part}`: {note}")
            };
            self.field("note", note.as_bytes(), room.at_most_few());
        }
        self.paths("in", std::slice::from_ref(&view.directory), room.at_most_few());
        // What a yes permits is cut as late as possible.
        let full = match room {
            Room::Lines(_) => Room::Lines(MAX_LINES),
            Room::Unlimited => Room::Unlimited,
        };
        let mut may = Vec::new();
        for (verb, paths) in [("write ", &view.may_write), ("read ", &view.may_read)] {
            if paths.is_empty() && verb == "read " {
                continue;
            }
            may.extend_from_slice(verb.as_bytes());
            let paths: Vec<&[u8]> = paths.iter().map(|path| path.as_os_str().as_bytes()).collect();
            may.extend(if paths.is_empty() {
                b"nothing".to_vec()
            } else {
                paths.join(&b", "[..])
            });
            may.extend_from_slice(b"; ");
        }
        may.extend([b"reach ", view.may_reach.as_bytes()].concat());
        self.field("may", &may, full);
        self.paths("program", &view.programs, room.at_most_few());
        self.paths("writable", &view.writable_programs, room);
        if let Some(weaker) = &view.weaker {
            self.field("sandbox", weaker.as_bytes(), full);
        }
    }

    fn file(&mut self, view: &FileView, room: Room) {
        self.paths("file", std::slice::from_ref(&view.path), room.at_most_few());
        match &view.content {
            Content::Text(text) => {
                let lines = if text.is_empty() { 0 } else { lines_of(text).count() };
                self.field("new", size(view.size, Some(lines)).as_bytes(), Room::Unlimited);
                if lines > 0 {
                    self.numbered(&view.path, text, room);
                }
            }
            Content::Binary(what) => {
                self.field("new", size(view.size, None).as_bytes(), Room::Unlimited);
                self.field("binary", what.as_bytes(), room.at_most_few());
            }
        }
    }

    fn removal(&mut self, view: &RemovalView, room: Room) {
        // Which path it is, the question and the title of a part say.
        let bytes = size(view.size, None);
        let removes = |writer: &mut Self, what: &str| writer.field("removes", what.as_bytes(), room.at_most_few());
        match &view.what {
            Removed::Text { begins, lines } => {
                removes(self, &format!("{}, {bytes}", counted(*lines, "line")));
                if !begins.is_empty() {
                    self.numbered(&view.path, begins, room);
                }
                let shown = u64::try_from(begins.lines().count()).unwrap_or(u64::MAX);
                self.not_given(lines.saturating_sub(shown), "line");
            }
            Removed::Binary(what) => removes(self, &format!("{what}, {bytes}")),
            Removed::Symlink(target) => {
                removes(self, "a symlink; what it points to stays");
                self.paths("points to", std::slice::from_ref(target), room.at_most_few());
            }
            Removed::Tree {
                directories,
                files,
                complete,
                entries,
            } => {
                let all = format!(
                    "{}, {}, {bytes}",
                    counted(*files, "file"),
                    counted(*directories, "directory")
                );
                if *complete {
                    removes(self, &all);
                } else {
                    removes(
                        self,
                        &format!("more than {all}: more than is looked through, and whatever is there goes"),
                    );
                }
                self.paths("", entries, room);
                let shown = u64::try_from(entries.len()).unwrap_or(u64::MAX);
                self.not_given(files.saturating_add(*directories).saturating_sub(shown), "name");
            }
        }
    }

    /// A line that counts what nobody gives, so that no key shows it.
    fn not_given(&mut self, count: u64, what: &str) {
        if count > 0 {
            let text = format!(
                "and {} that are not shown",
                counted(count, what).replacen(' ', " more ", 1)
            );
            self.own_text(Edge::Side, Edge::Side, &text, Style::Warning);
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

/// A number of things.
fn counted(count: u64, one: &str) -> String {
    match (count, one.strip_suffix('y')) {
        (1, _) => format!("1 {one}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {one}s"),
    }
}

fn size(bytes: u64, lines: Option<usize>) -> String {
    let bytes = match bytes {
        0..1000 => counted(bytes, "byte"),
        1000..1_000_000 => tenths(bytes / 100, "KB"),
        _ => tenths(bytes / 100_000, "MB"),
    };
    match lines.map(u64::try_from) {
        Some(Ok(lines)) => format!("{}, {bytes}", counted(lines, "line")),
        Some(Err(_)) | None => bytes,
    }
}

fn tenths(count: u64, unit: &str) -> String {
    format!("{}.{} {unit}", count / 10, count % 10)
}
