//! What an approver adds to an answer, made safe before the agent is told it.

use crate::policy::path;

/// The most characters of a note that the agent is told.
const LONGEST: usize = 2_000;

/// The note with everything escaped that does not print, and cut where it is too long; `None` where nothing is left.
pub(super) fn cleaned(note: &str) -> Option<String> {
    let note = note.trim();
    // Not all of an endless note is looked at; an escape is longer than what it stands for.
    let begun: String = note.chars().take(LONGEST + 1).collect();
    let mut shown = path::escape(begun.as_bytes());
    if let Some((end, _)) = shown.char_indices().nth(LONGEST) {
        shown.truncate(end);
        shown.pop();
        shown.push('…');
    }
    (!shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_print_is_escaped() {
        assert_eq!(cleaned("not now, später").as_deref(), Some("not now, später"));
        assert_eq!(
            cleaned("a\nb\u{1b}[2J\u{202e}c\u{200b}").as_deref(),
            Some("a\\nb\\u{1b}[2J\\u{202e}c\\u{200b}")
        );
    }

    #[test]
    fn an_empty_note_is_none() {
        assert_eq!(cleaned(""), None);
        assert_eq!(cleaned(" \n"), None);
    }

    #[test]
    fn a_long_note_is_cut() {
        for note in ["x".repeat(1_000_000), "\u{202e}".repeat(1_999), "é".repeat(2_001)] {
            let told = cleaned(&note).unwrap();
            assert_eq!(told.chars().count(), LONGEST);
            assert!(told.ends_with('…'));
        }
        assert_eq!(cleaned(&"é".repeat(2_000)).unwrap(), "é".repeat(2_000));
    }
}
