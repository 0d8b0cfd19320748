//! The machine, in a line, and what it counts.

use std::fs;
use std::process::{Command, Stdio};

/// Processor, cores, memory, kernel, file system of temporary files, and who measures.
pub(crate) fn line() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or_else(
            || std::env::consts::ARCH.to_owned(),
            |rest| rest.trim_start_matches(['\t', ' ', ':']).to_owned(),
        );
    let cores = std::thread::available_parallelism().unwrap();
    let memory = fs::read_to_string("/proc/meminfo").unwrap();
    let memory = memory.lines().next().unwrap().split_ascii_whitespace().nth(1).unwrap();
    let memory = memory.parse::<u64>().unwrap() >> 20;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let who = if nix::unistd::geteuid().is_root() {
        "root"
    } else {
        "an ordinary user"
    };
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    let load = load.split(' ').next().unwrap();
    format!(
        "{model}, {cores} processors, {memory} GiB, Linux {}, as {who}, load {load} before",
        kernel.trim()
    )
}

/// How many instructions of a user the command takes with all its children; `None` where nothing counts them.
pub(crate) fn instructions(command: &Command) -> Option<f64> {
    let mut counted = Command::new("perf");
    counted.args(["stat", "-x", ",", "-e", "instructions:u", "--"]);
    counted.arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        counted.current_dir(directory);
    }
    let output = counted.stdin(Stdio::null()).output().ok()?;
    let told = String::from_utf8(output.stderr).ok()?;
    told.lines()
        .find(|line| line.contains("instructions"))?
        .split(',')
        .next()?
        .parse()
        .ok()
}
