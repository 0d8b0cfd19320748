//! Any text → text of known width that cannot move the cursor.

use unicode_general_category::{GeneralCategory, get_general_category};

use super::layout::Charset;
use crate::policy::path;

/// The most combining marks on one letter.
const MARKS: usize = 3;

/// Whether a backslash is doubled. It is if anything in the question is escaped; else typed text could look like an escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backslash {
    Single,
    Doubled,
}

/// The escaped line.
pub(super) fn visible(line: &[u8], charset: Charset, backslash: Backslash) -> String {
    escape_unsupported(
        &match backslash {
            Backslash::Single => path::escape(line),
            Backslash::Doubled => path::escape_backslashes(line),
        },
        charset,
    )
}

/// Whether something in the line is shown as an escape.
pub(super) fn hides(line: &[u8], charset: Charset) -> bool {
    path::is_escaped(line) || {
        let escaped = path::escape(line);
        escape_unsupported(&escaped, charset) != escaped
    }
}

/// Escapes characters that the terminal does not know, and combining marks without a letter or beyond the limit: they would
/// be drawn over their neighbours.
fn escape_unsupported(text: &str, charset: Charset) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut room = 0_usize;
    for c in text.chars() {
        let stands = match (c.is_ascii(), charset) {
            (true, Charset::Ascii | Charset::Unicode) => true,
            (false, Charset::Ascii) => false,
            (false, Charset::Unicode) => !is_mark(c) || room > 0,
        };
        room = if is_mark(c) {
            room.saturating_sub(1)
        } else if c == ' ' {
            0
        } else {
            MARKS
        };
        if stands {
            escaped.push(c);
        } else {
            escaped.extend(c.escape_unicode());
        }
    }
    escaped
}

pub(super) fn is_mark(c: char) -> bool {
    !c.is_ascii()
        && matches!(
            get_general_category(c),
            GeneralCategory::NonspacingMark | GeneralCategory::SpacingMark | GeneralCategory::EnclosingMark
        )
}

/// The most columns that the character takes on any terminal.
///
/// Terminals disagree outside ASCII. A count that is too high breaks a line too early. One that is too low lets the terminal
/// break it, and content would begin a line.
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
    /// Before a blank, if there is one near the end of the room. Not behind it, where it could not be seen.
    BeforeBlank,
}

/// The text in pieces of at most `room` columns, at least one; no mark is separated from its letter.
pub(super) fn break_lines(text: &str, room: usize, at: Break) -> Vec<&str> {
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

/// The end of the first piece; `None` if it is the last.
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
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text
        .split(' ')
        .flat_map(|word| break_lines(word, room, Break::Anywhere))
    {
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
        visible(text.as_bytes(), Charset::Unicode, Backslash::Single)
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
        assert!(hides(many.as_bytes(), Charset::Unicode) && !hides("e\u{301}".as_bytes(), Charset::Unicode));
    }

    #[test]
    fn a_terminal_of_single_bytes_is_sent_ascii_alone() {
        // The second byte of this letter is there the beginning of an escape sequence.
        let hostile = "\u{421b}2J é";
        assert_eq!(
            visible(hostile.as_bytes(), Charset::Ascii, Backslash::Single),
            "\\u{421b}2J \\u{e9}"
        );
        assert_eq!(shown(hostile), hostile);
        assert!(hides("é".as_bytes(), Charset::Ascii) && !hides("é".as_bytes(), Charset::Unicode));
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
                let pieces = break_lines(&text, room, at);
                assert_eq!(pieces.concat(), text);
                for piece in pieces {
                    let begins = !piece.starts_with(is_mark);
                    assert!(begins && width(piece) <= room, "{piece:?} in {room}");
                }
            }
        }
        assert_eq!(break_lines("", 10, Break::Anywhere), [""]);
    }

    #[test]
    fn a_value_is_broken_so_that_a_blank_at_the_break_is_seen() {
        let pieces = |text| break_lines(text, 10, Break::BeforeBlank);
        assert_eq!(pieces("a command as it is"), ["a command", " as it is"]);
        assert_eq!(pieces("abcdefghij klm"), ["abcdefghij", " klm"]);
        assert_eq!(pieces("abcdefghijklm"), ["abcdefghij", "klm"]);
        assert_eq!(pieces("a bcdefghijklm"), ["a bcdefghi", "jklm"]);
        assert_eq!(pieces(&" ".repeat(12)).concat(), " ".repeat(12));
    }

    #[test]
    fn own_text_is_broken_at_blanks() {
        assert_eq!(wrap("y: yes, once; n: no", 9), ["y: yes,", "once; n:", "no"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
