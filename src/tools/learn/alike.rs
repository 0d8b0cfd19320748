//! Names with letters in them that look like others.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::{Component, Path};

/// The letters of other scripts that look like Latin ones: phonetic, Greek and Coptic, Cyrillic, Armenian, Cherokee, Lisu.
const ALIKE: &[RangeInclusive<char>] = &[
    '\u{250}'..='\u{2af}',
    '\u{370}'..='\u{58f}',
    '\u{13a0}'..='\u{13ff}',
    '\u{1c80}'..='\u{1c8f}',
    '\u{1d00}'..='\u{1dbf}',
    '\u{1f00}'..='\u{1fff}',
    '\u{2c80}'..='\u{2cff}',
    '\u{2de0}'..='\u{2dff}',
    '\u{a4d0}'..='\u{a4ff}',
    '\u{a640}'..='\u{a69f}',
    '\u{ab30}'..='\u{abbf}',
];

/// The first name of a path with a word in it that has letters of both sorts, with the others as numbers: `.\u{435}nv` is no
/// `.env`, and nobody sees that. A word of one script is what it seems to be, also before an ending in another.
pub(super) fn mixed(path: &Path) -> Option<String> {
    path.components().find_map(|component| match component {
        Component::Normal(name) => name.to_str().filter(|name| is_mixed(name)).map(told),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    })
}

fn is_mixed(name: &str) -> bool {
    name.split(|c: char| !c.is_alphanumeric()).any(|word| {
        let is_latin = word.contains(|c: char| c.is_ascii_alphabetic());
        is_latin && word.contains(|c: char| ALIKE.iter().any(|letters| letters.contains(&c)))
    })
}

fn told(name: &str) -> String {
    name.chars().fold(String::new(), |mut told, c| {
        // Writing to a string does not fail.
        let _written = if c.is_ascii() && !c.is_control() {
            write!(told, "{c}")
        } else {
            write!(told, "{}", c.escape_unicode())
        };
        told
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_two_scripts_that_look_alike_is_told_and_one_of_one_script_is_not() {
        for (name, expected) in [
            ("/w/.\u{435}nv", ".\\u{435}nv"),
            ("/w/id_rs\u{430}/x", "id_rs\\u{430}"),
            ("/w/s\u{3b5}crets.yaml", "s\\u{3b5}crets.yaml"),
            ("/w/to\u{138}en/p\u{251}ssword", "p\\u{251}ssword"),
        ] {
            assert_eq!(mixed(Path::new(name)).as_deref(), Some(expected), "{name}");
        }
        for name in [
            "/w/.env",
            "/w/caf\u{e9}/na\u{ef}ve.txt",
            "/w/\u{437}\u{430}\u{43c}\u{435}\u{442}\u{43a}\u{438}.txt",
            "/w/v2-\u{43e}\u{442}\u{447}\u{451}\u{442}.md",
            "/w/\u{3b1}\u{3b2}\u{3b3}",
            "/w/\u{6f22}\u{5b57}abc",
            "/w/stra\u{df}e",
        ] {
            assert_eq!(mixed(Path::new(name)), None, "{name}");
        }
    }
}
