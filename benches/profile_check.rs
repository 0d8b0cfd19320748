//! What `stockade profile check` costs for n clauses, half of them roots and half denies, as a whole command,
//! self-test aside.
//!
//! For one backend, and for all that can be here. Prints milliseconds, how many times the start and end of a program that
//! does nothing that is, taken in turn with it, and milliseconds by n log n beside the first row: a ratio that stays near 1
//! says that nothing grows faster than that. Run with `cargo bench --bench profile_check`.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a measuring program"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How many roots, and as many denies.
const SIZES: [usize; 5] = [500, 1_000, 2_500, 5_000, 10_000];
/// A plan of too many mounts is refused once it is made, and not read back.
const BACKENDS: [&str; 3] = ["landlock", "namespaces", "auto"];
const ROUNDS: usize = 15;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    println!(
        "{:>10} {:>6} {:>10} {:>8} {:>16} {:>6}",
        "backend", "n", "ms", "x true", "ns/(n log2 n)", "ratio"
    );
    for backend in BACKENDS {
        let mut first = None;
        for size in SIZES {
            let config = generate(&folder.path().join(size.to_string()), size);
            let (time, of_bare) = median(&config, backend);
            let clauses = 2 * size;
            let count = f64::from(u32::try_from(clauses).unwrap());
            let unit = time.as_secs_f64() * 1e9 / (count * count.log2());
            let ratio = unit / *first.get_or_insert(unit);
            println!(
                "{backend:>10} {clauses:>6} {:>10.1} {of_bare:>8.1} {unit:>16.1} {ratio:>6.2}",
                time.as_secs_f64() * 1e3
            );
        }
    }
}

/// n roots, a deny in each: a file that is there in every second one.
fn generate(folder: &Path, size: usize) -> PathBuf {
    let mut text = String::from("sandbox:\n  deny_fallback: decompose\n  paths:\n");
    for index in 0..size {
        let root = folder.join(format!("{index:x}"));
        fs::create_dir_all(&root).unwrap();
        if index % 2 == 0 {
            fs::write(root.join("s"), "").unwrap();
        }
        writeln!(text, "    r{index}: {{root: {index:x}, deny: [./s]}}").unwrap();
    }
    let config = folder.join("c.yaml");
    fs::write(&config, text).unwrap();
    config
}

/// The median of the times, and that of their quotients by what a bare program took in the same turn.
fn median(config: &Path, backend: &str) -> (Duration, f64) {
    let mut turns: Vec<(Duration, f64)> = Vec::new();
    for _ in 0..ROUNDS {
        let (bare, _) = timed(&mut Command::new("/bin/true"));
        let mut check = Command::new(env!("CARGO_BIN_EXE_stockade"));
        check.args(["profile", "check", "--no-selftest", "--backend", backend]);
        let (time, ended) = timed(check.arg(config).stdout(Stdio::null()));
        assert!(ended.success() || backend == "namespaces" && ended.code() == Some(1));
        turns.push((time, time.as_secs_f64() / bare.as_secs_f64()));
    }
    turns.sort_by_key(|(time, _)| *time);
    let time = turns[ROUNDS / 2].0;
    turns.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    (time, turns[ROUNDS / 2].1)
}

fn timed(command: &mut Command) -> (Duration, ExitStatus) {
    let started = Instant::now();
    let ended = command.status().unwrap();
    (started.elapsed(), ended)
}
