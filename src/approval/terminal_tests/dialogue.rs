//! The keys beside yes and no: a reason, the pager, and why it is asked.

use super::pager::{ENTER, LEAVE};
use super::*;

const LONG_ONE: (&str, &str) = ("ASK_LONG", "1");
const ONLY: (&str, &str) = ("ASK_APPROVER_ONLY", "1");
const INTERRUPTED: &str = "false None Failure(\"the question was interrupted\")";

#[test]
fn a_no_may_have_a_reason() {
    for (typed, verdict) in [
        (&["n", "not now\n"][..], "false None Approver: not now"),
        (&["n", "\n"], "false None Approver"),
        (&["n use make\n"], "false None Approver: use make"),
        (&["no because\r"], "false None Approver: because"),
        (&["n", "y\n"], "false None Approver: y"),
        (&["n", "a\u{202e}b\x1b[A\n"], "false None Approver: a\\u{202e}b[A"),
    ] {
        let mut session = start("", "", &[]);
        session.prompt(1).type_in(typed[0]);
        for reason in &typed[1..] {
            session.expect("reason (empty: none): ").type_in(reason);
        }
        assert_eq!(session.verdicts(), [verdict], "{typed:?}");
    }
}

#[test]
fn ctrl_c_at_the_reason_is_a_no_without_one() {
    for key in ["\x03", "half a reason\x03", "\x1c", "\x04"] {
        let mut session = start("", "", &[("ASK_COUNT", "2")]);
        session.prompt(1).type_in("n").expect("reason").type_in(key);
        session.prompt(2).type_in("y\n");
        assert_eq!(
            session.verdicts(),
            ["false None Approver", "true None Approver"],
            "{key:?}"
        );
    }
}

#[test]
fn a_timeout_at_the_reason_is_a_no_without_one() {
    let (session, _) = in_time(&[], "n", "reason");
    assert_eq!(session.verdicts(), ["false None Approver"]);
}

/// A question at which `typed` has brought up `text` before its time was over, and that time. A busy machine takes more of
/// it.
fn in_time(envs: &[(&str, &str)], typed: &str, text: &str) -> (Session, Duration) {
    for seconds in [1, 4, 16, 64] {
        let time = Duration::from_secs(seconds);
        let millis = time.as_millis().to_string();
        let mut session = start("", "", &[envs, &[("ASK_TIMEOUT_MS", &millis)]].concat());
        session.prompt(1).type_in(typed);
        if session.shows(text) {
            session.type_in("half");
            return (session, time);
        }
    }
    panic!("{text} never came before the timeout");
}

#[test]
fn a_withdrawal_at_the_reason_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let now = dir.path().join("now");
    let mut session = start("", "", &[("ASK_CANCEL_WHEN_EXISTS", now.to_str().unwrap())]);
    session.prompt(1).type_in("n").expect("reason");
    std::fs::write(&now, "").unwrap();
    assert_eq!(session.verdicts(), [WITHDRAWN]);
}

#[test]
fn why_is_told_as_often_as_it_is_wanted() {
    let mut session = start("", "", &[]);
    for _ in 0..5 {
        session.expect("approve? [y/n/s/?] ").type_in("?");
        session.expect("agent.yaml:3:5: the default asks");
        session.expect("a rule would allow it");
    }
    session.expect("approve? ").type_in("y\n");
    assert_eq!(session.verdicts(), ["true None Approver"]);
}

#[test]
fn ctrl_c_after_why_denies() {
    let mut session = start("", "", &[]);
    session.prompt(1).type_in("?").prompt(2).type_in("\x03");
    assert_eq!(session.verdicts(), [INTERRUPTED]);
}

#[test]
fn the_pager_is_offered_where_something_was_left_out_alone() {
    let mut session = start("", "", &[]);
    session.expect("approve? [y/n/s/?] ").type_in("v");
    session.expect("Please press y, n, s or ?.").expect("approve? ").deny();
    let (verdicts, shown) = session.end();
    assert_eq!(verdicts, ["false None Approver"]);
    assert!(!shown.contains(ENTER), "{shown:?}");
}

#[test]
fn the_pager_shows_all_of_it_and_asks_again() {
    let mut session = start("", "", &[LONG_ONE]);
    session.expect("more lines]").expect("approve? [v/n/?] ").type_in("v");
    session.expect(ENTER).expect("line 1-10 of 103");
    for (key, place) in [
        (" ", "line 11-20 of"),
        ("\r", "line 12-21 of"),
        ("\x1b[B", "line 13-22 of"),
        ("\x1b[A", "line 12-21 of"),
        ("b", "line 2-11 of"),
        ("x", "line 2-11 of"),
        ("G", "line 94-103 of"),
        ("g", "line 1-10 of"),
    ] {
        session.type_in(key).expect(place);
    }
    session
        .type_in("q")
        .expect(LEAVE)
        .expect("Stockade asks")
        .expect("approve? [y/n/s/v/?] ");
    session.type_in("s\n");
    let (verdicts, shown) = session.end();
    assert_eq!(verdicts, ["true Session Approver"]);
    assert!(shown.contains("change 100"), "{shown:?}");
}

#[test]
fn what_is_typed_in_the_pager_is_no_answer() {
    let mut session = start("", "", &[LONG_ONE]);
    session.prompt(1).type_in("v").expect("of 103").type_in("y\ny\rqy\n");
    session.expect(LEAVE).prompt(2).still_asks().deny();
    assert_eq!(session.verdicts(), ["false None Approver"]);
}

#[test]
fn where_all_must_be_seen_a_yes_counts_after_the_last_page() {
    let mut session = start("", "", &[LONG_ONE, ONLY]);
    session
        .expect("approve? [v/n/?] ")
        .type_in("y\n")
        .expect("Please press v and see all of it first.");
    session
        .expect("approve? [v/n/?] ")
        .type_in("v")
        .expect("line 1-10 of 103")
        .type_in(" q");
    session
        .expect(LEAVE)
        .expect("approve? [v/n/?] ")
        .type_in("y\n")
        .expect("Please press v");
    session
        .expect("approve? [v/n/?] ")
        .type_in("v")
        .expect("line 1-10 of 103")
        .type_in("G")
        .expect("the end");
    session
        .type_in("q")
        .expect(LEAVE)
        .expect("approve? [y/n/v/?] ")
        .type_in("s\n")
        .expect("Please press y, n, v or ?.");
    session.expect("approve? [y/n/v/?] ").type_in("y\n");
    assert_eq!(session.verdicts(), ["true None Approver"]);
}

#[test]
fn no_yes_counts_to_what_was_not_shown_to_its_end() {
    for yes in ["y", "s"] {
        let mut session = start("", "", &[LONG_ONE]);
        session
            .expect("approve? [v/n/?] ")
            .type_in(yes)
            .expect("Please press v and see all of it first.");
        session
            .expect("approve? [v/n/?] ")
            .type_in("v")
            .expect("line 1-10 of 103")
            .type_in(" q");
        session
            .expect(LEAVE)
            .expect("approve? [v/n/?] ")
            .type_in(yes)
            .expect("Please press v");
        session.expect("approve? [v/n/?] ").deny();
        assert_eq!(session.verdicts(), ["false None Approver"], "{yes:?}");
    }
}

#[test]
fn ctrl_c_in_the_pager_denies_and_restores_the_screen() {
    for (key, verdict) in [
        ("\x03", INTERRUPTED),
        ("\x1c", INTERRUPTED),
        (
            "\x04",
            "false None Failure(\"the terminal gave no answer (end of input)\")",
        ),
    ] {
        let mut session = start("", "", &[LONG_ONE, ("ASK_COUNT", "2")]);
        session
            .prompt(1)
            .type_in("v")
            .expect("of 103")
            .type_in(key)
            .expect(LEAVE);
        session.prompt(2).deny();
        assert_eq!(session.verdicts(), [verdict, "false None Approver"], "{key:?}");
    }
}

#[test]
fn no_answer_in_time_denies_in_the_pager_too() {
    let (session, time) = in_time(&[LONG_ONE], "v", "of 103");
    let (verdicts, shown) = session.end();
    assert_eq!(verdicts, [format!("false None Failure(\"no answer within {time:?}\")")]);
    assert!(shown.contains(LEAVE), "{shown:?}");
}

#[test]
fn a_withdrawal_ends_the_pager() {
    let dir = tempfile::tempdir().unwrap();
    let now = dir.path().join("now");
    let mut session = start("", "", &[LONG_ONE, ("ASK_CANCEL_WHEN_EXISTS", now.to_str().unwrap())]);
    session.prompt(1).type_in("v").expect("of 103");
    std::fs::write(&now, "").unwrap();
    let (verdicts, shown) = session.end();
    assert_eq!(verdicts, [WITHDRAWN]);
    assert!(shown.contains(LEAVE), "{shown:?}");
}

#[test]
fn a_terminal_without_sequences_is_sent_none() {
    let mut session = start("", "", &[LONG_ONE, ("TERM", "dumb")]);
    session
        .prompt(1)
        .type_in("v")
        .expect("line 1-10 of 103")
        .type_in("G")
        .expect("change 100")
        .type_in("q");
    session.prompt(2).type_in("?").prompt(3).type_in("y\n");
    let (verdicts, shown) = session.end();
    assert_eq!(verdicts, ["true None Approver"]);
    assert!(!shown.contains('\x1b'), "{shown:?}");
}

#[test]
fn the_locale_chooses_the_letters_of_the_frame() {
    for (locale, first) in [("C.UTF-8", "╭─ "), ("C", "+-- ")] {
        let mut session = start("", "", &[("LC_ALL", locale), ("NO_COLOR", "1")]);
        session
            .expect(&format!("{first}Stockade asks"))
            .prompt(1)
            .type_in("y\n");
        assert_eq!(session.verdicts(), ["true None Approver"]);
    }
}
