//! Calls of `stockade mcp`, one at a time and a thousand at once, beside the same calls through the library, and what memory it takes.

use std::cell::RefCell;
use std::fs;
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use super::client::{Client, within_patience};
use super::programs::Workshop;
use super::sheet::{Sheet, Way};
use super::warm::Warm;

const IN_A_ROW: u32 = 20;
/// What the server and a worker may have resident.
const RESIDENT: u64 = 15 << 20;

/// Calls over standard input and output.
pub(crate) fn calls(sheet: &mut Sheet, workshop: &Workshop, rounds: usize) {
    sheet.part("A call over MCP (`--bench mcp` has the servers of others)");
    fs::write(workshop.root().join("one.txt"), "one line\n").unwrap();
    for (what, tool, args) in [
        ("read a small file", "read_file", json!({"path": "one.txt"})),
        ("a static program", "shell", json!({"argv": [workshop.nothing()]})),
    ] {
        let mut library = Warm::new(workshop, "namespaces", None);
        let server = RefCell::new(within_patience(|| Client::start(&mut serve(workshop))));
        let call = json!({"name": tool, "arguments": args}).to_string();
        let ways = vec![
            Way::told("through the library", || {
                let begun = Instant::now();
                for _ in 0..IN_A_ROW {
                    library.call(tool, &args);
                }
                begun.elapsed() / IN_A_ROW
            }),
            Way::told("stockade mcp", || {
                let begun = Instant::now();
                for _ in 0..IN_A_ROW {
                    server.borrow_mut().call(&call);
                }
                begun.elapsed() / IN_A_ROW
            }),
            Way::told("stockade mcp, 1,000 at once", || {
                let begun = Instant::now();
                within_patience(|| server.borrow_mut().call_at_once(&call, 1_000));
                begun.elapsed() / 1_000
            }),
        ];
        sheet.compare(what, rounds.min(11), ways);
        library.finish();
    }
    memory(sheet, workshop);
}

/// What a server has resident that has read a file and run a command.
fn memory(sheet: &mut Sheet, workshop: &Workshop) {
    let mut server = within_patience(|| Client::start(&mut serve(workshop)));
    for call in [
        json!({"name": "read_file", "arguments": {"path": "one.txt"}}),
        json!({"name": "shell", "arguments": {"argv": [workshop.nothing()]}}),
    ] {
        let _took = server.time(&call.to_string());
    }
    let mut all = vec![server.process()];
    let mut seen = 0;
    while let Some(process) = all.get(seen).copied() {
        all.extend(children(process));
        seen += 1;
    }
    let shares: Vec<u64> = all.iter().map(|process| share(*process)).collect();
    let total: u64 = shares.iter().sum();
    let is_worker = |process: &u32| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap();
        name.trim() == "stockade-fork"
    };
    let worker = all.iter().position(is_worker).unwrap();
    let both = shares[0] + shares[worker];
    sheet.figure("the server alone, at most", mebibytes(server.peak()), "MiB", None);
    sheet.figure(
        "the server alone, its share of pages",
        mebibytes(shares[0]),
        "MiB",
        None,
    );
    let verdict = (format!("{} MiB", RESIDENT >> 20), both <= RESIDENT);
    sheet.figure("the server and a worker", mebibytes(both), "MiB", Some(verdict));
    let what = format!("with all of its {} processes", all.len());
    sheet.figure(&what, mebibytes(total), "MiB", None);
}

fn serve(workshop: &Workshop) -> Command {
    let mut command = Command::new(workshop.installed());
    command.args(["mcp", "--preset", "workspace-write", "--backend", "namespaces"]);
    command.current_dir(workshop.root());
    command
}

fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    tasks
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("children")).ok())
        .flat_map(|list| {
            list.split_ascii_whitespace()
                .map(|number| number.parse().unwrap())
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// Its resident pages, those it shares divided by who shares them.
fn share(process: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup"));
    let Ok(rollup) = rollup else {
        panic!("the memory of process {process} cannot be read: run this as root")
    };
    let line = rollup.lines().find(|line| line.starts_with("Pss:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[expect(clippy::cast_precision_loss, reason = "it is printed")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
