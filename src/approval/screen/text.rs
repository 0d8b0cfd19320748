//! Text of any kind → text that stays where it is put: nothing in it moves the cursor, and its width is known.

use unicode_general_category::{GeneralCategory, get_general_category};

use super::look::Letters;
use crate::policy::path;

/// How many marks may stand on one letter.
const MARKS: usize = 3;

/// Whether a backslash is doubled. It is as soon as anything of a question is escaped: else an escape looks like the
/// same letters typed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backslash {
    Single,
    Doubled,
}

/// The line as it is shown.
pub(super) fn visible(line: &[u8], letters: Letters, backslash: Backslash) -> String {
    settled(
        &match backslash {
            Backslash::Single => path::escape(line),
            Backslash::Doubled => path::escape_backslashes(line),
        },
        letters,
    )
}

/// Whether something in the line is shown as an escape.
pub(super) fn hides(line: &[u8], letters: Letters) -> bool {
    path::is_escaped(line) || {
        let seen = path::escape(line);
        settled(&seen, letters) != seen
    }
}

/// What Stockade itself says of the regime, in letters that the terminal knows.
pub(super) fn told(regime: &str, letters: Letters) -> String {
    match letters {
        Letters::Ascii => regime.replace('·', "-"),
        Letters::Unicode => regime.to_owned(),
    }
}

/// Escapes what this terminal does not know, and marks that have no letter of the line to stand on or stand on one by
/// the dozen: they would be drawn onto what is beside.
fn settled(seen: &str, letters: Letters) -> String {
    let mut settled = String::with_capacity(seen.len());
    let mut room = 0_usize;
    for c in seen.chars() {
        let stands = match (c.is_ascii(), letters) {
            (true, Letters::Ascii | Letters::Unicode) => true,
            (false, Letters::Ascii) => false,
            (false, Letters::Unicode) => !is_mark(c) || room > 0,
        };
        room = if is_mark(c) {
            room.saturating_sub(1)
        } else if c == ' ' {
            0
        } else {
            MARKS
        };
        if stands {
            settled.push(c);
        } else {
            settled.extend(c.escape_unicode());
        }
    }
    settled
}

fn is_mark(c: char) -> bool {
    !c.is_ascii()
        && matches!(
            get_general_category(c),
            GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark
        )
}

/// The columns that the character takes at most, on whatever terminal.
///
/// Terminals disagree on nearly everything outside ASCII. What is counted too wide is broken too early; what was counted
/// too narrow would be broken by the terminal, and go on where only Stockade's own lines begin.
pub(super) const fn columns_of(c: char) -> usize {
    match c {
        '\0'..='\x7f' => 1,
        '\u{17d8}' | '\u{2e3b}' => 3,
        _ => 2,
    }
}

/// The columns that the text takes at most.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Where a line may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Break {
    /// Where the room ends.
    Anywhere,
    /// Before a blank, if there is one near the end of the room. Before it: behind it, one could not tell that it
    /// is there.
    BeforeBlank,
}

/// The text in pieces of at most `room` columns, at least one; no mark is parted from its letter.
pub(super) fn broken(text: &str, room: usize, at: Break) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(end) = end_of_piece(rest, room, at) {
        let (piece, behind) = rest.split_at(end);
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(rest);
    pieces
}

/// Where the first piece ends; `None` if it is the last.
fn end_of_piece(text: &str, room: usize, at: Break) -> Option<usize> {
    let (mut used, mut blank) = (0, None);
    let mut rest = text.char_indices().peekable();
    while let Some((start, c)) = rest.next() {
        let mut columns = columns_of(c);
        while let Some((_, mark)) = rest.next_if(|(_, next)| is_mark(*next)) {
            columns += columns_of(mark);
        }
        if used + columns > room && used > 0 {
            return match at {
                Break::Anywhere => Some(start),
                Break::BeforeBlank if c == ' ' => Some(start),
                Break::BeforeBlank => blank.or(Some(start)),
            };
        }
        if c == ' ' && used > room / 2 {
            blank = Some(start);
        }
        used += columns;
    }
    None
}

/// Stockade's own text in lines of at most `room` columns, broken at blanks where there are any.
pub(super) fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').flat_map(|word| broken(word, room, Break::Anywhere)) {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if width(line) + 1 + width(word) <= room => line.extend([" ", word]),
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthChar as _;

    use super::*;

    fn shown(text: &str) -> String {
        visible(text.as_bytes(), Letters::Unicode, Backslash::Single)
    }

    #[test]
    fn a_mark_stands_on_a_letter_or_is_escaped() {
        assert_eq!(shown("e\u{301} n\u{303}"), "e\u{301} n\u{303}");
        assert_eq!(shown("\u{301}e"), "\\u{301}e");
        assert_eq!(shown("- \u{20d2}"), "- \\u{20d2}");
        let many = format!("e{}", "\u{301}".repeat(5));
        assert_eq!(
            shown(&many),
            format!("e{}\\u{{301}}\\u{{301}}", "\u{301}".repeat(MARKS))
        );
        assert!(hides(many.as_bytes(), Letters::Unicode) && !hides("e\u{301}".as_bytes(), Letters::Unicode));
    }

    #[test]
    fn a_terminal_of_single_bytes_is_sent_ascii_alone() {
        // The second byte of this letter is there the beginning of an escape sequence.
        let hostile = "\u{421b}2J é";
        assert_eq!(
            visible(hostile.as_bytes(), Letters::Ascii, Backslash::Single),
            "\\u{421b}2J \\u{e9}"
        );
        assert_eq!(shown(hostile), hostile);
        assert!(hides("é".as_bytes(), Letters::Ascii) && !hides("é".as_bytes(), Letters::Unicode));
    }

    #[test]
    fn no_character_is_counted_narrower_than_terminals_take_it() {
        for c in ('\u{20}'..=char::MAX).filter(|c| !path::is_escaped(c.to_string().as_bytes())) {
            assert!(columns_of(c) >= c.width_cjk().unwrap_or(0), "{c:?}");
        }
    }

    #[test]
    fn no_piece_begins_with_a_mark_or_passes_the_room() {
        let text = "ae\u{301}\u{302}\u{303}日 e\u{301}x".repeat(20);
        for room in 8..30 {
            for at in [Break::Anywhere, Break::BeforeBlank] {
                let pieces = broken(&text, room, at);
                assert_eq!(pieces.concat(), text);
                for piece in pieces {
                    let begins = !piece.starts_with(is_mark);
                    assert!(begins && width(piece) <= room, "{piece:?} in {room}");
                }
            }
        }
        assert_eq!(broken("", 10, Break::Anywhere), [""]);
    }

    #[test]
    fn a_value_is_broken_so_that_a_blank_at_the_break_is_seen() {
        let pieces = |text| broken(text, 10, Break::BeforeBlank);
        assert_eq!(pieces("a command as it is"), ["a command", " as it is"]);
        assert_eq!(pieces("abcdefghij klm"), ["abcdefghij", " klm"]);
        assert_eq!(pieces("abcdefghijklm"), ["abcdefghij", "klm"]);
        assert_eq!(pieces("a bcdefghijklm"), ["a bcdefghi", "jklm"]);
        assert_eq!(pieces(&" ".repeat(12)).concat(), " ".repeat(12));
    }

    #[test]
    fn own_text_is_broken_at_blanks() {
        assert_eq!(wrapped("y: yes, once; n: no", 9), ["y: yes,", "once; n:", "no"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
