//! Exact replacements in a file's content.

use std::borrow::Cow;

use memchr::memmem::Finder;

use super::near::near;
use super::protocol::{Edit, Occurrences, Why};

/// How many places an error names.
const MAX_LINES_NAMED: usize = 10;

/// The content after all replacements, one after the other; at most `limit` bytes.
pub(super) fn replace(content: &[u8], edits: &[Edit], limit: u64) -> Result<Vec<u8>, Why> {
    let ends = LineEnds::of(content);
    let mut text = content.to_vec();
    for (index, edit) in edits.iter().enumerate() {
        text = replace_one(&text, edit, index + 1, ends, limit)?;
    }
    Ok(text)
}

fn replace_one(text: &[u8], edit: &Edit, number: usize, ends: LineEnds, limit: u64) -> Result<Vec<u8>, Why> {
    let ends = ends.unless_spelled(edit.old.as_bytes());
    let old = ends.spell(edit.old.as_bytes());
    let new = ends.spell(edit.new.as_bytes());
    if old.is_empty() || old == new {
        return Err(Why::EmptyEdit { edit: number });
    }
    let finder = Finder::new(old.as_ref());
    let Some(first) = finder.find(text) else {
        return Err(Why::NoMatch {
            edit: number,
            near: near(text, &old),
        });
    };
    let count = match edit.occurrences {
        Occurrences::One => {
            // Overlapping occurrences count as two.
            if text.get(first + 1..).is_some_and(|rest| finder.find(rest).is_some()) {
                return Err(ambiguous(text, &finder, number, first));
            }
            1
        }
        Occurrences::Every => finder.find_iter(text).count(),
    };
    let size = (text.len() - count * old.len()) as u64 + (count as u64).saturating_mul(new.len() as u64);
    if size > limit {
        return Err(Why::TooLarge { size, limit });
    }
    let mut result = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    let mut from = 0;
    for at in finder.find_iter(text).take(count) {
        result.extend_from_slice(text.get(from..at).unwrap_or_default());
        result.extend_from_slice(&new);
        from = at + old.len();
    }
    result.extend_from_slice(text.get(from..).unwrap_or_default());
    Ok(result)
}

fn ambiguous(text: &[u8], finder: &Finder<'_>, number: usize, first: usize) -> Why {
    let disjoint = finder.find_iter(text).count() as u64;
    let mut lines = Vec::new();
    let (mut line, mut from) = (1u64, 0);
    let mut next = Some(first);
    while let Some(at) = next.filter(|_| lines.len() < MAX_LINES_NAMED) {
        line += memchr::memchr_iter(b'\n', text.get(from..at).unwrap_or_default()).count() as u64;
        lines.push(line);
        from = at;
        next = text
            .get(at + 1..)
            .and_then(|rest| finder.find(rest))
            .map(|next| at + 1 + next);
    }
    Why::Ambiguous {
        edit: number,
        count: disjoint.max(lines.len() as u64),
        lines,
    }
}

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// Each with a carriage return and a line feed.
    CarriageReturns,
    /// In any other way.
    Other,
}

impl LineEnds {
    /// How the lines of `content` end.
    pub(super) fn of(content: &[u8]) -> Self {
        let mut ends = memchr::memchr_iter(b'\n', content).peekable();
        let is_there = ends.peek().is_some();
        if is_there && ends.all(|end| end.checked_sub(1).and_then(|before| content.get(before)) == Some(&b'\r')) {
            Self::CarriageReturns
        } else {
            Self::Other
        }
    }

    /// What is written with carriage returns means what it says.
    pub(super) fn unless_spelled(self, text: &[u8]) -> Self {
        if memchr::memchr(b'\r', text).is_some() {
            Self::Other
        } else {
            self
        }
    }

    /// A text that was written without thought of carriage returns, as it would stand in the file.
    pub(super) fn spell(self, text: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Other => Cow::Borrowed(text),
            Self::CarriageReturns => {
                let mut spelled = Vec::with_capacity(text.len());
                let mut before = None;
                for byte in text {
                    if *byte == b'\n' && before != Some(b'\r') {
                        spelled.push(b'\r');
                    }
                    spelled.push(*byte);
                    before = Some(*byte);
                }
                Cow::Owned(spelled)
            }
        }
    }
}
