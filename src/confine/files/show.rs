//! A change as a person is shown it.

use std::ffi::OsStr;
use std::time::Duration;

use similar::TextDiff;

use super::clock::Clock;
use super::effect::{self, Effect};
use super::failure::Answer;
use super::magic;
use super::protocol::{Change, MAX_TEXT, Removed, Shown, State, View};

/// The most bytes of text in all of one reply, well below what a frame holds.
const MAX_REPLY: usize = 12 * 1024 * 1024;
/// How long the shortest difference is looked for before a longer one will do.
const DIFF_TIMEOUT: Duration = Duration::from_millis(300);

/// What changes would amount to, as text.
pub(super) fn show(changes: &[Change], clock: Clock) -> Answer<Vec<Shown>> {
    effect::check_independent(changes.iter())?;
    let most = usize::try_from(MAX_TEXT).unwrap_or(MAX_REPLY);
    let max_bytes = most.min(MAX_REPLY / changes.len().max(1));
    let each = changes.iter().map(|change| {
        let effect = effect::of(change, clock)?;
        Ok(Shown {
            prepared: effect.prepared(),
            view: view(change, &effect, max_bytes),
        })
    });
    each.collect()
}

fn view(change: &Change, effect: &Effect<'_>, max_bytes: usize) -> View {
    match (change, effect.new.as_deref()) {
        (Change::Delete { path, .. }, _) => removed(path, effect),
        (Change::MakeDirectory { path }, _) => View::Names(vec![path.clone()]),
        (Change::Move { from, to }, _) => View::Names(vec![from.clone(), to.clone()]),
        (Change::Write { .. } | Change::Edit { .. } | Change::Patch { .. }, new) => {
            content(effect, new.unwrap_or_default(), max_bytes)
        }
    }
}

/// The most lines of a file that is removed, and bytes of them.
const MAX_HEAD: (usize, usize) = (20, 4096);

fn removed(path: &OsStr, effect: &Effect<'_>) -> View {
    View::Removed(match (effect.before.first(), effect.old.as_deref(), &effect.contents) {
        (Some(State::Directory { .. }), _, Some(listed)) => Removed::Tree(listed.named.clone()),
        (Some(State::Symlink(target)), _, _) => Removed::Symlink(target.clone()),
        (Some(State::File(file)), None, _) => Removed::Unread { size: file.size },
        (Some(State::File(file)), Some(old), _) => match as_text(old) {
            Some(text) => Removed::Text {
                begins: head(text),
                lines: text.lines().count() as u64,
                size: file.size,
            },
            None => Removed::Binary {
                what: what(old),
                size: file.size,
            },
        },
        // An empty directory, and what is no file.
        (_, _, _) => return View::Names(vec![path.to_owned()]),
    })
}

/// The first lines.
fn head(text: &str) -> String {
    let (most_lines, most_bytes) = MAX_HEAD;
    let lines: String = text.split_inclusive('\n').take(most_lines).collect();
    let end = lines.floor_char_boundary(most_bytes);
    lines.get(..end).unwrap_or_default().to_owned()
}

fn content(effect: &Effect<'_>, new: &[u8], max_bytes: usize) -> View {
    let Some(text) = as_text(new) else {
        return View::Binary {
            what: what(new),
            size: new.len() as u64,
        };
    };
    let is_new = effect.before.first() == Some(&State::Absent);
    match effect.old.as_deref().filter(|_| !is_new).map(as_text) {
        Some(Some(old)) => {
            let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(old, text);
            View::Diff(cut(diff.unified_diff().context_radius(3).to_string(), max_bytes))
        }
        // There is nothing to compare it with, or nothing that could be shown beside it.
        Some(None) | None => View::Content(cut(text.to_owned(), max_bytes)),
    }
}

fn as_text(content: &[u8]) -> Option<&str> {
    std::str::from_utf8(content).ok().filter(|text| !text.contains('\0'))
}

fn what(content: &[u8]) -> String {
    if memchr::memchr(0, content).is_none() && magic::what(content) == magic::UNKNOWN {
        return "text that is not UTF-8".to_owned();
    }
    magic::what(content)
}

/// Cuts a text at the end of a line, and says so in a last one.
fn cut(mut text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text;
    }
    let length = text.len();
    // Room for the last line.
    let most = text.floor_char_boundary(max_bytes.saturating_sub(64));
    let end = text
        .get(..most)
        .and_then(|head| head.rfind('\n'))
        .map_or(most, |end| end + 1);
    text.truncate(end);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let rest = format!("({} more bytes are not shown)\n", length - end);
    text + &rest
}
