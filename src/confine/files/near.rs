//! The lines most similar to a text that was not found. The work is bounded, so the nearest lines may be missed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use similar::TextDiff;

use super::protocol::Near;

/// The most lines of a file that are looked at.
const MAX_LINES: usize = 50_000;
/// The most lines of a text that are looked for.
const MAX_BLOCK: usize = 100;
/// The most bytes of a line that are compared.
const MAX_LINE: usize = 400;
/// The most bytes that are shown.
const MAX_SHOWN: usize = 2 * 1024;
/// How many places are compared closely.
const CANDIDATES: usize = 8;
/// How alike two texts are at least, of 1.
const ALIKE: f32 = 0.5;
/// How long two texts are compared.
const TIMEOUT: Duration = Duration::from_millis(50);

/// The lines of `content` nearest to `text`.
pub(super) fn near(content: &[u8], text: &[u8]) -> Option<Near> {
    let needle: Vec<Line<'_>> = lines(text).take(MAX_BLOCK).collect();
    let needle = trim(&needle);
    let haystack: Vec<Line<'_>> = lines(content).take(MAX_LINES).collect();
    if needle.is_empty() || haystack.is_empty() {
        return None;
    }
    blank_differs(&haystack, needle).or_else(|| most_alike(&haystack, needle))
}

/// A line, and hashes that tell equal ones cheaply.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    bytes: &'a [u8],
    /// Of all but white space.
    solid: u64,
    is_blank: bool,
    /// How often each byte is in it, roughly, for a first guess.
    shape: [u8; 16],
}

fn lines(content: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut rest = content;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = after.strip_prefix(b"\n").unwrap_or(after);
        Some(Line::of(line.get(..MAX_LINE).unwrap_or(line)))
    })
}

impl<'a> Line<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        let mut shape = [0u8; 16];
        let mut is_blank = true;
        for byte in bytes.iter().filter(|byte| !byte.is_ascii_whitespace()) {
            is_blank = false;
            byte.hash(&mut hasher);
            if let Some(count) = shape.get_mut(usize::from(byte % 16)) {
                *count = count.saturating_add(1);
            }
        }
        Self {
            bytes,
            solid: hasher.finish(),
            is_blank,
            shape,
        }
    }

    fn distance(&self, other: &Self) -> u32 {
        let each = self.shape.iter().zip(other.shape);
        each.map(|(one, other)| u32::from(one.abs_diff(other))).sum()
    }
}

/// Without blank lines at either end.
fn trim<'a, 'b>(block: &'a [Line<'b>]) -> &'a [Line<'b>] {
    let start = block.iter().position(|line| !line.is_blank).unwrap_or(block.len());
    let end = block
        .iter()
        .rposition(|line| !line.is_blank)
        .map_or(start, |last| last + 1);
    block.get(start..end).unwrap_or_default()
}

/// A place where the lines are the same but for white space.
fn blank_differs(haystack: &[Line<'_>], needle: &[Line<'_>]) -> Option<Near> {
    let same = |window: &[Line<'_>]| window.iter().zip(needle).all(|(one, other)| one.solid == other.solid);
    let at = haystack.windows(needle.len()).position(same).or_else(|| {
        let [only] = needle else { return None };
        let only = solid(only.bytes);
        haystack.iter().position(|line| {
            let line = solid(line.bytes);
            !only.is_empty() && memchr::memmem::find(&line, &only).is_some()
        })
    })?;
    Some(found(haystack, at, needle.len(), "only white space differs"))
}

fn solid(line: &[u8]) -> Vec<u8> {
    line.iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect()
}

/// The place where most is the same.
fn most_alike(haystack: &[Line<'_>], needle: &[Line<'_>]) -> Option<Near> {
    let size = needle.len().min(haystack.len());
    let mut scored: Vec<(u64, usize)> = haystack
        .windows(size)
        .enumerate()
        .map(|(at, window)| {
            let each = window.iter().zip(needle).filter(|(one, _)| !one.is_blank);
            let distance = each.fold(0u64, |sum, (one, other)| {
                let differs = u32::from(one.solid != other.solid);
                sum + u64::from(one.distance(other) + 8 * differs)
            });
            let blank = window.iter().filter(|line| line.is_blank).count() as u64;
            (distance + 40 * blank, at)
        })
        .collect();
    scored.sort_unstable();
    let text = joined(needle);
    let ratio = |at: usize| {
        let window = joined(haystack.get(at..at + size).unwrap_or_default());
        TextDiff::configure()
            .timeout(TIMEOUT)
            .diff_chars(&window, &text)
            .ratio()
    };
    let (best, at) = scored
        .iter()
        .take(CANDIDATES)
        .map(|(_, at)| (ratio(*at), *at))
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    if best < ALIKE {
        return None;
    }
    let window = haystack.get(at..at + size).unwrap_or_default();
    let differing = window
        .iter()
        .zip(needle)
        .filter(|(one, other)| one.bytes != other.bytes)
        .count();
    let differing = differing + needle.len() - size;
    let difference = match differing {
        0 | 1 => "a line differs".to_owned(),
        many => format!("{many} lines differ"),
    };
    Some(found(haystack, at, size, &difference))
}

fn joined(block: &[Line<'_>]) -> String {
    let each: Vec<&[u8]> = block.iter().map(|line| line.bytes).collect();
    String::from_utf8_lossy(&each.join(&b'\n'))
        .chars()
        .take(MAX_SHOWN)
        .collect()
}

fn found(haystack: &[Line<'_>], at: usize, size: usize, difference: &str) -> Near {
    Near {
        line: at as u64 + 1,
        text: joined(haystack.get(at..at + size).unwrap_or_default()),
        difference: difference.to_owned(),
    }
}
