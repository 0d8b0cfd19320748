//! What Stockade costs, in one table: each part beside a baseline that is measured in the same run, turn by turn.
//!
//! Run with `cargo bench --bench table`, on a quiet machine; `-- start warm` measures some parts, `-- --json FILE` writes
//! the figures as well, `-- --rounds N` takes more turns than 31. Nothing is switched off for it: the checks of each
//! start, the self-test and the guard of protected names run as they always do.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a measuring program"
)]

#[path = "mcp/client.rs"]
mod client;
mod common;
#[path = "table/explain.rs"]
mod explain;
#[path = "table/machine.rs"]
mod machine;
#[path = "table/mcp.rs"]
mod mcp;
#[path = "table/peers.rs"]
mod peers;
#[path = "table/programs.rs"]
mod programs;
#[path = "table/scale.rs"]
mod scale;
#[path = "table/sheet.rs"]
mod sheet;
#[path = "table/trees.rs"]
mod trees;
#[path = "table/warm.rs"]
mod warm;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use programs::Workshop;
use sheet::{Sheet, Wanted, Way};

/// The parts, in the order in which they are measured.
const PARTS: [(&str, Measure); 9] = [
    ("start", start),
    ("peers", peers::start),
    ("warm", warm::shell),
    ("files", warm::files),
    ("trees", trees::trees),
    ("loops", trees::loops),
    ("explain", explain::explain),
    ("mcp", mcp::calls),
    ("scale", scale::scale),
];

type Measure = fn(&mut Sheet, &Workshop, usize);

fn main() {
    stockade::init();
    let mut arguments = std::env::args_os().skip(1).peekable();
    // What the table has started of itself.
    if let Some(first) = arguments.peek()
        && programs::is_ours(first)
    {
        programs::main();
    }
    let (mut wanted, mut rounds, mut json) = (Vec::new(), 31, None);
    while let Some(argument) = arguments.next() {
        match argument.to_str().unwrap() {
            // What cargo says to every bench.
            "--bench" => {}
            "--json" => json = Some(PathBuf::from(arguments.next().unwrap())),
            "--rounds" => rounds = arguments.next().unwrap().to_str().unwrap().parse().unwrap(),
            part if PARTS.iter().any(|(name, _)| *name == part) => wanted.push(part.to_owned()),
            other => panic!("no part is called {other}; there are {:?}", PARTS.map(|(name, _)| name)),
        }
    }
    let machine = machine::line();
    println!("{machine}");
    let workshop = Workshop::new();
    let mut sheet = Sheet::default();
    for (name, measure) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|part| part == name) {
            measure(&mut sheet, &workshop, rounds);
        }
    }
    if let Some(file) = json {
        let all = serde_json::json!({"machine": machine, "stockade": env!("CARGO_PKG_VERSION"), "rows": sheet.rows()});
        std::fs::write(file, format!("{all:#}\n")).unwrap();
    }
}

/// One command from nothing to its end.
fn start(sheet: &mut Sheet, workshop: &Workshop, rounds: usize) {
    sheet.part("One command, from nothing to its end");
    let root = workshop.root();
    let program = "/bin/true";
    let run = |command: &mut Command| {
        let status = command
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success());
    };
    let mounts = workshop.mounts();
    let mut ways = vec![
        Way::new("bare", || run(&mut Command::new(program))),
        Way::new("a launcher that does Landlock alone", || {
            run(workshop.launcher().arg(program));
        }),
        Way::new("stockade run, landlock", || {
            run(workshop.stockade("landlock").arg("--").arg(program));
        })
        .wanted(Wanted::Ratio(5.1)),
    ];
    ways.push(Way::new("bwrap, the same mounts", || {
        run(Command::new("bwrap").args(&mounts).arg(program));
    }));
    ways.push(Way::new("stockade run, namespaces", || {
        run(workshop.stockade("namespaces").arg("--").arg(program));
    }));
    ways.push(Way::new("stockade run, namespaces by bwrap", || {
        run(workshop.stockade("bwrap").arg("--").arg(program));
    }));
    ways.push(Way::new("stockade run, namespaces, on record", || {
        let log = workshop.log();
        run(workshop
            .stockade("namespaces")
            .arg("--audit")
            .arg(log)
            .arg("--")
            .arg(program));
    }));
    sheet.compare("true", rounds * 2, ways);
    for (name, command) in [
        ("bare", &mut Command::new(program)),
        (
            "stockade run, landlock",
            workshop.stockade("landlock").arg("--").arg(program),
        ),
        (
            "stockade run, namespaces",
            workshop.stockade("namespaces").arg("--").arg(program),
        ),
    ] {
        let Some(count) = machine::instructions(command.current_dir(root)) else {
            println!("    this machine counts no instructions, or has no perf");
            break;
        };
        sheet.figure(&format!("instructions of true, {name}"), count / 1e6, "million", None);
    }
}
