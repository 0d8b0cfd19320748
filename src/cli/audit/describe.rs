//! Records as lines of text. Text of an agent is escaped, so it cannot move the cursor.

use serde_json::{Map, Value};

use crate::policy::path::escape;

/// The most characters of one value.
const MAX_CHARS: usize = 300;
/// The most denials in a line.
const MAX_DENIALS: usize = 10;

/// The record as a line.
pub(super) fn record_line(record: &Map<String, Value>) -> String {
    let field = |name: &str| record.get(name).map(value_text).unwrap_or_default();
    let time = field("time").replace('T', " ").replace('Z', "");
    let session: String = field("session").chars().take(8).collect();
    let event = field("event");
    let call = record.get("gen_ai.tool.call.id").map(value_text);
    let call = call.map(|call| format!("#{call} ")).unwrap_or_default();
    format!("{time} {session:8} {event:13} {call}{}\n", event_text(&event, record))
}

/// The text of an event, without time and session.
pub(super) fn event_text(event: &str, record: &Map<String, Value>) -> String {
    let field = |name: &str| record.get(name).map(value_text).unwrap_or_default();
    let also = |before: &str, name: &str| {
        let found = record.get(name).filter(|value| !value.is_null()).map(value_text);
        found
            .filter(|text| !text.is_empty())
            .map(|text| format!("{before}{text}"))
            .unwrap_or_default()
    };
    match event {
        "header" => format!("file {} begins{}", field("file"), also("; removed: ", "removed")),
        "session_start" => format!(
            "stockade {}, process {}, user {}, {} mode; {}",
            field("service.version"),
            field("process.pid"),
            field("process.real_user.id"),
            field("mode"),
            field("regime_line")
        ),
        "profile" => format!(
            "{} in {}, self-test {}{}",
            short(&field("profile")),
            field("regime"),
            field("self_test"),
            also("; not exact: ", "inexact")
        ),
        "call" => format!(
            "{} {}{}",
            field("gen_ai.tool.name"),
            record
                .get("gen_ai.tool.call.arguments")
                .map(raw_text)
                .unwrap_or_default(),
            also(" for ", "caller")
        ),
        "assessment" => format!("needs {}{}", field("needs"), also(": ", "why")),
        "decision" => format!(
            "{} {} by {}{}{}: {}{}{}",
            field("gen_ai.tool.name"),
            field("decision").to_uppercase(),
            field("by"),
            also(" at ", "channel"),
            match field("remember").as_str() {
                "session" => " for the session",
                _ => "",
            },
            field("description"),
            also("; note: ", "note"),
            also("; ", "error.message")
        ),
        "start" => format!(
            "{} in {}, held by {} in {}",
            field("process.command_line"),
            field("process.working_directory"),
            short(&field("profile")),
            field("regime")
        ),
        "end" => format!(
            "{}{}{}{}{}{}{}",
            field("status"),
            also(" ", "process.exit.code"),
            also(" ", "signal"),
            also(", ", "error.message"),
            also(", seconds: ", "duration"),
            also(", bytes of output: ", "output_bytes"),
            also("; protected names could not be restored: ", "unsettled")
        ),
        "violation" if field("what") == "gone" => format!("{} is gone, and cannot be made again", field("file.path")),
        "violation" => format!(
            "{} was {}; {}{}{}{}{}",
            field("file.path"),
            field("what"),
            field("then").replace('_', " "),
            also(", as to its settings ", "settings"),
            also(" and this many more: ", "more_settings"),
            also(", kept in ", "quarantined"),
            match field("is_other_in_head").as_str() {
                "true" => "; HEAD has another version",
                _ => "",
            }
        ),
        "network" => format!(
            "{} bytes sent, {} received{}",
            field("up"),
            field("down"),
            attempts(record)
        ),
        "denials" => denials(record),
        "outcome" => format!("{}{}", field("outcome"), also(": ", "error.message")),
        "session_end" => format!("calls: {}", field("calls")),
        "mended" => format!(
            "{} bytes that a crash left behind the last record were removed",
            field("bytes")
        ),
        _ => value_text(&Value::Object(record.clone())),
    }
}

/// The connection attempts, each as `; HOST:PORT refused`.
fn attempts(record: &Map<String, Value>) -> String {
    let items = record.get("attempts").and_then(Value::as_array);
    let lines = items.into_iter().flatten().map(|attempt| {
        let field = |name: &str| attempt.get(name).map(value_text).unwrap_or_default();
        format!("; {} {}", field("place"), field("result"))
    });
    lines.collect()
}

/// The denials, and how many more there were.
fn denials(record: &Map<String, Value>) -> String {
    let items = record.get("blocked").and_then(Value::as_array);
    let items: Vec<&Map<String, Value>> = items.into_iter().flatten().filter_map(Value::as_object).collect();
    let count = |name: &str| record.get(name).and_then(Value::as_u64).unwrap_or_default();
    let mut parts: Vec<String> = items.iter().take(MAX_DENIALS).map(|item| denial(item)).collect();
    match (items.len().saturating_sub(MAX_DENIALS) as u64).saturating_add(count("more")) {
        0 => {}
        more => parts.push(format!("{more} more")),
    }
    match count("unseen") {
        0 => {}
        unseen => parts.push(format!("{unseen} attempts were not looked at")),
    }
    if items.is_empty() {
        parts.insert(0, "nothing that was seen was denied".to_owned());
    }
    parts.join("; ")
}

/// `make /usr/x by mounts, 2 times: grant read /usr (preset system:9)`.
pub(super) fn denial(denial: &Map<String, Value>) -> String {
    let field = |name: &str| denial.get(name).map(value_text).unwrap_or_default();
    let times = match denial.get("times").and_then(Value::as_u64) {
        None | Some(0 | 1) => String::new(),
        Some(times) => format!(", {times} times"),
    };
    let clause = match (field("clause"), field("origin")) {
        (clause, _) if clause.is_empty() => String::new(),
        (clause, origin) if origin.is_empty() => format!(": {clause}"),
        (clause, origin) => format!(": {clause} ({origin})"),
    };
    format!(
        "{} {} by {}{times}{clause}",
        field("wanted"),
        field("what"),
        field("by")
    )
}

fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

/// A value as JSON, escaped: what a caller wrote cannot pass for text of Stockade.
pub(super) fn raw_text(value: &Value) -> String {
    truncate(escape(value.to_string().as_bytes()))
}

/// A value that Stockade wrote as text, escaped.
pub(super) fn value_text(value: &Value) -> String {
    let shown = match value {
        Value::Null => String::new(),
        Value::String(text) => escape(text.as_bytes()),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().map(value_text).collect::<Vec<_>>().join("; ")
        }
        Value::Object(members) => match (members.get("text"), members.get("bytes")) {
            (Some(Value::String(beginning)), Some(bytes)) => {
                format!("{}… ({bytes} bytes)", escape(beginning.as_bytes()))
            }
            _ => escape(value.to_string().as_bytes()),
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => escape(value.to_string().as_bytes()),
    };
    truncate(shown)
}

fn truncate(shown: String) -> String {
    if shown.chars().count() <= MAX_CHARS {
        return shown;
    }
    format!("{}…", shown.chars().take(MAX_CHARS).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_an_agent_wrote_moves_a_cursor_or_makes_a_line() {
        let evil = "\u{1b}[2J\u{202e}\n2026-01-01 forged";
        for event in [
            "call",
            "decision",
            "start",
            "outcome",
            "violation",
            "network",
            "denials",
            evil,
        ] {
            let value = serde_json::json!({
                "time": evil, "session": evil, "event": event, "gen_ai.tool.name": evil, "more": 3, "unseen": 4,
                "blocked": [{"wanted": evil, "what": evil, "times": 2, "by": evil, "clause": evil, "origin": evil, "change": [evil]}],
                "gen_ai.tool.call.arguments": {"command": evil, "cut": {"text": evil, "bytes": 7}},
                "process.command_line": {"text": evil, "bytes": 9}, "error.message": evil, "file.path": evil, "attempts": [{"place": evil}],
                "note": evil,
            });
            let line = record_line(value.as_object().unwrap());
            assert!(
                !line.trim_end_matches('\n').contains(['\n', '\u{1b}', '\u{202e}']),
                "{line:?}"
            );
        }
    }

    #[test]
    fn what_a_caller_chose_is_shown_as_it_was_written() {
        let value = serde_json::json!({
            "event": "call", "gen_ai.tool.name": "send_mail",
            "gen_ai.tool.call.arguments": {"to": "thief", "text": "good morning", "bytes": 12, "sha256": "0"},
        });
        let line = record_line(value.as_object().unwrap());
        assert!(line.contains(r#""to":"thief""#), "{line}");
    }

    #[test]
    fn a_decision_is_described_with_who_and_where() {
        let value = serde_json::json!({
            "time": "2026-11-23T07:12:24.123Z", "session": "0123456789", "event": "decision", "gen_ai.tool.call.id": "3",
            "gen_ai.tool.name": "shell", "decision": "denied", "by": "approver", "channel": "terminal", "remember": "none",
            "description": "run a command", "note": "not now",
        });
        assert_eq!(
            record_line(value.as_object().unwrap()),
            "2026-11-23 07:12:24.123 01234567 decision      #3 shell DENIED by approver at terminal: run a command; note: not now\n"
        );
    }

    #[test]
    fn denials_are_described_with_their_clauses_and_the_rest_is_counted() {
        let item = |what: &str| {
            serde_json::json!({"wanted": "make", "what": what, "times": 1, "by": "mounts", "clause": "grant read /usr",
                               "origin": "preset system:9", "change": ["a root"]})
        };
        let line = |count: usize, more: u64, unseen: u64| {
            let blocked: Vec<Value> = (0..count).map(|number| item(&format!("/usr/{number}"))).collect();
            let record = serde_json::json!({"event": "denials", "blocked": blocked, "more": more, "unseen": unseen});
            record_line(record.as_object().unwrap())
        };
        let one = line(1, 0, 0);
        assert!(
            one.ends_with(" make /usr/0 by mounts: grant read /usr (preset system:9)\n"),
            "{one}"
        );
        let many = line(12, 3, 4);
        assert!(
            many.ends_with("; 5 more; 4 attempts were not looked at\n") && !many.contains("/usr/10"),
            "{many}"
        );
        assert!(line(0, 0, 0).contains("nothing that was seen was denied"));
    }
}
