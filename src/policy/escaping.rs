//! Arbitrary bytes → text that is fully visible.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The text in which a name of any bytes is shown to a person: printable characters as they are,
/// everything that could move a cursor, hide or reorder text as an escape. Backslashes are doubled: a name that
/// spells an escape out is not shown as one that has to be escaped.
pub fn display(path: impl AsRef<OsStr>) -> String {
    escape_backslashes(path.as_ref().as_bytes())
}

/// [`display`] for bytes that are not a name: a command line, a program's output.
///
/// A backslash stands for itself, so the text alone does not tell an escape from the same letters
/// in the bytes; where that matters, [`escape_backslashes`] does.
pub fn escape(bytes: &[u8]) -> String {
    escaped(bytes, Backslash::Single)
}

/// [`escape`] with each backslash doubled: no two values of bytes are shown as the same text.
pub fn escape_backslashes(bytes: &[u8]) -> String {
    escaped(bytes, Backslash::Doubled)
}

/// Whether [`escape`] shows some of the bytes as an escape.
pub fn is_escaped(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or(true, |text| text.chars().any(is_invisible))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backslash {
    Single,
    Doubled,
}

fn escaped(bytes: &[u8], backslash: Backslash) -> String {
    use std::fmt::Write as _;
    // A fast path: nothing to escape.
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
    if let (true, Ok(text)) = (bytes.iter().all(plain), std::str::from_utf8(bytes)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' if backslash == Backslash::Doubled => out.push_str("\\\\"),
                _ if is_invisible(c) => out.extend(c.escape_default()),
                _ => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _infallible = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// Invisible letters and marks that have a visible general category: every
/// `Default_Ignorable_Code_Point` of `DerivedCoreProperties.txt` (Unicode 14 to 16 have the same), then the blank
/// symbols: Braille without dots, a musical null notehead, Egyptian blanks, the Khitan filler.
const INVISIBLE: [std::ops::RangeInclusive<char>; 21] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fff8}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
    '\u{2800}'..='\u{2800}',
    '\u{1d159}'..='\u{1d159}',
    '\u{13441}'..='\u{13442}',
    '\u{16fe4}'..='\u{16fe4}',
];

fn is_invisible(c: char) -> bool {
    use unicode_general_category::{GeneralCategory as Category, get_general_category};
    // A fast path: of ASCII only control characters are invisible.
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    match get_general_category(c) {
        Category::Control
        | Category::Format
        | Category::LineSeparator
        | Category::ParagraphSeparator
        | Category::PrivateUse
        | Category::SpaceSeparator
        | Category::Surrogate
        | Category::Unassigned => true,
        _ => INVISIBLE.iter().any(|range| range.contains(&c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_shown_escaped() {
        assert_eq!(display(OsStr::from_bytes(b"/a\n\x1b[2J\xff")), "/a\\n\\u{1b}[2J\\xff");
        assert_eq!(display("/\u{202e}x"), "/\\u{202e}x");
        assert_eq!(display("/é"), "/é");
    }

    #[test]
    fn letters_and_marks_that_show_nothing_are_escaped_and_those_that_do_are_not() {
        let unseen = "\u{ad}\u{34f}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}\u{180d}\u{180f}\u{2800}\u{3164}\u{fe00}\u{fe0f}\u{ffa0}\u{1d159}\u{e0100}\u{e01ef}";
        for c in unseen.chars() {
            let text = format!("/a{c}b");
            assert_eq!(display(&text), format!("/a\\u{{{:x}}}b", u32::from(c)));
            assert!(is_escaped(text.as_bytes()));
        }
        let seen = "/é日本ㅎᄒ⠁e\u{301}";
        assert_eq!(display(seen), seen);
        assert!(!is_escaped(seen.as_bytes()));
    }

    #[test]
    fn no_two_names_are_shown_alike() {
        assert_eq!(display("/a\nb"), "/a\\nb");
        assert_eq!(display("/a\\nb"), "/a\\\\nb");
        assert_ne!(display(OsStr::from_bytes(b"/\xff")), display("/\\xff"));
    }

    #[test]
    fn with_doubled_backslashes_no_two_texts_look_alike() {
        assert_eq!(escape(b"a\n"), escape(b"a\\n"));
        assert_eq!(escape_backslashes(b"a\n"), "a\\n");
        assert_eq!(escape_backslashes(b"a\\n"), "a\\\\n");
        assert_eq!(escape_backslashes(b"a\xff"), "a\\xff");
        assert_eq!(escape_backslashes(b"a\\xff"), "a\\\\xff");
    }
}
