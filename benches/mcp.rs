//! `stockade mcp` beside the servers that people use in its place: the same client, the same run, one call at a
//! time, turn by turn. Then what a thousand requests at once take, and what memory a gigabyte of output takes.
//!
//! Run with `cargo bench --bench mcp`, on a quiet machine; it installs the others with `scripts/peers.sh`.
//! `-- peers` measures them alone, `-- crowd` and `-- memory` the other two. It fails where a promise is not kept.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::panic,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a measuring program"
)]

#[path = "mcp/client.rs"]
mod client;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use client::{Client, within_patience};

/// Each server answers this many calls in a row, then the next has its turn.
const IN_A_ROW: usize = 500;
const ROUNDS: usize = 6;
/// What a server may do before it is measured: caches filled, code compiled.
const WARM_UP: usize = 200;

/// Before each turn, that of the bare command too: what a server still does after its answers, such as collecting garbage, is not on the next one's account.
const PAUSE: Duration = Duration::from_millis(100);

/// At least this many times as many reads a second, and as many commands.
const READS: f64 = 10.0;
const COMMANDS: f64 = 2.0;
/// At once.
const CROWD: usize = 1000;
/// A command's output, and what the server may have resident meanwhile.
const OUTPUT: u64 = 1 << 30;
const MEMORY: u64 = 40 << 20;

const TEXT: &str = "All happy files are alike; each unhappy file is unhappy in its own way.\n";

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wants = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("root");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("small.txt"), TEXT).unwrap();
    let mut kept = true;
    if wants("speed") || wants("peers") {
        kept &= speed(&root, wants("speed"));
    }
    if wants("crowd") {
        crowd(&root);
    }
    if wants("memory") {
        kept &= memory(&root);
    }
    if !kept {
        std::process::exit(1);
    }
}

/// One of those that are compared: a server, and the call that is made of it.
struct Contender {
    name: &'static str,
    client: Client,
    call: String,
    times: Vec<Duration>,
}

impl Contender {
    fn new(name: &'static str, command: &mut Command, tool: &str, arguments: &serde_json::Value) -> Self {
        let call = serde_json::json!({"name": tool, "arguments": arguments}).to_string();
        let client = within_patience(|| Client::start(command));
        Self {
            name,
            client,
            call,
            times: Vec::new(),
        }
    }

    fn take_turn(&mut self, calls: usize) {
        for _ in 0..calls {
            self.times.push(self.client.time(&self.call));
        }
    }
}

/// In the middle of all calls, and how many a second they make.
fn speed_of(times: &mut [Duration]) -> (Duration, f64) {
    times.sort();
    let count = u32::try_from(times.len()).unwrap();
    let all: Duration = times.iter().sum();
    (times[times.len() / 2], f64::from(count) / all.as_secs_f64())
}

/// What a command takes that nothing confines and no server runs: about what a server could come down to.
fn bare(command: &[&str]) -> Duration {
    let start = Instant::now();
    let ended = Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    assert!(ended.unwrap().success());
    start.elapsed()
}

/// Reads and commands, ours against theirs; whether ours are as much faster as is promised.
fn speed(root: &Path, with_ours: bool) -> bool {
    let peers = peers();
    let small = root.join("small.txt");
    let path = serde_json::json!({"path": small});

    let files = peers.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let mut filesystem = Command::new("node");
    filesystem.arg(files).arg(root);
    let mut reads = vec![Contender::new(
        "server-filesystem",
        &mut filesystem,
        "read_text_file",
        &path,
    )];
    if with_ours {
        reads.push(Contender::new(
            "stockade, auto",
            &mut stockade(root, "auto"),
            "read_file",
            &path,
        ));
        reads.push(Contender::new(
            "stockade, landlock",
            &mut stockade(root, "landlock"),
            "read_file",
            &path,
        ));
    }

    let mut commands = Command::new("node");
    commands
        .arg(peers.join("node_modules/mcp-server-commands/build/index.js"))
        .current_dir(root);
    let line = serde_json::json!({"command": "true"});
    let mut lines = vec![Contender::new(
        "mcp-server-commands",
        &mut commands,
        "run_command",
        &line,
    )];
    if with_ours {
        lines.push(Contender::new(
            "stockade, auto",
            &mut stockade(root, "auto"),
            "shell",
            &line,
        ));
        lines.push(Contender::new(
            "stockade, landlock",
            &mut stockade(root, "landlock"),
            "shell",
            &line,
        ));
    }

    let mut cli = Command::new(peers.join("venv/bin/cli-mcp-server"));
    cli.env("ALLOWED_DIR", root)
        .env("ALLOWED_COMMANDS", "all")
        .env("ALLOWED_FLAGS", "all");
    let mut programs = vec![Contender::new("cli-mcp-server", &mut cli, "run_command", &line)];
    if with_ours {
        let argv = serde_json::json!({"argv": ["true"]});
        programs.push(Contender::new(
            "stockade, auto",
            &mut stockade(root, "auto"),
            "shell",
            &argv,
        ));
        programs.push(Contender::new(
            "stockade, landlock",
            &mut stockade(root, "landlock"),
            "shell",
            &argv,
        ));
    }

    let read = compare("read a small file", &mut reads, READS, None);
    let ran = compare(
        "the shell line `true`",
        &mut lines,
        COMMANDS,
        Some(&["/bin/bash", "-c", "--", "true"]),
    );
    let started = compare("the program `true`", &mut programs, COMMANDS, Some(&["/bin/true"]));
    read && ran && started
}

/// Measures all of them turn by turn, and holds all but the first against the first; and the bare command, where it is one.
fn compare(what: &str, contenders: &mut [Contender], promised: f64, command: Option<&[&str]>) -> bool {
    let mut floor = Vec::new();
    within_patience(|| {
        for contender in &mut *contenders {
            contender.take_turn(WARM_UP);
            contender.times.clear();
        }
        for _ in 0..ROUNDS {
            for contender in &mut *contenders {
                std::thread::sleep(PAUSE);
                contender.take_turn(IN_A_ROW);
            }
            if let Some(command) = command {
                std::thread::sleep(PAUSE);
                floor.extend((0..IN_A_ROW).map(|_| bare(command)));
            }
        }
    });
    println!("{what}");
    let peer = speed_of(&mut contenders[0].times);
    let mut kept = true;
    for (place, contender) in contenders.iter_mut().enumerate() {
        let (median, rate) = speed_of(&mut contender.times);
        print!(
            "    {:20} median {median:>9.2?}   {rate:>6.0} calls/s   peak {:>5.1} MiB",
            contender.name,
            mebibytes(contender.client.peak()),
        );
        if place > 0 {
            let ratio = rate / peer.1;
            let by_median = peer.0.as_secs_f64() / median.as_secs_f64();
            print!("   {ratio:>5.2} x, by the median {by_median:.2} x");
            if ratio < promised {
                kept = false;
                print!("   LESS THAN {promised} x");
            }
        }
        println!();
    }
    if command.is_some() {
        let (median, rate) = speed_of(&mut floor);
        println!(
            "    {:20} median {median:>9.2?}   {rate:>6.0} starts/s{:19}{:.2} x, by the median {:.2} x",
            "bare, no server",
            "",
            rate / peer.1,
            peer.0.as_secs_f64() / median.as_secs_f64()
        );
    }
    kept
}

/// A thousand requests before the first answer is read.
fn crowd(root: &Path) {
    for (what, tool, arguments) in [
        ("reads", "read_file", serde_json::json!({"path": "small.txt"})),
        ("commands", "shell", serde_json::json!({"argv": ["true"]})),
    ] {
        let call = serde_json::json!({"name": tool, "arguments": arguments}).to_string();
        let mut client = within_patience(|| Client::start(&mut stockade(root, "auto")));
        within_patience(|| client.call(&call));
        let start = Instant::now();
        within_patience(|| client.call_at_once(&call, CROWD));
        println!(
            "{CROWD} {what} at once: all answered in {:.2?}, peak {:.1} MiB",
            start.elapsed(),
            mebibytes(client.peak())
        );
    }
}

/// The most memory that the server has while a command writes more than there is; whether that is little enough,
/// where the config says how much of an output is kept and where it says nothing.
fn memory(root: &Path) -> bool {
    let named = root.with_file_name("named.yaml");
    let limit = "extends: [workspace-write]\nshell: {limits: {output: 1MiB}}\n";
    fs::write(&named, limit).unwrap();
    let preset = takes(root, "nothing said of it", &mut stockade(root, "auto"));
    let mut limited = Command::new(env!("CARGO_BIN_EXE_stockade"));
    limited.args(["mcp", "--config"]).arg(named).current_dir(root);
    let limited = takes(root, "`limits.output: 1MiB`", &mut limited);
    preset && limited
}

fn takes(root: &Path, what: &str, server: &mut Command) -> bool {
    let line = format!("yes 'All happy files are alike' | head -c {OUTPUT}");
    let call = serde_json::json!({"name": "shell", "arguments": {"command": line, "directory": root}}).to_string();
    let mut client = within_patience(|| Client::start(server));
    let start = Instant::now();
    let result = within_patience(|| client.call(&call));
    let peak = client.peak();
    println!(
        "{} MiB of output, {what}: {:.2?}, an answer of {} bytes, peak {:.1} MiB, may have {:.0} MiB",
        OUTPUT >> 20,
        start.elapsed(),
        result.to_string().len(),
        mebibytes(peak),
        mebibytes(MEMORY)
    );
    peak < MEMORY
}

fn stockade(root: &Path, backend: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stockade"));
    command.args(["mcp", "--preset", "workspace-write", "--backend", backend]);
    command.current_dir(root);
    command
}

/// Where the other servers are, installed first.
fn peers() -> PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = Command::new(project.join("scripts/peers.sh")).status().unwrap();
    assert!(status.success(), "scripts/peers.sh failed");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| project.join("target"), PathBuf::from);
    project.join(target).join("peers")
}

#[expect(clippy::cast_precision_loss, reason = "it is printed")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
