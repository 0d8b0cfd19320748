//! The trials of this program.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Output};

use nix::unistd::geteuid;

use super::cases::{differential, one_after_another};
use super::judge::Judge;
use super::libtest::{self, Trial};
use super::oracle::Reason;
use super::report::Report;
use super::tools::{COMPILED, Tools};

const SEED: &str = "STOCKADE_DIFFERENTIAL_SEED";
const OPERATIONS: &str = "STOCKADE_DIFFERENTIAL_OPS";
const DEFAULT_SEED: u64 = 0x5743_4b41_4445;
const DEFAULT_OPERATIONS: usize = 4_000;

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
    libtest::main(&TRIALS, &PLANTED)
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
