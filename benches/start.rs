//! What a start costs before any command runs: the parent's steps one by one, then whole runs of the
//! built program, by each backend, beside the same command bare.
//!
//! Run with `cargo bench --bench start`, on a quiet machine; `cargo bench --bench start -- steps` does the
//! first half alone.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a measuring program"
)]

mod common;

use std::ffi::OsStr;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use stockade::backend::namespaces::NetworkNamespace;
use stockade::backend::seccomp::{self, Attempts, IpSockets, Role, Settings};
use stockade::backend::{attributes, landlock};
use stockade::config::{self, Context, Matchers};
use stockade::policy::shell::{rule_covers, rule_matches};
use stockade::policy::{DenyFallback, Residuals};
use stockade::profile::{Asked, Call, derive, files_within};

use common::repository;

const ROUNDS: usize = 101;
/// Each must work here.
const BACKENDS: [&str; 3] = ["landlock", "namespaces", "bwrap"];

fn main() {
    steps();
    if !std::env::args().any(|argument| argument == "steps") {
        whole();
    }
}

/// Each step of the default preset's way to a checked plan, in the order of a run.
fn steps() {
    let folder = tempfile::tempdir().unwrap();
    let matchers = Matchers {
        matches: rule_matches,
        covers: rule_covers,
    };
    report("context", || Context::host(matchers));
    let context = Context::host(matchers);
    let load = || config::preset("workspace-write", folder.path(), &context).unwrap();
    report("load the preset", load);
    let policy = load().policy;
    let call = Call::of(Asked::Everything);
    report("derive", || derive(&policy, &call));
    let profile = derive(&policy, &call);
    report("hold it against the config", || {
        files_within(&profile, &policy).unwrap();
    });
    let options = landlock::Options {
        abi: 7,
        deny_fallback: DenyFallback::Refuse,
        residuals: Residuals::Report,
    };
    report("survey", || landlock::survey(&profile, &options).unwrap());
    let survey = landlock::survey(&profile, &options).unwrap();
    report("lower to Landlock", || {
        landlock::lower(&profile, &survey, &options).unwrap()
    });
    let layer = landlock::lower(&profile, &survey, &options).unwrap().plan;
    report("validate that", || landlock::validate(&layer, &profile).unwrap());
    report("attributes, lowered and validated", || {
        files_within(&attributes::lower(&profile.grants, &profile.denies), &profile).unwrap();
    });
    let settings = Settings {
        ip: IpSockets::of(&profile.network, NetworkNamespace::Host),
        unix_sockets: profile.unix_sockets,
        landlock_abi: 7,
        role: Role::Command,
        attempts: Attempts::Unseen,
    };
    report("lower to seccomp", || seccomp::lower(settings).unwrap());
    let filters = seccomp::lower(settings).unwrap();
    report("validate that", || seccomp::validate(&filters, settings).unwrap());
}

/// Whole runs, bare and confined.
fn whole() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    repository(&root);
    compare(&root, &["true"]);
    compare(&root, &["git", "status"]);
}

/// The command bare and confined, turn by turn, so that both see the same machine.
fn compare(root: &Path, command: &[&str]) {
    let stockade = Path::new(env!("CARGO_BIN_EXE_stockade"));
    let confined = BACKENDS.map(|backend| [&["run", "-q", "--backend", backend, "--"], command].concat());
    let (mut bare, mut inside) = (Vec::new(), BACKENDS.map(|_| Vec::new()));
    for _ in 0..ROUNDS {
        bare.push(timed(|| run(root, command[0].as_ref(), &command[1..])));
        for (times, words) in inside.iter_mut().zip(&confined) {
            times.push(timed(|| run(root, stockade.as_os_str(), words)));
        }
    }
    let bare = median(bare);
    println!("{:40} bare {bare:>10.2?}", command.join(" "));
    for (backend, times) in BACKENDS.into_iter().zip(inside) {
        let inside = median(times);
        println!(
            "{backend:>40}      {inside:>10.2?}   {:.2} x",
            inside.as_secs_f64() / bare.as_secs_f64()
        );
    }
}

fn run(directory: &Path, program: &OsStr, arguments: &[&str]) {
    common::run(Command::new(program).args(arguments).current_dir(directory));
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn report<T>(what: &str, mut work: impl FnMut() -> T) {
    let first = timed(&mut work);
    let usual = median((0..ROUNDS).map(|_| timed(&mut work)).collect());
    println!("{what:40} first {first:>10.2?}   median {usual:>10.2?}");
}
