//! What was read, listed or found, as an agent and a program are told it.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::confine::files::protocol::{End, Entry, Kind, Match, Text};
use crate::policy::AbsPath;
use crate::policy::path::escape;
use crate::tools::outcome::lossy;
use crate::tools::output::{Output, OutputEnd};

pub(super) fn text_of(path: &AbsPath, text: Text) -> Output {
    let Text {
        bytes,
        first,
        lines,
        total_lines,
        total_bytes,
        cut,
        end,
    } = text;
    let content = lossy(bytes);
    let mut text = content.clone();
    let last = first.saturating_add(lines).saturating_sub(1);
    let of = total_lines.map_or_else(|| "more than were counted".to_owned(), |total| total.to_string());
    match end {
        End::Complete if lines == 0 && total_bytes > 0 => {
            let _infallible = write!(text, "[no line {first}: the file has {of}]");
        }
        End::Complete => {}
        End::Limit | End::Time => {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            let _infallible = match cut {
                Some(cut) => write!(
                    text,
                    "… [line {first} of {of} to its byte {cut}; `first_line: {first}` with `skip_bytes: {cut}` goes on]"
                ),
                None => write!(
                    text,
                    "… [lines {first} to {last} of {of}; `first_line: {}` goes on]",
                    last.saturating_add(1)
                ),
            };
        }
    }
    let data = json!({
        "path": path.to_string(),
        "content": content,
        "first_line": first,
        "lines": lines,
        "total_lines": total_lines,
        "total_bytes": total_bytes,
        "cut_at": cut,
        "complete": end == End::Complete,
    });
    Output::new(OutputEnd::Done, text, data)
}

/// A name as an agent is told it, escaped. It gives the text back to name the file, so a backslash stays what it is.
fn named(name: &OsStr) -> String {
    escape(name.as_bytes())
}

fn relative(start: &AbsPath, path: &OsStr) -> String {
    let path = Path::new(path);
    let below = path.strip_prefix(start.as_path()).unwrap_or(path);
    if below.as_os_str().is_empty() {
        return named(start.name().unwrap_or_default());
    }
    named(below.as_os_str())
}

pub(super) fn entries_text(start: &AbsPath, entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries {
        let sign = match entry.kind {
            Kind::Directory => "/",
            Kind::Symlink => "@",
            Kind::File | Kind::Other => "",
        };
        text.extend([&relative(start, &entry.path), sign, "\n"]);
    }
    text
}

pub(super) fn entries_data(entries: &[Entry]) -> Value {
    let kind = |kind| match kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Symlink => "symlink",
        Kind::Other => "other",
    };
    entries
        .iter()
        .map(|entry| json!({"path": named(&entry.path), "kind": kind(entry.kind), "size": entry.size}))
        .collect()
}

pub(super) fn matches_text(start: &AbsPath, matches: &[Match]) -> String {
    let mut text = String::new();
    for found in matches {
        for (index, line) in (0..).zip(&found.lines) {
            let number = found.first.saturating_add(index);
            let sign = if number == found.line { ':' } else { '-' };
            let _infallible = writeln!(
                text,
                "{}{sign}{number}{sign} {}",
                relative(start, &found.path),
                escape(
                    &line
                        .iter()
                        .map(|byte| if *byte == b'\t' { b' ' } else { *byte })
                        .collect::<Vec<u8>>()
                )
            );
        }
    }
    text
}

pub(super) fn matches_data(matches: &[Match]) -> Value {
    matches
        .iter()
        .map(|found| {
            let lines: Vec<String> = found.lines.iter().map(|line| lossy(line.clone())).collect();
            json!({"path": named(&found.path), "line": found.line, "first_line": found.first, "lines": lines})
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_any_number_is_told() {
        let found = |first| Match {
            path: "/r/f".into(),
            first,
            line: first,
            lines: vec![b"a".to_vec(), b"b".to_vec()],
        };
        let root = AbsPath::new("/r").unwrap();
        assert_eq!(matches_text(&root, &[found(1)]), "f:1: a\nf-2- b\n");
        let last = u64::MAX;
        let text = matches_text(&root, &[found(last)]);
        assert_eq!(text, format!("f:{last}: a\nf:{last}: b\n"));
    }
}
