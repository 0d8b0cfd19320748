//! What the audit log costs: a whole check of it, and one record, with and without having it on disk.
//!
//! Prints the median of each. Run with `cargo bench --bench audit`; 100,000 records are to verify in under a second.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program")]

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use stockade::audit::event::{Call, EXECUTE_TOOL, Event};
use stockade::audit::{AuditLog, Durability, Keeping, Place, Text, verify};

const RECORDS: u64 = 100_000;
/// As many as a session writes at once.
const GROUP: u64 = 100;
const ROUNDS: usize = 7;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::at(&folder.path().join("audit.jsonl"));
    let log = open(&place);
    let begun = Instant::now();
    for group in 0..RECORDS / GROUP {
        let events: Vec<Event> = (0..GROUP).map(|number| event(group * GROUP + number)).collect();
        let last = group + 1 == RECORDS / GROUP;
        let durability = if last { Durability::Now } else { Durability::Later };
        log.append("0123456789abcdef", &events, durability).unwrap();
    }
    let size: u64 = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    println!("wrote {RECORDS} records, {} MiB, in {:?}", size >> 20, begun.elapsed());
    let times = median(ROUNDS, || assert_eq!(verify(&place, None).unwrap().fault, None));
    println!("verify {RECORDS} records: {times:?}");
    for (told, durability, count) in [
        ("append, to be on disk later", Durability::Later, 2_000),
        ("append, on disk now", Durability::Now, 200),
    ] {
        let other =
            Place::at(&Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("audit-{}.jsonl", std::process::id())));
        let log = open(&other);
        let one = median(count, || {
            log.append("0123456789abcdef", &[event(0)], durability).unwrap();
        });
        println!("{told}: {one:?}");
        remove(&other);
    }
}

fn open(place: &Place) -> AuditLog {
    let keeping = Keeping {
        max_bytes: 64 << 20,
        keep: None,
    };
    AuditLog::open(place, keeping, &|_| None, "0123456789abcdef").unwrap()
}

fn event(number: u64) -> Event {
    Event::Call(Call {
        operation: EXECUTE_TOOL,
        tool: Text::of("shell"),
        call: number.to_string(),
        arguments: json!({"command": "cargo test --test audit", "directory": "/home/me/project"}),
        caller: None,
        run: None,
        conversation: None,
        request: None,
    })
}

fn remove(place: &Place) {
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
