//! What `--explain` costs: real work bare, confined, and confined with somebody who looks on, in both regimes, as
//! ratios to the bare run. Turn by turn, so that all see the same machine.
//!
//! Run with `cargo bench --bench explain`, on a quiet machine.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a measuring program"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(
        root.join("Cargo.toml"),
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    )
    .unwrap();
    fs::write(root.join("src/main.rs"), "fn main() { println!(\"tiny\"); }\n").unwrap();
    compare(root, "true");
    compare(root, "grep -r no_such_word /usr/include; true");
    compare(root, "find /usr/include -type f -size +100M");
    compare(root, "rm -rf target && cargo build -q --offline");
}

/// One shell line, in each of the ways.
fn compare(root: &Path, line: &str) {
    let stockade = env!("CARGO_BIN_EXE_stockade");
    let confined = |backend, more: &'static [&'static str]| {
        [&[stockade, "run", "-q", "--backend", backend], more, &["-c"]].concat()
    };
    let ways: [(&str, Vec<&str>); 5] = [
        ("bare", vec!["bash", "-c"]),
        ("landlock", confined("landlock", &[])),
        ("landlock --explain", confined("landlock", &["--explain"])),
        ("bwrap", confined("bwrap", &[])),
        ("bwrap --explain", confined("bwrap", &["--explain"])),
    ];
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for ((_, words), times) in ways.iter().zip(&mut times) {
            let start = Instant::now();
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).arg(line).current_dir(root);
            let streams = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            assert!(streams.status().unwrap().success(), "{line}");
            times.push(start.elapsed());
        }
    }
    println!("{line}");
    let bare = median(&mut times[0]);
    for ((way, _), times) in ways.iter().zip(&mut times) {
        let time = median(times);
        println!(
            "    {way:20} {time:>10.2?}   {:.2} x",
            time.as_secs_f64() / bare.as_secs_f64()
        );
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
