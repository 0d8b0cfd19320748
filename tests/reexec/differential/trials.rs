//! The trials of this program.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use nix::unistd::geteuid;
use stockade::backend::Regime;
use stockade::backend::host::Host;

use super::cases::{differential, one_after_another};
use super::judge::Judge;
use super::oracle::Reason;
use super::report::Report;
use super::tools::{COMPILED, Tools};
use crate::libtest::Trial;

const SEED: &str = "STOCKADE_DIFFERENTIAL_SEED";
const OPERATIONS: &str = "STOCKADE_DIFFERENTIAL_OPS";
const DEFAULT_SEED: u64 = 0x5743_4b41_4445;

/// How many operations of each kind each user tries; making namespaces takes longer.
const fn default_operations(regime: Regime) -> usize {
    match regime {
        Regime::None | Regime::Landlock | Regime::Seatbelt => 5_000,
        Regime::Namespaces => 2_500,
    }
}

/// What is tried under one regime.
struct Under {
    trials: [Trial; 5],
    /// Never listed: they must fail, and the last of the trials sees to it that they do.
    planted: [Trial; 2],
}

/// The trials of a regime, under its name.
macro_rules! under {
    ($name:literal, $regime:expr) => {{
        const PERMITS_MORE: &str = concat!("differential::", $name, "::planted::the_kernel_permits_more");
        const REFUSES_MORE: &str = concat!("differential::", $name, "::planted::the_kernel_refuses_more");
        Under {
            trials: [
                (
                    concat!(
                        "differential::",
                        $name,
                        "::as_root::nothing_is_permitted_that_the_profile_denies"
                    ),
                    |name| as_root($regime, name),
                ),
                (
                    concat!(
                        "differential::",
                        $name,
                        "::as_user::nothing_is_permitted_that_the_profile_denies"
                    ),
                    |name| as_user($regime, name),
                ),
                (
                    concat!(
                        "differential::",
                        $name,
                        "::as_root::one_layer_after_another_is_the_intersection"
                    ),
                    |name| as_root($regime, name),
                ),
                (
                    concat!(
                        "differential::",
                        $name,
                        "::as_user::one_layer_after_another_is_the_intersection"
                    ),
                    |name| as_user($regime, name),
                ),
                (concat!("differential::", $name, "::a_finding_fails_the_run"), |_| {
                    if is_there($regime) {
                        a_finding_fails_the_run(PERMITS_MORE, REFUSES_MORE);
                    }
                }),
            ],
            planted: [
                (PERMITS_MORE, |_| {
                    differential($regime, seed(), 40, Judge::DeniesAll).hold()
                }),
                (REFUSES_MORE, |_| {
                    differential($regime, seed(), 200, Judge::DeclaresNothing).hold();
                }),
            ],
        }
    }};
}

/// The regimes that are tried.
const REGIMES: [Under; 2] = [
    under!("landlock", Regime::Landlock),
    under!("namespaces", Regime::Namespaces),
];

/// The trials of every regime.
pub(crate) fn all() -> Vec<Trial> {
    REGIMES.map(|under| under.trials).concat()
}

/// What must fail, and is never listed.
pub(crate) fn planted() -> Vec<Trial> {
    REGIMES.map(|under| under.planted).concat()
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
fn here(regime: Regime, name: &str) {
    let (seed, operations) = (seed(), number(OPERATIONS, default_operations(regime)));
    println!("{SEED}={seed} {OPERATIONS}={operations}, as uid {}", geteuid());
    // Both users act in worlds of their own.
    let seed = seed ^ (u64::from(geteuid().is_root()) << 40);
    if name.ends_with("is_the_intersection") {
        let report = one_after_another(regime, seed, operations);
        report.hold();
        // Each attempt is two operations; where a layer declares that it refuses more, there is nothing to compare.
        let enough = operations < 1_000 || report.compared > report.operations / 4;
        assert!(enough, "too few answers could be compared: {report}");
        return;
    }
    let report: Report = differential(regime, seed, operations, Judge::Honest);
    report.hold();
    let unmet: Vec<_> = Reason::declared(regime)
        .iter()
        .filter(|reason| !report.stricter.contains_key(reason))
        .collect();
    // In a shorter run, or another one of this length, it is a matter of luck.
    let usual = default_operations(regime);
    let sure = operations >= 10 * usual || (operations >= usual && std::env::var_os(SEED).is_none());
    assert!(
        !sure || unmet.is_empty(),
        "declared as stricter but never met: {unmet:?}"
    );
}

/// What is declared as there must be there; see `tests/common`.
fn required(thing: &str) -> bool {
    std::env::var("STOCKADE_TEST_REQUIRE").map_or(true, |list| list.split(',').any(|word| word.trim() == thing))
}

/// Whether what makes the regime is there, where it need not be.
fn is_there(regime: Regime) -> bool {
    let there = regime != Regime::Namespaces || Host::with_acting_namespaces(None).maker().is_some();
    assert!(
        there || !required("bwrap"),
        "nobody can make namespaces; see STOCKADE_TEST_REQUIRE"
    );
    there
}

fn as_root(regime: Regime, name: &'static str) {
    if !is_there(regime) {
        println!("no namespaces: passed over");
    } else if geteuid().is_root() {
        here(regime, name);
    } else {
        assert!(!required("root"), "these tests must run as root to act as root");
        println!("not root: passed over");
    }
}

fn as_user(regime: Regime, name: &'static str) {
    if !is_there(regime) {
        println!("no namespaces: passed over");
        return;
    }
    if !geteuid().is_root() {
        here(regime, name);
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

fn a_finding_fails_the_run(permits_more: &str, refuses_more: &str) {
    for (name, words) in [
        (permits_more, "PERMITTED by the kernel, denied by the profile"),
        (refuses_more, "refused for a reason that is not declared"),
    ] {
        let Output { status, stdout, .. } = again(name).output().unwrap();
        let said = String::from_utf8(stdout).unwrap();
        assert_eq!(status.code(), Some(101), "{said}");
        assert!(said.contains(words) && said.contains("0 passed; 1 failed"), "{said}");
    }
    let unknown = again("no such trial").output().unwrap();
    assert!(unknown.status.success());
}
