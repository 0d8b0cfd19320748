//! Reports of logs that an agent may have had a hand in.

use std::path::Path;

use serde_json::{Value, json};

use super::builder::ReportBuilder;
use super::model::{Ending, LogReport};
use super::page::page;
use crate::audit::{Fault, Report, Tail, Wrong};
use crate::cli::audit::filter::Decision;

const EVIL: &str = "</script></style>\"'><img src=x onerror=alert(1)><script>alert(1)</script>\u{202e}\u{1b}[2J";

fn intact_report() -> Report {
    Report {
        records: 9,
        files: 1,
        last: None,
        behind: Some(0),
        tail: Tail::Complete,
        removed: None,
        fault: None,
    }
}

fn log_report(records: &[Value], limit: usize, decision: Option<Decision>, report: &Report) -> LogReport {
    let mut builder = ReportBuilder::new(limit);
    for record in records {
        builder.add(record.as_object().unwrap());
    }
    builder.done(Path::new("/var/log/audit.jsonl"), report, decision)
}

fn record(session: &str, event: &str, mut more: Value) -> Value {
    let mut record = json!({"time": "2026-11-23T07:12:24.123Z", "session": session, "event": event});
    record.as_object_mut().unwrap().append(more.as_object_mut().unwrap());
    record
}

fn called(session: &str, call: &str, command: &str) -> Value {
    record(
        session,
        "call",
        json!({"gen_ai.tool.call.id": call, "gen_ai.tool.name": "shell", "gen_ai.tool.call.arguments": {"command": command}}),
    )
}

fn decided(session: &str, call: &str, decision: &str) -> Value {
    record(
        session,
        "decision",
        json!({"gen_ai.tool.call.id": call, "gen_ai.tool.name": "shell", "decision": decision, "by": "approver"}),
    )
}

fn came(session: &str, call: &str, outcome: &str) -> Value {
    record(
        session,
        "outcome",
        json!({"gen_ai.tool.call.id": call, "outcome": outcome}),
    )
}

#[test]
fn calls_have_what_came_of_them_by_session_and_number() {
    let records = [
        called("a", "1", "one"),
        called("b", "1", "two"),
        decided("b", "1", "denied"),
        came("b", "1", "denied"),
        came("a", "1", "done"),
    ];
    let log_report = log_report(&records, 100, None, &intact_report());
    let [a, b] = log_report.sessions.as_slice() else {
        panic!("{log_report:#?}");
    };
    assert_eq!((a.calls[0].what.as_str(), a.calls[0].end), ("one", Ending::Done));
    assert_eq!((b.calls[0].what.as_str(), b.calls[0].end), ("two", Ending::Denied));
    assert_eq!((log_report.counts.calls, log_report.counts.denied), (2, 1));
}

#[test]
fn of_too_many_calls_the_last_are_shown_and_the_others_counted() {
    let mut records: Vec<Value> = (0..5).map(|call| called("a", &call.to_string(), "x")).collect();
    records.push(came("a", "0", "done"));
    let log_report = log_report(&records, 2, None, &intact_report());
    let left: Vec<&str> = log_report.sessions[0]
        .calls
        .iter()
        .map(|call| call.id.as_str())
        .collect();
    assert_eq!((left, log_report.left_out), (vec!["3", "4"], 3));
}

#[test]
fn only_the_shell_is_shown_by_its_command() {
    let arguments = json!({"command": "git status", "to": "thief"});
    let call = |tool: &str| {
        record(
            "a",
            "call",
            json!({"gen_ai.tool.call.id": tool, "gen_ai.tool.name": tool, "gen_ai.tool.call.arguments": arguments}),
        )
    };
    let log_report = log_report(&[call("send_mail"), call("shell")], 9, None, &intact_report());
    let calls = &log_report.sessions[0].calls;
    assert!(calls[0].what.contains("thief"), "{}", calls[0].what);
    assert_eq!(calls[1].what, "git status");
}

#[test]
fn a_session_of_which_no_call_is_shown_is_left_out_and_one_without_calls_is_not() {
    let begun = |session: &str| record(session, "session_start", json!({"mode": "strict"}));
    let records = [
        begun("a"),
        called("a", "1", "x"),
        begun("b"),
        begun("c"),
        called("c", "1", "y"),
    ];
    let log_report = log_report(&records, 1, None, &intact_report());
    let names: Vec<&str> = log_report
        .sessions
        .iter()
        .map(|session| session.name.as_str())
        .collect();
    assert_eq!((names, log_report.left_out), (vec!["b", "c"], 1));
}

#[test]
fn a_wanted_decision_brings_all_of_its_call() {
    let records = [
        called("a", "1", "one"),
        decided("a", "1", "approved"),
        called("a", "2", "two"),
        decided("a", "2", "denied"),
        came("a", "2", "denied"),
    ];
    let log_report = log_report(&records, 100, Some(Decision::Denied), &intact_report());
    let calls = &log_report.sessions[0].calls;
    assert_eq!(calls.len(), 1, "{log_report:#?}");
    let call = &calls[0];
    assert_eq!((call.id.as_str(), call.steps.len()), ("2", 3));
}

#[test]
fn nothing_that_an_agent_wrote_is_markup() {
    let evil = |event: &str| {
        record(
            EVIL,
            event,
            json!({
                "gen_ai.tool.call.id": EVIL, "gen_ai.tool.name": EVIL, "gen_ai.tool.call.arguments": {"command": EVIL},
                "decision": EVIL, "note": EVIL, "description": EVIL, "why": [EVIL], "error.message": EVIL, "outcome": EVIL,
                "process.command_line": EVIL, "process.working_directory": EVIL, "profile": EVIL, "regime": EVIL,
                "self_test": EVIL, "map": [{"clause": EVIL, "origin": EVIL, "held": "residual", "detail": EVIL}],
                "blocked": [{"wanted": EVIL, "what": EVIL, "times": 3, "by": EVIL, "clause": EVIL, "origin": EVIL, "change": [EVIL],
                             "notes": [EVIL]}],
                "attempts": [{"place": EVIL, "result": EVIL, "why": EVIL}], "file.path": EVIL, "what": EVIL,
                "config": [{"path": EVIL, "sha256": EVIL}], "regime_line": EVIL, "mode": EVIL,
            }),
        )
    };
    let events = [
        "session_start",
        "profile",
        "call",
        "assessment",
        "decision",
        "start",
        "network",
        "violation",
        "denials",
        "end",
        "outcome",
        EVIL,
        "session_end",
    ];
    let records: Vec<Value> = events.into_iter().map(evil).collect();
    let report = Report {
        fault: Some(Fault {
            file: Path::new(EVIL).to_owned(),
            line: Some(3),
            seq: Some(2),
            wrong: Wrong::NoHeader,
        }),
        ..intact_report()
    };
    let page = page(&log_report(&records, 100, None, &report));
    assert!(page.contains("onerror=alert(1)"), "the test's own text is not there");
    for (part, times) in [
        ("<script", 0),
        ("</script", 0),
        ("<style", 1),
        ("</style", 1),
        ("<img", 0),
    ] {
        assert_eq!(page.matches(part).count(), times, "{part}");
    }
    assert!(!page.contains(['\u{202e}', '\u{1b}']));
}

#[test]
fn the_page_loads_and_runs_nothing_and_its_policy_names_its_own_style() {
    use base64::Engine as _;
    use sha2::{Digest as _, Sha256};
    let page = page(&log_report(&[called("a", "1", "x")], 100, None, &intact_report()));
    let between = |start: &str, end: &str| {
        let from = page.find(start).unwrap() + start.len();
        &page[from..from + page[from..].find(end).unwrap()]
    };
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(between("<style>", "</style>")));
    assert!(page.contains(&format!("style-src 'sha256-{hash}'")));
    assert!(page.contains("default-src 'none'") && !page.contains("script-src"));
    for outside in ["http:", "https:", "src=", "url(", "@import", " on"] {
        let tags = page
            .split('<')
            .filter_map(|tag| tag.split_once('>'))
            .map(|(tag, _)| tag);
        assert!(
            tags.into_iter()
                .all(|tag| !tag.contains(outside) || tag.starts_with("meta")),
            "{outside}"
        );
    }
}

#[test]
fn a_log_that_was_changed_says_so_first() {
    let report = Report {
        fault: Some(Fault {
            file: Path::new("/var/log/audit.jsonl").to_owned(),
            line: Some(3),
            seq: Some(2),
            wrong: Wrong::NoHeader,
        }),
        ..intact_report()
    };
    let page = page(&log_report(&[called("a", "1", "x")], 100, None, &report));
    assert!(page.contains("role=\"alert\"") && !page.contains("role=\"status\""));
}

fn denied(session: &str, call: &str, count: usize, more: u64) -> Value {
    let one = |number: usize| {
        json!({"wanted": "make", "what": format!("/usr/{number}"), "times": 1, "by": "mounts", "clause": "grant read+execute /usr",
               "origin": "preset system:9", "change": ["a root would permit it"]})
    };
    let blocked: Vec<Value> = (0..count).map(one).collect();
    record(
        session,
        "denials",
        json!({"gen_ai.tool.call.id": call, "blocked": blocked, "more": more, "unseen": 2}),
    )
}

#[test]
fn denials_of_a_command_are_shown_with_their_clauses_and_mark_its_call() {
    let blocked = json!({"wanted": "connect", "what": "192.0.2.1:443", "times": 1, "by": "seccomp", "clause": "network off", "origin": "agent.yaml:7"});
    let connect = record(
        "a",
        "denials",
        json!({"gen_ai.tool.call.id": "1", "blocked": [blocked], "more": 0, "unseen": 0}),
    );
    let records = [
        called("a", "1", "one"),
        denied("a", "1", 2, 0),
        connect,
        came("a", "1", "done"),
        called("a", "2", "two"),
        denied("a", "2", 0, 0),
        came("a", "2", "done"),
    ];
    let log_report = log_report(&records, 100, None, &intact_report());
    assert_eq!(log_report.counts.denials, 3);
    let calls = &log_report.sessions[0].calls;
    assert_eq!(
        calls[0].why,
        [
            "denied: make /usr/0 by mounts: grant read+execute /usr (preset system:9)",
            "denied: make /usr/1 by mounts: grant read+execute /usr (preset system:9)",
            "denied: connect 192.0.2.1:443 by seccomp: network off (agent.yaml:7)"
        ]
    );
    assert!(calls[1].why.is_empty());
    let page = page(&log_report);
    assert_eq!(page.matches("partly stopped").count(), 1);
    assert!(page.contains("a root would permit it"));
}

#[test]
fn a_flood_of_denials_is_counted_and_does_not_swell_the_report() {
    let mut records = Vec::new();
    for call in 0..500 {
        let call = call.to_string();
        records.extend([called("a", &call, "x"), denied("a", &call, 300, 200)]);
    }
    let log_report = log_report(&records, 5_000, None, &intact_report());
    assert_eq!(log_report.counts.denials, 500 * 500);
    let rows = |call: usize| log_report.sessions[0].calls[call].denials.blocked.len();
    assert_eq!((rows(0), rows(499)), (0, 50), "the last calls have them");
    let all: usize = (0..500).map(rows).sum();
    assert_eq!(all, 20_000);
    let why = &log_report.sessions[0].calls[0].why;
    assert_eq!((why.len(), why[5].as_str()), (6, "495 more denied to its command"));
}
