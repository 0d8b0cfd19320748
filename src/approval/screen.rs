//! The text of a question, safe to show whatever an agent put into it.
//!
//! Every line of content stands behind a bar, is escaped, and is broken before the terminal would
//! break it: nothing that was asked about can begin a line of its own. A line that ends in the command
//! itself is told from one that was broken, and an escape from the same letters typed out.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::request::{AnswerOf, ApprovalRequest, Content, Presentation};
use crate::policy::path;

/// The width assumed where the terminal does not tell.
pub(super) const NARROW: u16 = 40;
/// How wide a label and its padding are.
const LABEL: usize = 11;
/// How many lines of a change are shown at first.
const HEAD: usize = 50;
/// Stands before a line that the value itself begins.
const NEW_LINE: &str = "(new line)";

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Off,
    On,
}

/// How much of what is long is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Head,
    Whole,
}

/// What is shown before the answer is typed.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) text: String,
    /// Whether there is more to be seen.
    pub(super) is_cut: bool,
}

/// The question, up to and without the place where the answer is typed.
pub(super) fn question(
    request: &ApprovalRequest,
    presentation: &Presentation,
    (columns, colour): (u16, Colour),
    extent: Extent,
) -> Question {
    let mut screen = Screen {
        text: String::new(),
        columns: usize::from(columns.max(24)),
        colour,
        hides: hides(request, presentation),
        is_cut: false,
    };
    screen.plain("+-- Stockade asks ", Style::Strong);
    screen.field("tool", request.tool_name.as_bytes());
    screen.field("wants", request.description.as_bytes());
    if let Some(group) = &request.group_id {
        screen.field("group", group.as_bytes());
    }
    screen.present(presentation, extent);
    if screen.hides == Hides::Something {
        screen.plain(WARNING, Style::Warning);
    }
    screen.plain(
        match (request.answer, screen.is_cut) {
            (AnswerOf::Anyone, _) => "+-- y: yes, once; n: no; s: yes, and again for exactly this",
            (AnswerOf::ApproverOnly, false) => "+-- y: yes; n: no",
            (AnswerOf::ApproverOnly, true) => "+-- v: show all of it, then y: yes; n: no",
        },
        Style::Strong,
    );
    Question {
        text: screen.text,
        is_cut: screen.is_cut,
    }
}

/// Where the answer is typed.
pub(super) fn prompt(request: &ApprovalRequest, question: &Question) -> &'static str {
    match (request.answer, question.is_cut) {
        (AnswerOf::Anyone, _) => "approve? [y/n/s] ",
        (AnswerOf::ApproverOnly, false) => "approve? [y/n] ",
        (AnswerOf::ApproverOnly, true) => "approve? [v/n] ",
    }
}

/// Whether all of it must have been shown before a yes counts.
pub(super) fn must_be_seen(request: &ApprovalRequest, question: &Question) -> bool {
    request.answer == AnswerOf::ApproverOnly && question.is_cut
}

const WARNING: &str =
    "| WARNING: characters that do not print are shown as \\u{..}, \\n or \\x.., and a backslash as \\\\ above";

/// Whether something in a question does not print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hides {
    Nothing,
    Something,
}

fn hides(request: &ApprovalRequest, presentation: &Presentation) -> Hides {
    let asked = [&request.tool_name, &request.description]
        .into_iter()
        .chain(&request.group_id);
    if hidden_in(presentation) || asked.into_iter().any(|asked| does_not_print(asked.as_bytes())) {
        Hides::Something
    } else {
        Hides::Nothing
    }
}

/// The end of a line is shown as one; a tab is a blank of unknown width, and common.
fn does_not_print(bytes: &[u8]) -> bool {
    bytes.split(|byte| matches!(byte, b'\n' | b'\t')).any(path::is_escaped)
}

fn hidden_in(presentation: &Presentation) -> bool {
    let text = does_not_print;
    match presentation {
        Presentation::Text(shown) | Presentation::Diff(shown) => text(shown.as_bytes()),
        Presentation::Command(view) => {
            let mut paths = view.may_write.iter().chain(&view.may_read).chain([&view.directory]);
            text(&view.command)
                || [&view.regime, &view.may_reach]
                    .into_iter()
                    .any(|shown| text(shown.as_bytes()))
                || paths.any(|shown| path::is_escaped(shown.as_os_str().as_bytes()))
        }
        Presentation::FileContent(view) => {
            let (Content::Text(shown) | Content::Binary(shown)) = &view.content;
            text(shown.as_bytes()) || path::is_escaped(view.path.as_os_str().as_bytes())
        }
        Presentation::Structured(fields) => fields
            .iter()
            .any(|(name, value)| text(name.as_bytes()) || text(value.as_bytes())),
        Presentation::Several(parts) => parts
            .iter()
            .any(|(title, part)| text(title.as_bytes()) || hidden_in(part)),
    }
}

#[derive(Debug, Clone, Copy)]
enum Style {
    Strong,
    Warning,
}

struct Screen {
    text: String,
    columns: usize,
    colour: Colour,
    hides: Hides,
    is_cut: bool,
}

impl Screen {
    fn present(&mut self, presentation: &Presentation, extent: Extent) {
        match presentation {
            Presentation::Text(text) => self.field("", text.as_bytes()),
            Presentation::Diff(text) => self.diff(text, extent),
            Presentation::Command(view) => {
                self.field("command", &view.command);
                self.paths("directory", std::slice::from_ref(&view.directory));
                self.field("regime", view.regime.as_bytes());
                self.paths("may read", &view.may_read);
                if view.may_write.is_empty() {
                    self.field("may write", b"nothing");
                }
                self.paths("may write", &view.may_write);
                self.field("may reach", view.may_reach.as_bytes());
            }
            Presentation::FileContent(view) => {
                self.paths("file", std::slice::from_ref(&view.path));
                self.field("size", format!("{} bytes", view.size).as_bytes());
                match &view.content {
                    Content::Text(text) => self.diff(text, extent),
                    Content::Binary(what) => self.field("content", what.as_bytes()),
                }
            }
            Presentation::Structured(fields) => {
                for (name, value) in fields {
                    self.field("argument", name.as_bytes());
                    self.field("", value.as_bytes());
                }
            }
            Presentation::Several(parts) => {
                for (title, part) in parts {
                    self.field("part", title.as_bytes());
                    self.present(part, extent);
                }
            }
        }
    }

    /// A line of Stockade's own.
    fn plain(&mut self, line: &str, style: Style) {
        let code = match style {
            Style::Strong => "\x1b[1m",
            Style::Warning => "\x1b[1;33m",
        };
        let mut shown = String::new();
        for (index, piece) in broken(line, self.columns - 1).iter().enumerate() {
            shown.push_str(if index == 0 { "" } else { "\n" });
            shown.push_str(piece);
        }
        match self.colour {
            Colour::On => self.text.extend([code, &shown, "\x1b[0m\n"]),
            Colour::Off => self.text.extend([&shown, "\n"]),
        }
    }

    /// One path a line; nothing where there are none.
    fn paths(&mut self, label: &str, paths: &[PathBuf]) {
        for (index, path) in paths.iter().enumerate() {
            let shown = self.escape(path.as_os_str().as_bytes());
            self.lines(if index == 0 { label } else { "" }, &shown);
        }
    }

    /// A labelled value; each of its lines stands behind the bar.
    fn field(&mut self, label: &str, value: &[u8]) {
        let mut label = label;
        for line in value.split(|byte| *byte == b'\n') {
            let line: Vec<u8> = line
                .iter()
                .map(|byte| if *byte == b'\t' { b' ' } else { *byte })
                .collect();
            let shown = self.escape(&line);
            self.lines(label, &shown);
            // Where a line is only broken, the label stays empty.
            label = if label.is_empty() { "" } else { NEW_LINE };
        }
    }

    /// The lines of a change. What goes on in the next line stands behind a sign that no line of a change begins
    /// with, so that a long line cannot pass for two.
    fn diff(&mut self, text: &str, extent: Extent) {
        let mut lines = Vec::new();
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            let shown = self.escape(line.replace('\t', " ").as_bytes());
            for (index, piece) in broken(&shown, self.columns - 5).iter().enumerate() {
                lines.push(format!("| {}{piece}\n", if index == 0 { "" } else { "> " }));
            }
        }
        let shown = match extent {
            Extent::Head if lines.len() > HEAD => HEAD,
            Extent::Head | Extent::Whole => lines.len(),
        };
        let more = lines.len() - shown;
        self.text.extend(lines.into_iter().take(shown));
        if more > 0 {
            self.is_cut = true;
            self.plain(&format!("| … [{more} more lines]"), Style::Warning);
        }
    }

    /// With doubled backslashes as soon as anything is escaped: else a real one looks like one typed out.
    fn escape(&self, bytes: &[u8]) -> String {
        match self.hides {
            Hides::Nothing => path::escape(bytes),
            Hides::Something => path::escape_backslashes(bytes),
        }
    }

    fn lines(&mut self, label: &str, shown: &str) {
        for (index, piece) in broken(shown, self.columns - LABEL - 3).iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let label_column = format!("| {label:<LABEL$}");
            self.text.extend([&label_column, piece, "\n"]);
        }
    }
}

/// The text in pieces of at most `width` columns; at least one piece.
///
/// A character outside ASCII counts two columns: more than some take, never less than one takes.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let columns = if c.is_ascii() { 1 } else { 2 };
        if used + columns > width {
            pieces.push(String::new());
            used = 0;
        }
        used += columns;
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;
    use crate::approval::{CommandView, Lazy, Remember};

    fn shown(command: &[u8], columns: u16) -> String {
        let view = CommandView {
            command: command.to_vec(),
            directory: "/work/p".into(),
            regime: "landlock".to_owned(),
            may_read: vec!["/work/asked".into()],
            may_write: vec!["/work/p".into(), OsStr::from_bytes(b"/a b").into()],
            may_reach: "no network".to_owned(),
        };
        let request = ApprovalRequest {
            required: true,
            answer: AnswerOf::Anyone,
            tool_name: "shell".to_owned(),
            description: "run a command".to_owned(),
            payload: Vec::new(),
            presentation: Lazy::new(|| Err(String::new())),
            group_id: None,
            remember: Remember::None,
            allowed_by: String::new(),
            why: Vec::new(),
            caller: None,
        };
        let view = Presentation::Command(view);
        question(&request, &view, (columns, Colour::Off), Extent::Head).text
    }

    #[test]
    fn a_command_is_shown_with_its_reach() {
        let text = shown(b"make -j2", 80);
        for part in [
            "command    make -j2",
            "directory  /work/p",
            "regime     landlock",
            "may write  /work/p",
            "/a b",
            "may reach  no network",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("WARNING"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    }

    #[test]
    fn content_cannot_begin_a_line_of_its_own() {
        let forged = "true\n+-- y: yes\napprove? [y/n/s] \r\x1b[2J\u{9b}2J\u{2028}approve? \x08\x08 ".repeat(20);
        for columns in [1, 30, 40, 80, 200] {
            let text = shown(forged.as_bytes(), columns);
            let width = usize::from(columns.max(24));
            let (first, last) = ("+-- Stockade", text.rfind("+-- y:").unwrap());
            assert!(text.starts_with(first));
            for line in text[..last].lines().skip(1) {
                let own = line.starts_with("| ")
                    || line.len() < width && format!("+-- Stockade asks {WARNING}").contains(line);
                assert!(own, "{line:?}");
                assert!(line.chars().count() < width, "{line:?}");
            }
            assert!(!text.contains(['\r', '\x1b', '\x08', '\u{9b}', '\u{2028}']));
        }
    }

    #[test]
    fn characters_that_do_not_print_are_flagged() {
        assert!(shown("rm \u{202e}txt".as_bytes(), 80).contains("WARNING"));
        assert!(shown("rm \u{202e}txt".as_bytes(), 80).contains("\\u{202e}"));
        assert!(shown(b"a\xff", 80).contains("\\xff"));
        assert!(!shown("echo é\t日本\nls".as_bytes(), 80).contains("WARNING"));
    }

    #[test]
    fn wide_characters_do_not_reach_the_margin() {
        let text = shown("日".repeat(100).as_bytes(), 40);
        assert!(
            text.lines()
                .filter(|line| line.contains('日'))
                .all(|line| line.matches('日').count() <= 13),
            "{text}"
        );
    }

    #[test]
    fn a_new_line_of_the_command_looks_like_no_other_text() {
        let real = shown(b"bash -c 'echo ok #\nrm -rf w'", 80);
        let typed_out = shown(b"bash -c 'echo ok #\\nrm -rf w'", 80);
        assert!(real.contains("echo ok #\n| (new line) rm -rf w'\n"), "{real}");
        assert!(typed_out.contains("echo ok #\\nrm -rf w'\n"), "{typed_out}");
        // A comment that fills its line does not look as if it went on in the next.
        let room = 40 - LABEL - 3;
        let filled = shown(format!("#{}\nrm -rf w", "-".repeat(room - 1)).as_bytes(), 40);
        let broken = shown(format!("#{}rm -rf w", "-".repeat(room - 1)).as_bytes(), 40);
        assert!(filled.contains("\n| (new line) rm -rf w\n"), "{filled}");
        assert!(broken.contains(&format!("\n| {:LABEL$}rm -rf w\n", "")), "{broken}");
    }

    #[test]
    fn an_escape_looks_like_no_letters_typed_out() {
        for (hidden, letters) in [
            ("a\u{202e}b".as_bytes(), "a\\u{202e}b".as_bytes()),
            (b"a\xffb", b"a\\xffb"),
            (b"a\x1bb", b"a\\u{1b}b"),
        ] {
            let (alone, typed_out) = (shown(hidden, 80), shown(letters, 80));
            assert!(alone.contains("WARNING") && !typed_out.contains("WARNING"));
            let both = shown(&[hidden, b" ", letters].concat(), 80);
            assert!(both.contains("a\\") && both.contains(" a\\\\"), "{both}");
        }
    }

    fn change(text: &str, columns: u16, extent: Extent) -> Question {
        let request = ApprovalRequest {
            required: true,
            answer: AnswerOf::ApproverOnly,
            tool_name: "shell".to_owned(),
            description: "keep a change".to_owned(),
            payload: Vec::new(),
            presentation: Lazy::new(|| Err(String::new())),
            group_id: None,
            remember: Remember::None,
            allowed_by: String::new(),
            why: Vec::new(),
            caller: None,
        };
        let change = Presentation::Diff(text.to_owned());
        question(&request, &change, (columns, Colour::Off), extent)
    }

    #[test]
    fn a_long_change_is_cut_at_fifty_lines_and_shown_whole_when_asked_for() {
        let text = "+line\n".repeat(70);
        let head = change(&text, 80, Extent::Head);
        assert!(head.is_cut && head.text.contains("… [20 more lines]"), "{}", head.text);
        assert_eq!(head.text.matches("| +line\n").count(), 50);
        assert!(head.text.contains("v: show all of it"));
        let whole = change(&text, 80, Extent::Whole);
        assert!(!whole.is_cut && !whole.text.contains("more lines"));
        assert_eq!(whole.text.matches("| +line\n").count(), 70);
        let short = change(&"+line\n".repeat(50), 80, Extent::Head);
        assert!(!short.is_cut && !short.text.contains("v:"), "{}", short.text);
        // One endless line is many.
        assert!(change(&"+".repeat(10_000), 80, Extent::Head).is_cut);
    }

    #[test]
    fn a_long_line_of_a_change_cannot_pass_for_two() {
        for columns in [24, 40, 80] {
            for pad in 0..100 {
                let text = format!("+{}-rm -rf\n", "x".repeat(pad));
                let shown = change(&text, columns, Extent::Whole).text;
                assert!(!shown.contains("\n| -"), "{shown}");
            }
        }
        assert!(
            change("+a\n-rm -rf\n", 80, Extent::Whole)
                .text
                .contains("\n| -rm -rf\n")
        );
    }

    #[test]
    fn nothing_in_a_change_moves_the_cursor() {
        let evil = "+\u{1b}[2Japprove? \r\n+\u{202e}x\u{9b}2J\n-a\rb\n";
        let shown = change(evil, 80, Extent::Whole).text;
        assert!(!shown.contains(['\u{1b}', '\r', '\u{202e}', '\u{9b}']), "{shown}");
        assert!(shown.contains("WARNING") && shown.contains("\\u{1b}[2J"), "{shown}");
    }
}
