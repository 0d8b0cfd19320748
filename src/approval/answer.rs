//! What was typed → an answer.

use super::note::cleaned;
use crate::policy::path;

/// What a typed line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    Session,
    No(Reason),
    View,
    Why,
    NotUnderstood,
}

/// Why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// Nothing was said of it yet.
    ToBeAsked,
    Given(String),
}

/// The meaning of the line.
pub(super) fn answer(line: &[u8]) -> Answer {
    match line {
        b"y" | b"yes" => Answer::Yes,
        b"s" => Answer::Session,
        b"v" => Answer::View,
        b"?" => Answer::Why,
        b"n" | b"no" => Answer::No(Reason::ToBeAsked),
        _ => match line.strip_prefix(b"n ").or_else(|| line.strip_prefix(b"no ")) {
            Some(rest) => Answer::No(reason(rest).map_or(Reason::ToBeAsked, Reason::Given)),
            None => Answer::NotUnderstood,
        },
    }
}

/// The reason as the agent is told it: without the keys that are no letters.
pub(super) fn reason(line: &[u8]) -> Option<String> {
    let letters: Vec<u8> = line.iter().copied().filter(|byte| !byte.is_ascii_control()).collect();
    cleaned(&path::escape(&letters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_its_letters_and_nothing_like_them_is_one() {
        for (line, meaning) in [
            ("y", Answer::Yes),
            ("yes", Answer::Yes),
            ("s", Answer::Session),
            ("v", Answer::View),
            ("?", Answer::Why),
            ("n", Answer::No(Reason::ToBeAsked)),
            ("no", Answer::No(Reason::ToBeAsked)),
            ("n  ", Answer::No(Reason::ToBeAsked)),
            ("n not now", Answer::No(Reason::Given("not now".to_owned()))),
            ("no y", Answer::No(Reason::Given("y".to_owned()))),
        ] {
            assert_eq!(answer(line.as_bytes()), meaning, "{line:?}");
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
            assert_eq!(answer(line.as_bytes()), Answer::NotUnderstood, "{line:?}");
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
