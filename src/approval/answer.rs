//! A typed line → an answer.

use super::note::sanitize;
use crate::policy::path;

/// The answer in a typed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedAnswer {
    Yes,
    Session,
    No(Reason),
    View,
    Why,
    Unknown,
}

/// The reason for a no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// Not typed yet.
    Missing,
    Typed(String),
}

/// Parses the line.
pub(super) fn parse(line: &[u8]) -> TypedAnswer {
    match line {
        b"y" | b"yes" => TypedAnswer::Yes,
        b"s" => TypedAnswer::Session,
        b"v" => TypedAnswer::View,
        b"?" => TypedAnswer::Why,
        b"n" | b"no" => TypedAnswer::No(Reason::Missing),
        _ => match line.strip_prefix(b"n ").or_else(|| line.strip_prefix(b"no ")) {
            Some(rest) => TypedAnswer::No(reason(rest).map_or(Reason::Missing, Reason::Typed)),
            None => TypedAnswer::Unknown,
        },
    }
}

/// The reason for the agent: without control characters.
pub(super) fn reason(line: &[u8]) -> Option<String> {
    let letters: Vec<u8> = line.iter().copied().filter(|byte| !byte.is_ascii_control()).collect();
    sanitize(&path::escape(&letters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_its_letters_and_nothing_like_them_is_one() {
        for (line, meaning) in [
            ("y", TypedAnswer::Yes),
            ("yes", TypedAnswer::Yes),
            ("s", TypedAnswer::Session),
            ("v", TypedAnswer::View),
            ("?", TypedAnswer::Why),
            ("n", TypedAnswer::No(Reason::Missing)),
            ("no", TypedAnswer::No(Reason::Missing)),
            ("n  ", TypedAnswer::No(Reason::Missing)),
            ("n not now", TypedAnswer::No(Reason::Typed("not now".to_owned()))),
            ("no y", TypedAnswer::No(Reason::Typed("y".to_owned()))),
        ] {
            assert_eq!(parse(line.as_bytes()), meaning, "{line:?}");
        }
        for line in [
            "",
            " ",
            "Y",
            "y ",
            " y",
            "yy",
            "ye",
            "s y",
            "ny",
            "nyes",
            "vv",
            "v y",
            "y\0",
            "\u{1b}[Ay",
        ] {
            assert_eq!(parse(line.as_bytes()), TypedAnswer::Unknown, "{line:?}");
        }
    }

    #[test]
    fn a_reason_is_one_line_of_visible_letters_and_bounded() {
        assert_eq!(reason(b"  use make instead \t"), Some("use make instead".to_owned()));
        assert_eq!(reason(b"\x1b[A\r\n\x07"), Some("[A".to_owned()));
        assert_eq!(reason(b" \x1b \n"), None);
        assert_eq!(
            reason("a\u{202e}b\u{9b}".as_bytes()),
            Some("a\\u{202e}b\\u{9b}".to_owned())
        );
        assert_eq!(reason(b"\xff"), Some("\\xff".to_owned()));
        assert!(reason("é".repeat(4000).as_bytes()).is_some_and(|long| long.ends_with('…')));
    }
}
