//! Changes as lines of text, for a person.
//!
//! The lines hold what a command wrote, byte for byte where it is text: whoever shows them escapes what does
//! not print. Each begins with `+`, `-`, `@`, `\` or a blank.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use similar::TextDiff;

use super::change::{Change, TreeCopy};
use super::entry::state::State;
use super::violation::Effect;
use crate::policy::hex::hex;
use crate::policy::path::display;

/// Most bytes of all the text: what is longer nobody reads, so it is not offered.
const MAX_TEXT: usize = 128 * 1024;
/// How long a difference is looked for before a longer one will do.
const PATIENCE: Duration = Duration::from_millis(300);

/// Adds a change to the text of those before it; whether there was room for all of it. Everything that would be put back is
/// in it: of a git directory too, where a hook or a config could lie under any name.
pub(super) fn add(text: &mut String, path: &Path, kind: Effect, change: &Change) -> bool {
    let one = text_of(change).map(|lines| format!("@@ {}: {} @@\n{lines}", display(path.as_os_str()), kind.label()));
    match one {
        Some(one) if text.len() + one.len() <= MAX_TEXT => {
            text.push_str(&one);
            true
        }
        Some(_) | None => false,
    }
}

/// The lines of one change; `None` when there are too many to be looked through.
fn text_of(change: &Change) -> Option<String> {
    let mut text = String::new();
    if let Some(before) = &change.before {
        line(&mut text, '-', &[], before);
    }
    if change.after.is_none() {
        text.push_str("+nothing\n");
    }
    let empty = TreeCopy::new();
    let after = change.after.as_ref().unwrap_or(&empty);
    if after.is_empty() {
        text.push_str(&difference(change.before.as_ref(), None)?);
    }
    for (below, state) in after {
        line(&mut text, '+', below, state);
        let before = change.before.as_ref().filter(|_| below.is_empty());
        text.push_str(&difference(before, Some(state))?);
        if text.len() > MAX_TEXT {
            return None;
        }
    }
    Some(text)
}

/// What an entry is, in a line.
fn line(text: &mut String, sign: char, below: &[u8], state: &State) {
    let name = if below.is_empty() {
        String::new()
    } else {
        format!("{}: ", display(OsStr::from_bytes(below)))
    };
    let kind = match state {
        State::File { mode, content, .. } if as_text(content).is_some() => {
            format!("file, {} bytes, mode {mode:o}", content.len())
        }
        State::File { mode, content, .. } => {
            use sha2::Digest as _;
            let hash = hex(&sha2::Sha256::digest(content));
            format!("binary file, {} bytes, mode {mode:o}, SHA-256 {hash}", content.len())
        }
        State::Symlink { target } => format!("symbolic link to {}", display(OsStr::from_bytes(target))),
        State::Directory { mode } => format!("directory, mode {mode:o}"),
        State::Special { mode, .. } => format!("named pipe, mode {:o}", mode & 0o7777),
        State::Ignored => "not looked at".to_owned(),
    };
    // Writing to a string cannot fail.
    let _written = writeln!(text, "{sign}{name}{kind}");
}

fn as_text(content: &[u8]) -> Option<&str> {
    std::str::from_utf8(content).ok().filter(|text| !text.contains('\0'))
}

/// The unified difference of two entries, where they have text; `None` when there is too much of it to compare.
fn difference(before: Option<&State>, after: Option<&State>) -> Option<String> {
    let of = |state: Option<&State>| match state {
        Some(State::File { content, .. }) => as_text(content).map(str::to_owned).unwrap_or_default(),
        Some(State::Symlink { .. } | State::Directory { .. } | State::Special { .. } | State::Ignored) | None => {
            String::new()
        }
    };
    let (before, after) = (of(before), of(after));
    if before.len() > MAX_TEXT || after.len() > MAX_TEXT {
        return None;
    }
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(&before, &after);
    Some(diff.unified_diff().context_radius(3).to_string())
}
