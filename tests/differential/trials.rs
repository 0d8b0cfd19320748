//! The trials of this program, in the language of libtest and nextest.

use std::any::Any;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode, Output};

use nix::unistd::geteuid;

use super::cases::{differential, one_after_another};
use super::judge::Judge;
use super::oracle::Reason;
use super::report::Report;
use super::tools::{COMPILED, Tools};

const SEED: &str = "STOCKADE_DIFFERENTIAL_SEED";
const OPERATIONS: &str = "STOCKADE_DIFFERENTIAL_OPS";
const DEFAULT_SEED: u64 = 0x5743_4b41_4445;
const DEFAULT_OPERATIONS: usize = 4_000;

type Trial = (&'static str, fn(&'static str));

const TRIALS: [Trial; 5] = [
    ("as_root::nothing_is_permitted_that_the_profile_denies", as_root),
    ("as_user::nothing_is_permitted_that_the_profile_denies", as_user),
    ("as_root::one_layer_after_another_is_the_intersection", as_root),
    ("as_user::one_layer_after_another_is_the_intersection", as_user),
    ("a_finding_fails_the_run", a_finding_fails_the_run),
];

/// Never listed: they must fail, and [`a_finding_fails_the_run`] sees to it that they do.
const PLANTED: [Trial; 2] = [
    ("planted::the_kernel_permits_more", |_| {
        differential(seed(), 40, Judge::DeniesAll).hold();
    }),
    ("planted::the_kernel_refuses_more", |_| {
        differential(seed(), 200, Judge::DeclaresNothing).hold();
    }),
];

pub(crate) fn main() -> ExitCode {
    let asked = Asked::parse(std::env::args().skip(1));
    let chosen: Vec<Trial> = asked.chosen();
    if asked.list {
        for (name, _) in chosen {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let mut failed = Vec::new();
    for (name, trial) in &chosen {
        match catch_unwind(AssertUnwindSafe(|| trial(name))) {
            Ok(()) => println!("test {name} ... ok"),
            Err(panic) => {
                println!("test {name} ... FAILED\n{}", words(panic.as_ref()));
                failed.push(*name);
            }
        }
    }
    let (word, passed) = (
        if failed.is_empty() { "ok" } else { "FAILED" },
        chosen.len() - failed.len(),
    );
    println!("\ntest result: {word}. {passed} passed; {} failed", failed.len());
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(101)
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("panicked")
}

/// What the command line asks for.
#[derive(Debug, Default)]
struct Asked {
    list: bool,
    ignored: bool,
    exact: bool,
    names: Vec<String>,
    skipped: Vec<String>,
}

impl Asked {
    fn parse(mut words: impl Iterator<Item = String>) -> Self {
        let mut asked = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--list" => asked.list = true,
                "--ignored" => asked.ignored = true,
                "--exact" => asked.exact = true,
                "--skip" => asked.skipped.extend(words.next()),
                "--format" | "--color" | "--test-threads" | "--logfile" | "-Z" => {
                    words.next();
                }
                option if option.starts_with('-') => {}
                _ => asked.names.push(word),
            }
        }
        asked
    }

    fn chosen(&self) -> Vec<Trial> {
        let hit = |name: &str, by: &str| if self.exact { name == by } else { name.contains(by) };
        let wanted = |(name, _): &&Trial| {
            !self.ignored
                && (self.names.is_empty() || self.names.iter().any(|by| hit(name, by)))
                && !self.skipped.iter().any(|by| hit(name, by))
        };
        let planted = |(name, _): &&Trial| self.names.iter().any(|by| by == name);
        let listed = TRIALS.iter().filter(wanted);
        listed.chain(PLANTED.iter().filter(planted)).copied().collect()
    }
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

fn seed() -> u64 {
    match std::env::var(SEED) {
        Err(_) => DEFAULT_SEED,
        Ok(text) if text == "random" => {
            let since = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap();
            u64::try_from(since.as_nanos() & u128::from(u64::MAX)).unwrap()
        }
        Ok(text) => text.parse().unwrap(),
    }
}

/// Runs a trial as who we are.
fn here(name: &str) {
    let (seed, operations) = (seed(), number(OPERATIONS, DEFAULT_OPERATIONS));
    println!("{SEED}={seed} {OPERATIONS}={operations}, as uid {}", geteuid());
    // Both users act in worlds of their own.
    let seed = seed ^ (u64::from(geteuid().is_root()) << 40);
    if name.ends_with("is_the_intersection") {
        one_after_another(seed, operations / 4).hold();
        return;
    }
    let report: Report = differential(seed, operations / 2, Judge::Honest);
    report.hold();
    let unmet: Vec<_> = Reason::ALL
        .iter()
        .filter(|reason| !report.stricter.contains_key(reason))
        .collect();
    // In a shorter run, or another one of this length, it is a matter of luck.
    let sure =
        operations >= 10 * DEFAULT_OPERATIONS || (operations >= DEFAULT_OPERATIONS && std::env::var_os(SEED).is_none());
    assert!(
        !sure || unmet.is_empty(),
        "declared as stricter but never met: {unmet:?}"
    );
}

/// What is declared as there must be there; see `tests/common`.
fn required(thing: &str) -> bool {
    std::env::var("STOCKADE_TEST_REQUIRE").map_or(true, |list| list.split(',').any(|word| word.trim() == thing))
}

fn as_root(name: &'static str) {
    if geteuid().is_root() {
        here(name);
    } else {
        assert!(!required("root"), "these tests must run as root to act as root");
        println!("not root: passed over");
    }
}

fn as_user(name: &'static str) {
    if !geteuid().is_root() {
        here(name);
        return;
    }
    let tools = Tools::ready();
    let uid = std::env::var("STOCKADE_TEST_UID").map_or(1000, |uid| uid.parse().unwrap());
    let mut command = again(name);
    command.uid(uid).gid(uid).env(COMPILED, &tools.folder);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = format!("{}{}", stdout.escape_ascii(), stderr.escape_ascii()).replace("\\n", "\n");
    // Not at the start of a line: it is not this program's own result.
    println!("| {}", said.trim().replace('\n', "\n| "));
    assert!(status.success(), "{status}");
}

/// This program once more, for one trial.
#[expect(clippy::disallowed_methods, reason = "this program acts for another user")]
fn again(name: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.env_clear().current_dir("/").args([name, "--exact"]);
    for variable in [SEED, OPERATIONS, "PATH"] {
        if let Some(value) = std::env::var_os(variable) {
            command.env(variable, value);
        }
    }
    command
}

fn a_finding_fails_the_run(_: &'static str) {
    for (name, words) in [
        (PLANTED[0].0, "PERMITTED by the kernel, denied by the profile"),
        (PLANTED[1].0, "refused for a reason that is not declared"),
    ] {
        let Output { status, stdout, .. } = again(name).output().unwrap();
        let said = String::from_utf8(stdout).unwrap();
        assert_eq!(status.code(), Some(101), "{said}");
        assert!(said.contains(words) && said.contains("0 passed; 1 failed"), "{said}");
    }
    let unknown = again("no such trial").output().unwrap();
    assert!(unknown.status.success());
}
