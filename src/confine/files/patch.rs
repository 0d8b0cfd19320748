//! The hunks of a unified diff, applied to a file's content.
//!
//! Every line of a hunk must be there exactly. Where it says it is goes first; elsewhere it must be the only place.

use diffy::{Hunk, Line, Patch};

use super::edit::LineEnds;
use super::near::near;
use super::protocol::Why;

/// The content after all hunks. `content` is empty where there is no file yet.
pub(super) fn apply(content: &[u8], hunks: &str, limit: u64) -> Result<Vec<u8>, Why> {
    // A last line whose end was forgotten is a line all the same; one without an end is marked as such.
    let hunks = &format!("{}\n", hunks.strip_suffix('\n').unwrap_or(hunks));
    let patch = Patch::from_str(hunks).map_err(|error| Why::Malformed(error.to_string()))?;
    complete(hunks, &patch)?;
    if let ([hunk], false) = (patch.hunks(), content.is_empty())
        && hunk.old_range().start() == 0
        && hunk.old_range().is_empty()
    {
        // It is written for a file that is not there yet.
        return Err(Why::Exists);
    }
    let ends = LineEnds::of(content).unless_spelled(hunks.as_bytes());
    let lines: Vec<&[u8]> = split(content).collect();
    let mut result: Vec<u8> = Vec::with_capacity(content.len());
    let mut done = 0;
    let mut shift = 0;
    for (index, hunk) in patch.hunks().iter().enumerate() {
        let old = side(hunk, ends, |line| match line {
            Line::Context(text) | Line::Delete(text) => Some(text),
            Line::Insert(_) => None,
        });
        let new = side(hunk, ends, |line| match line {
            Line::Context(text) | Line::Insert(text) => Some(text),
            Line::Delete(_) => None,
        });
        // A line number beyond the end counts as the end.
        let stated = start(hunk).min(lines.len() + 1).saturating_add_signed(shift);
        let at = position(&lines, &old, done, stated).ok_or_else(|| Why::Hunk {
            hunk: index + 1,
            near: near(content, &old.concat()),
        })?;
        shift += at.cast_signed() - stated.cast_signed();
        for line in lines.get(done..at).unwrap_or_default() {
            result.extend_from_slice(line);
        }
        for line in &new {
            result.extend_from_slice(line);
        }
        done = at + old.len();
        if result.len() as u64 > limit {
            let size = result.len() as u64;
            return Err(Why::TooLarge { size, limit });
        }
    }
    for line in lines.get(done..).unwrap_or_default() {
        result.extend_from_slice(line);
    }
    let size = result.len() as u64;
    if size > limit {
        return Err(Why::TooLarge { size, limit });
    }
    Ok(result)
}

/// Holds that no line was left out: a hunk whose head announces too few would lose its last lines without a word.
fn complete(hunks: &str, patch: &Patch<'_, str>) -> Result<(), Why> {
    if patch.hunks().is_empty() {
        return Err(Why::Malformed("no hunk in it".to_owned()));
    }
    let written = hunks
        .trim_end_matches(['\n', '\r'])
        .lines()
        .filter(|line| !line.starts_with('\\'))
        .count();
    let understood: usize = patch.hunks().iter().map(|hunk| 1 + hunk.lines().len()).sum();
    let trailing = patch.hunks().last().map_or(0, |hunk| {
        let blank = |line: &&Line<'_, str>| matches!(line, Line::Context("\n" | "\r\n" | ""));
        hunk.lines().iter().rev().take_while(blank).count()
    });
    // Empty lines at the very end may be context whose blank was lost, or nothing.
    if written > understood || written + trailing < understood || !hunks.starts_with("@@ ") {
        return Err(Why::Malformed("a hunk has other lines than its head says".to_owned()));
    }
    Ok(())
}

/// The line, from 0, at which a hunk says it begins. One that takes no line stands behind the line it names.
fn start(hunk: &Hunk<'_, str>) -> usize {
    let range = hunk.old_range();
    if range.is_empty() {
        range.start()
    } else {
        range.start().saturating_sub(1)
    }
}

/// The lines of a hunk that are on one side, spelled as in the file.
fn side<'a>(
    hunk: &Hunk<'a, str>,
    ends: LineEnds,
    pick: impl Fn(Line<'a, str>) -> Option<&'a str>,
) -> Vec<std::borrow::Cow<'a, [u8]>> {
    let texts = hunk.lines().iter().filter_map(|line| pick(*line));
    texts.map(|text| ends.spell(text.as_bytes())).collect()
}

/// Where the lines of a hunk stand, no earlier than `from`.
fn position<L: AsRef<[u8]>>(lines: &[&[u8]], old: &[L], from: usize, stated: usize) -> Option<usize> {
    let fits = |at: usize| {
        lines
            .get(at..at.checked_add(old.len())?)
            .filter(|window| window.iter().zip(old).all(|(one, other)| *one == other.as_ref()))
            .map(|_| at)
    };
    if stated >= from
        && let Some(at) = fits(stated)
    {
        return Some(at);
    }
    if old.is_empty() {
        return None;
    }
    let mut elsewhere = (from..lines.len()).filter_map(fits);
    let only = elsewhere.next()?;
    elsewhere.next().is_none().then_some(only)
}

/// Lines with their ends.
fn split(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split_inclusive(|byte| *byte == b'\n')
}
