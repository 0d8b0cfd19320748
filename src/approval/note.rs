//! The note of an approver, made safe for the agent.

use crate::policy::path;

/// The most characters of a note.
const MAX_CHARACTERS: usize = 2_000;

/// The note with unprintable characters escaped, cut to the limit; `None` if it is empty.
pub(super) fn sanitize(note: &str) -> Option<String> {
    let note = note.trim();
    // Cut first: escaping only makes it longer.
    let beginning: String = note.chars().take(MAX_CHARACTERS + 1).collect();
    let mut shown = path::escape(beginning.as_bytes());
    if let Some((end, _)) = shown.char_indices().nth(MAX_CHARACTERS) {
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
        assert_eq!(sanitize("not now, später").as_deref(), Some("not now, später"));
        assert_eq!(
            sanitize("a\nb\u{1b}[2J\u{202e}c\u{200b}").as_deref(),
            Some("a\\nb\\u{1b}[2J\\u{202e}c\\u{200b}")
        );
    }

    #[test]
    fn an_empty_note_is_none() {
        assert_eq!(sanitize(""), None);
        assert_eq!(sanitize(" \n"), None);
    }

    #[test]
    fn a_long_note_is_cut() {
        for note in ["x".repeat(1_000_000), "\u{202e}".repeat(1_999), "é".repeat(2_001)] {
            let sanitized = sanitize(&note).unwrap();
            assert_eq!(sanitized.chars().count(), MAX_CHARACTERS);
            assert!(sanitized.ends_with('…'));
        }
        assert_eq!(sanitize(&"é".repeat(2_000)).unwrap(), "é".repeat(2_000));
    }
}
