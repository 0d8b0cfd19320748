//! What the audit log costs: a whole check of it, what is shown and reported of it, and one record, with and without having
//! it on disk.
//!
//! Prints the median of each, and for `show` and `report` how many times a check of the same log they take. Run with
//! `cargo bench --bench audit`; 100,000 records are to verify in under a second, and the ratios not to grow with the log.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use stockade::audit::event::{Assessment, Call, CallEnd, EXECUTE_TOOL, End, Event, Needs, Start};
use stockade::audit::{AuditLog, Durability, Keeping, LogPaths, Text, verify};

const RECORDS: u64 = 100_000;
/// As many as a session writes at once.
const GROUP: u64 = 100;
/// The records of one call.
const OF_A_CALL: u64 = 5;
const ROUNDS: usize = 7;

fn main() {
    for records in [RECORDS / 10, RECORDS] {
        read(records);
    }
    for (told, durability, count) in [
        ("append, to be on disk later", Durability::Later, 2_000),
        ("append, on disk now", Durability::Now, 200),
    ] {
        let other =
            LogPaths::at(&Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("audit-{}.jsonl", std::process::id())));
        let log = open(&other);
        let one = median(count, || {
            log.append("0123456789abcdef", &[event(0)], durability).unwrap();
        });
        println!("{told}: {one:?}");
        remove(&other);
    }
}

/// A log of so many records: checked, shown and reported.
fn read(records: u64) {
    let folder = tempfile::tempdir().unwrap();
    let place = LogPaths::at(&folder.path().join("audit.jsonl"));
    let log = open(&place);
    let begun = Instant::now();
    for group in 0..records / GROUP {
        let events: Vec<Event> = (0..GROUP).map(|number| event(group * GROUP + number)).collect();
        let last = group + 1 == records / GROUP;
        let durability = if last { Durability::Now } else { Durability::Later };
        log.append(&format!("{:016x}", group / 10), &events, durability)
            .unwrap();
    }
    let size: u64 = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    println!("wrote {records} records, {} MiB, in {:?}", size >> 20, begun.elapsed());
    let checked = median(ROUNDS, || assert_eq!(verify(&place, None).unwrap().fault, None));
    println!("verify {records} records: {checked:?}");
    for words in [
        &["show"][..],
        &["show", "--json"],
        &["show", "--limit", "20"],
        &["report", "--html"],
        &["report", "--json"],
    ] {
        let took = median(ROUNDS, || stockade(&place, words));
        let ratio = took.as_secs_f64() / checked.as_secs_f64();
        println!("audit {}: {took:?}, {ratio:.1} times that", words.join(" "));
    }
}

/// `stockade audit WORDS` of this log.
#[expect(clippy::disallowed_methods, reason = "what is measured is the program")]
fn stockade(place: &LogPaths, words: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stockade"));
    command.arg("audit").args(words).arg("--log").arg(place.log());
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
}

fn open(place: &LogPaths) -> AuditLog {
    let keeping = Keeping {
        max_bytes: 64 << 20,
        keep: None,
    };
    AuditLog::open(place, keeping, &|_| None, "0123456789abcdef").unwrap()
}

/// A record of a call: each has so many, one after the other.
fn event(number: u64) -> Event {
    let call = (number / OF_A_CALL).to_string();
    match number % OF_A_CALL {
        0 => Event::Call(Call {
            operation: EXECUTE_TOOL,
            tool: Text::of("shell"),
            call,
            arguments: json!({"command": "cargo test --test audit", "directory": "/home/me/project"}),
            caller: None,
            run: None,
            conversation: None,
            request: None,
        }),
        1 => Event::Assessment(Assessment {
            call,
            needs: Needs::Nothing,
            why: Vec::new(),
        }),
        2 => Event::Start(Start {
            call,
            command: Text::of("cargo test --test audit"),
            command_sha256: "0".repeat(64),
            directory: Text::of("/home/me/project"),
            profile: "1".repeat(64),
            regime: "namespaces".to_owned(),
        }),
        3 => Event::End(End {
            call,
            status: "exited",
            code: Some(0),
            signal: None,
            why: None,
            duration: Some(0.5),
            output_bytes: Some(4),
            unsettled: None,
        }),
        _ => Event::Outcome(CallEnd {
            call,
            outcome: "done",
            error: None,
            duration: 0.5,
            bytes: Some(4),
        }),
    }
}

fn remove(place: &LogPaths) {
    for end in ["jsonl", "head", "lock"] {
        let _gone = std::fs::remove_file(place.log().with_extension(end));
    }
}

fn median(rounds: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[rounds / 2]
}
