//! Edits and patches, and what is said of those that do not fit.

use proptest::prelude::*;

use super::*;

fn edited(content: &str, edits: &[(&str, &str)]) -> Result<String, Why> {
    let world = Fixture::new();
    let path = world.file("f", content);
    world.change(edit(&path, edits))?;
    Ok(fs::read_to_string(path).unwrap())
}

fn patched(content: Option<&str>, hunks: &str) -> Result<String, Why> {
    let world = Fixture::new();
    let path = world.os("f");
    if let Some(content) = content {
        fs::write(&path, content).unwrap();
    }
    world.change(patch(&path, hunks))?;
    Ok(fs::read_to_string(path).unwrap())
}

#[test]
fn edits_see_what_those_before_them_did() {
    assert_eq!(edited("a b", &[("a", "c"), ("c b", "d")]), Ok("d".to_owned()));
}

#[test]
fn one_edit_that_does_not_fit_keeps_all_from_being_made() {
    let world = Fixture::new();
    let path = world.file("f", "a b");
    let why = world.change(edit(&path, &[("a", "c"), ("x", "y")]));
    assert_eq!(why, Err(Why::NoMatch { edit: 2, near: None }));
    assert_eq!(fs::read(path).unwrap(), b"a b");
}

#[test]
fn text_that_is_there_more_than_once_is_ambiguous_and_the_lines_are_named() {
    let (lines, count) = (vec![1, 3], 2);
    assert_eq!(
        edited("x\ny\nx\n", &[("x", "z")]),
        Err(Why::Ambiguous { edit: 1, lines, count })
    );
    let many = edited(&"x\n".repeat(20), &[("x", "z")]);
    assert_eq!(
        many,
        Err(Why::Ambiguous {
            edit: 1,
            lines: (1..=10).collect(),
            count: 20
        })
    );
    let overlapping = edited("aaa", &[("aa", "b")]);
    assert_eq!(
        overlapping,
        Err(Why::Ambiguous {
            edit: 1,
            lines: vec![1, 1],
            count: 2
        })
    );
}

#[test]
fn every_occurrence_is_replaced_where_that_is_meant() {
    let world = Fixture::new();
    let path = world.file("f", "x y x");
    world
        .change(Change::Edit {
            path: path.clone(),
            edits: vec![Edit {
                old: "x".to_owned(),
                new: "xx".to_owned(),
                occurrences: Occurrences::Every,
            }],
            max_bytes: None,
        })
        .unwrap();
    assert_eq!(fs::read(path).unwrap(), b"xx y xx");
}

#[test]
fn an_edit_that_changes_nothing_or_looks_for_nothing_is_an_error() {
    assert_eq!(edited("a", &[("a", "a")]), Err(Why::EmptyEdit { edit: 1 }));
    assert_eq!(edited("a", &[("", "b")]), Err(Why::EmptyEdit { edit: 1 }));
}

#[test]
fn a_file_with_carriage_returns_throughout_keeps_them() {
    let content = "one\r\ntwo\r\nthree\r\n";
    assert_eq!(
        edited(content, &[("one\ntwo", "1\n2\n2b")]),
        Ok("1\r\n2\r\n2b\r\nthree\r\n".to_owned())
    );
    assert_eq!(
        edited(content, &[("two", "2\n2b")]),
        Ok("one\r\n2\r\n2b\r\nthree\r\n".to_owned())
    );
    assert_eq!(
        edited(content, &[("one\r\ntwo", "1\r\n2")]),
        Ok("1\r\n2\r\nthree\r\n".to_owned())
    );
}

#[test]
fn in_a_file_with_mixed_line_ends_text_means_what_it_says() {
    let content = "one\r\ntwo\nthree\n";
    assert!(matches!(
        edited(content, &[("one\ntwo", "x")]),
        Err(Why::NoMatch { .. })
    ));
    assert_eq!(
        edited(content, &[("two\nthree", "x\ny")]),
        Ok("one\r\nx\ny\n".to_owned())
    );
}

#[test]
fn a_missing_last_line_end_stays_missing() {
    assert_eq!(edited("a\nb", &[("a", "c")]), Ok("c\nb".to_owned()));
}

#[test]
fn no_text_is_edited_in_what_is_no_text() {
    let why = edited("\x7fELF\0abc", &[("abc", "d")]);
    assert_eq!(
        why,
        Err(Why::Binary {
            what: "ELF program".to_owned(),
            size: 8
        })
    );
}

fn near(why: Result<String, Why>) -> super::super::protocol::Near {
    match why {
        Err(Why::NoMatch { near: Some(near), .. } | Why::Hunk { near: Some(near), .. }) => near,
        other => panic!("{other:?}"),
    }
}

#[test]
fn lines_that_differ_in_white_space_alone_are_named() {
    let content = "fn f() {\n\tlet a = 1;\n\tlet b = 2;\n}\n";
    let found = near(edited(content, &[("    let a = 1;\n    let b = 2;\n", "x")]));
    assert_eq!((found.line, found.difference.as_str()), (2, "only white space differs"));
    assert_eq!(found.text, "\tlet a = 1;\n\tlet b = 2;");
    let part = near(edited(content, &[("let  a =1", "x")]));
    assert_eq!((part.line, part.difference.as_str()), (2, "only white space differs"));
}

#[test]
fn the_most_similar_lines_are_named() {
    let content = format!(
        "{}fn total(items: &[u32]) -> u32 {{\n    items.iter().sum()\n}}\n",
        "// filler\n".repeat(500)
    );
    let found = near(edited(
        &content,
        &[("fn total(items: &[u64]) -> u32 {\n    items.iter().sum()\n", "x")],
    ));
    assert_eq!((found.line, found.difference.as_str()), (501, "a line differs"));
    assert!(found.text.starts_with("fn total(items: &[u32])"), "{found:?}");
}

#[test]
fn nothing_is_called_near_what_is_not() {
    let why = edited("alpha\nbeta\ngamma\n", &[("completely unrelated 0123456789", "x")]);
    assert_eq!(why, Err(Why::NoMatch { edit: 1, near: None }));
}

#[test]
fn in_a_large_file_what_is_near_is_looked_for_without_holding_every_line_against_every_other() {
    let content = "let value = compute(argument, other);\n".repeat(300_000);
    let old = "let value = compute(argument, another);\n".repeat(2000);
    // Every line held against every other would take an hour, which is longer than a test may.
    assert!(matches!(edited(&content, &[(&old, "x")]), Err(Why::NoMatch { .. })));
}

#[test]
fn a_hunk_is_applied_where_it_says_or_at_the_only_place_where_it_fits() {
    let hunk = "@@ -2,2 +2,2 @@\n b\n-c\n+C\n";
    assert_eq!(patched(Some("a\nb\nc\nd\n"), hunk), Ok("a\nb\nC\nd\n".to_owned()));
    assert_eq!(
        patched(Some("x\ny\na\nb\nc\nd\n"), hunk),
        Ok("x\ny\na\nb\nC\nd\n".to_owned())
    );
    // Twice, and not where it says.
    assert!(matches!(
        patched(Some("b\nc\nx\nb\nc\n"), hunk),
        Err(Why::Hunk { hunk: 1, .. })
    ));
    // Twice, and where it says.
    assert_eq!(patched(Some("x\nb\nc\nb\nc\n"), hunk), Ok("x\nb\nC\nb\nc\n".to_owned()));
}

#[test]
fn a_hunk_that_does_not_fit_names_the_nearest_lines() {
    let found = near(patched(
        Some("alpha\n  beta\ngamma\n"),
        "@@ -1,3 +1,3 @@\n alpha\n-beta\n+delta\n gamma\n",
    ));
    assert_eq!((found.line, found.difference.as_str()), (1, "only white space differs"));
}

#[test]
fn later_hunks_stand_where_earlier_ones_have_shifted_them() {
    let hunks = "@@ -1 +1,2 @@\n-a\n+a1\n+a2\n@@ -4 +5 @@\n-x\n+y\n";
    assert_eq!(
        patched(Some("new\na\nb\nc\nx\n"), hunks),
        Ok("new\na1\na2\nb\nc\ny\n".to_owned())
    );
}

#[test]
fn a_patch_makes_a_new_file_but_not_over_one_that_is_there() {
    let hunks = "@@ -0,0 +1,2 @@\n+one\n+two\n";
    assert_eq!(patched(None, hunks), Ok("one\ntwo\n".to_owned()));
    assert_eq!(patched(Some("one\n"), hunks), Err(Why::Exists));
}

#[test]
fn a_missing_last_line_end_is_made_and_taken_away_as_a_patch_says() {
    let without = "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n";
    assert_eq!(patched(Some("a\n"), without), Ok("b".to_owned()));
    let with = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n";
    assert_eq!(patched(Some("a"), with), Ok("b\n".to_owned()));
    // The patch's own last line end was forgotten.
    assert_eq!(patched(Some("a\n"), "@@ -1 +1 @@\n-a\n+b"), Ok("b\n".to_owned()));
}

#[test]
fn a_patch_without_carriage_returns_fits_a_file_with_them() {
    let hunk = "@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n";
    assert_eq!(patched(Some("a\r\nb\r\n"), hunk), Ok("a\r\nc\r\nd\r\n".to_owned()));
}

#[test]
fn a_patch_with_carriage_returns_can_take_them_away() {
    assert_eq!(patched(Some("a\r\n"), "@@ -1 +1 @@\n-a\r\n+a\n"), Ok("a\n".to_owned()));
}

#[test]
fn a_patch_that_would_lose_lines_is_malformed() {
    for hunks in [
        "@@ -1 +1 @@\n-a\n+b\n+c\n",
        "@@ -1,3 +1,1 @@\n-a\n+b\n",
        "@@ -1 +1 @@\n-a\n+b\njunk\n",
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
        "@@ -1 +1\n-a\n+b\n",
        "no hunk",
        "",
    ] {
        let why = patched(Some("a\n"), hunks);
        assert!(matches!(why, Err(Why::Malformed(_))), "{hunks:?}: {why:?}");
    }
}

#[test]
fn a_hunk_that_names_a_line_beyond_the_end_fits_nowhere() {
    for line in ["5", "9223372036854775808", "18446744073709551614"] {
        let inserted = patched(Some("a\nb\n"), &format!("@@ -{line},0 +{line} @@\n+x\n"));
        assert!(matches!(inserted, Err(Why::Hunk { hunk: 1, .. })), "{inserted:?}");
        // Where it fits elsewhere the number is only a hint.
        let replaced = patched(Some("a\nb\n"), &format!("@@ -{line} +{line} @@\n-b\n+x\n"));
        assert_eq!(replaced, Ok("a\nx\n".to_owned()), "{line}");
    }
    let last = patched(Some("a\nb\n"), "@@ -2,0 +3 @@\n+x\n");
    assert_eq!(last, Ok("a\nb\nx\n".to_owned()));
}

/// Content with few words in many lines, so that texts are found again.
fn content() -> impl Strategy<Value = String> {
    proptest::collection::vec("[abc]{0,2}", 0..12)
        .prop_flat_map(|lines| prop_oneof![Just("\n"), Just("\r\n")].prop_map(move |end| lines.join(end)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_edit_comes_to_what_replacing_text_comes_to(before in content(), old in "[abc\n]{1,3}", new in "[abc\n]{0,3}") {
        let crlf = before.contains('\n') && before.matches('\n').count() == before.matches("\r\n").count();
        let spell = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        let (spelled, replacement) = (spell(&old), spell(&new));
        let locations = (0..before.len()).filter(|at| before.is_char_boundary(*at) && before[*at..].starts_with(&spelled));
        let expected = match locations.count() {
            _ if old == new => None,
            1 => Some(before.replace(&spelled, &replacement)),
            _ => None,
        };
        prop_assert_eq!(edited(&before, &[(&old, &new)]).ok(), expected);
    }

    #[test]
    fn the_patch_between_two_texts_leads_from_one_to_the_other(before in content(), after in content()) {
        prop_assume!(before != after && !before.is_empty());
        let diff = diffy::create_patch(&before, &after).to_string();
        let hunks = diff.split_inclusive('\n').skip(2).collect::<String>();
        prop_assert_eq!(patched(Some(&before), &hunks), Ok(after));
    }
}
