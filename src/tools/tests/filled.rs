//! The words of a custom tool: each placeholder filled once, with exactly what was given.

use std::ffi::OsString;

use proptest::prelude::*;

use super::super::custom::filled;
use crate::config::{ArgKind, CustomArg};

fn arg(name: &str) -> CustomArg {
    CustomArg {
        name: name.to_owned(),
        kind: ArgKind::Text,
        description: None,
    }
}

/// A piece of a template, and what it comes to.
#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Place(usize),
}

const NAMES: [&str; 4] = ["a", "b", "path", "naïve"];

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let text = prop_oneof![
        // No brace of its own: what is text and what a place is known beforehand.
        "[^{}]{0,6}",
        Just("}".to_owned()),
        Just("{}".to_owned()),
        Just("{ a}".to_owned()),
        Just("{A}".to_owned()),
        Just("{unknown}".to_owned()),
    ];
    let piece = prop_oneof![text.prop_map(Piece::Text), (0..NAMES.len()).prop_map(Piece::Place)];
    prop::collection::vec(piece, 0..8)
}

fn values() -> impl Strategy<Value = Vec<String>> {
    let value = prop_oneof![
        any::<String>(),
        Just("{a}".to_owned()),
        Just("{b}{path}".to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("a}".to_owned()),
        Just("{{naïve}}".to_owned()),
        Just("$(id) `id` ; & | \n".to_owned()),
        Just(String::new()),
    ];
    prop::collection::vec(value, NAMES.len())
}

fn fill(word: &str, values: &[String]) -> OsString {
    let args = NAMES.map(arg);
    let values: Vec<(&CustomArg, OsString)> = args
        .iter()
        .zip(values)
        .map(|(arg, value)| (arg, value.into()))
        .collect();
    filled(word, &values)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn each_word_is_its_text_with_each_argument_in_its_place(pieces in pieces(), values in values()) {
        let word: String = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Place(index) => format!("{{{}}}", NAMES[*index]),
        }).collect();
        let expected: String = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Place(index) => values[*index].clone(),
        }).collect();
        prop_assert_eq!(fill(&word, &values), OsString::from(expected));
    }

    #[test]
    fn a_word_without_places_stays_as_it_is(word in "[^{]*") {
        let values = vec!["x".to_owned(); NAMES.len()];
        prop_assert_eq!(fill(&word, &values), OsString::from(word));
    }
}

#[test]
fn what_is_put_in_is_not_looked_at_again() {
    let values = ["{b}", "B", "", ""].map(str::to_owned);
    assert_eq!(fill("{a}{b}", &values), OsString::from("{b}B"));
    let halves = ["{", "B", "", ""].map(str::to_owned);
    // A brace that was put in and a brace that stood there make no place together.
    assert_eq!(fill("{a}b}", &halves), OsString::from("{b}"));
}

#[test]
fn a_brace_that_opens_nothing_hides_no_place_after_it() {
    let values = ["A", "B", "", ""].map(str::to_owned);
    assert_eq!(fill("{{a}", &values), OsString::from("{A"));
    assert_eq!(fill("{x{b}}", &values), OsString::from("{xB}"));
    assert_eq!(fill("{", &values), OsString::from("{"));
    assert_eq!(fill("{a}-{a}-{a}", &values), OsString::from("A-A-A"));
}

#[test]
fn what_is_no_text_is_put_in_byte_by_byte() {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    let path = arg("a");
    let value = OsString::from_vec(b"/w/\xff{a}".to_vec());
    let filled = filled("--in={a}", &[(&path, value)]);
    assert_eq!(filled.as_bytes(), b"--in=/w/\xff{a}");
}
