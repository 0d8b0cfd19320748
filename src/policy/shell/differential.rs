//! What is pre-approved, run by real shells: a forbidden command must not start.
//!
//! The forbidden program exists only inside the test, and leaves a mark when it starts.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::line_tests::rule;
use super::*;
use crate::policy::{Demand, Requirement};

const PIECES: &[&str] = &[
    "zap",
    "zap",
    "zap ",
    "'",
    "'",
    "\"",
    "\"",
    "\\",
    "$(",
    "$(",
    ")",
    ")",
    "`",
    "\n",
    "\n",
    "<<E\n",
    "E\n",
    "<<'E'\n",
    "<<-E\n",
    "<<''",
    "<<\"\"\n",
    "<<",
    "\\<",
    "((true);true); ",
    "<<true zap x\ntrue",
    "<<true zap true\ntrue",
    "\nE\n",
    "\t",
    "#",
    " #",
    "echo ",
    "echo ",
    "; ",
    ";",
    " ",
    " ",
    "{ ",
    "; }",
    "(",
    "case a in a) ",
    ";; esac",
    "case a in (a) ",
    "${x:-",
    "${x",
    "}",
    "$((",
    "))",
    "((",
    "1",
    "if ",
    "then ",
    "fi",
    "; then ",
    "; fi",
    "else ",
    " & ",
    " && ",
    " | ",
    "||",
    ">",
    "<",
    ">&",
    "&>",
    "<>",
    "<(",
    "<<<",
    "=",
    "x=",
    "! ",
    "[[ ",
    " ]]",
    "time ",
    "env ",
    "xargs ",
    "sh -c ",
    "find . -exec ",
    " \\; ",
    "nice ",
    "timeout 1 ",
    "command ",
    "exec ",
    "$",
    "$x",
    "~",
    "*",
    "[",
    "]",
    "{a,",
    ",",
    "{}",
    "-",
    "--",
    "-c ",
    "é",
    "for i in a; do ",
    "; done",
    "while ",
    "until ",
    "a",
    "\\\n",
    " \\\n",
    "$'",
    "$\"",
    "|&",
    "@(",
    "!(",
    ":",
    "%",
    "2>",
    "<&",
    "1>&2",
    "a[",
    "]=",
    "+=",
    "set -e;",
    "then",
    "do",
    "in",
];

/// A line of pieces that shells are prone to read differently.
pub(super) fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 2..14).prop_map(|pieces| pieces.concat())
}

/// Lines in which the forbidden word is only ever text, until pieces are put in.
const HARMLESS: &[&str] = &[
    "echo 'zap' \"zap\" zap",
    "cat <<E\nzap\nE\necho a",
    "cat <<'E' | cat\nzap $(zap) `zap`\nE\n",
    "echo $(echo zap; echo 'b)') zap",
    "echo $(echo \"zap )\" $(echo zap)) zap",
    "case a in zap) echo zap;; *) echo;; esac",
    "echo a # zap ' zap\necho b",
    "sh -c 'echo zap \"zap\"' zap",
    "echo ${x:-zap} `echo zap` ${x%zap}",
    "if echo zap; then echo zap; fi > zap",
    "x=zap echo zap 2>&1 < /dev/null",
    "find . -exec echo zap {} \\; -name zap",
    "env -u zap nice -n 1 timeout 1 echo zap | xargs -n 1 echo zap",
    "echo \"a\\\"zap\" 'b'\\''zap' \\; zap",
    "for i in zap; do echo zap; done & echo zap",
    "{ echo zap; } && ( echo zap ) || ! echo zap",
    "command echo zap; command -v zap; exec echo zap",
];

/// Harmless lines with a few pieces put in anywhere.
fn disturbed() -> impl Strategy<Value = String> {
    let piece = (any::<prop::sample::Index>(), prop::sample::select(PIECES));
    (prop::sample::select(HARMLESS), prop::collection::vec(piece, 1..4)).prop_map(|(line, pieces)| {
        let mut line: Vec<char> = line.chars().collect();
        for (prefix, piece) in pieces {
            let at = prefix.index(line.len() + 1);
            line.splice(at..at, piece.chars());
        }
        line.into_iter().collect()
    })
}

/// Runs the line; says whether the forbidden program started.
#[expect(
    clippy::disallowed_methods,
    reason = "a test runs the shells that the judge is compared with"
)]
fn zaps(shell: &str, line: &str, dir: &Path) -> bool {
    let mark = dir.join("zapped");
    // What one line leaves behind is no script for the next.
    fs::remove_dir_all(dir.join("cwd")).unwrap();
    fs::create_dir(dir.join("cwd")).unwrap();
    let _status = Command::new("timeout")
        .args(["-s", "KILL", "1", shell, "-c", "--", line])
        .env_clear()
        .env("PATH", dir.join("bin"))
        .env("HOME", dir)
        .current_dir(dir.join("cwd"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    fs::remove_file(mark).is_ok()
}

#[expect(clippy::disallowed_methods, reason = "a test asks a shell whether a line is valid")]
fn valid(line: &str) -> bool {
    let status = Command::new("/bin/bash")
        .args(["-n", "-c", "--", line])
        .stderr(Stdio::null())
        .status();
    status.unwrap().success()
}

fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let bin = dir.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::create_dir(dir.path().join("cwd")).unwrap();
    for tool in ["env", "xargs", "find", "nice", "timeout", "sh", "cat", "bash"] {
        let real = ["/usr/bin", "/bin"]
            .iter()
            .map(|prefix| Path::new(prefix).join(tool))
            .find(|path| path.exists());
        symlink(real.unwrap(), bin.join(tool)).unwrap();
    }
    let zap = bin.join("zap");
    fs::write(
        &zap,
        format!("#!/bin/sh\n: > '{}'\n", dir.path().join("zapped").display()),
    )
    .unwrap();
    fs::set_permissions(&zap, fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

/// Lines to run: always the same hundred, or as many others as asked for.
fn wanted() -> (usize, TestRunner) {
    match std::env::var("STOCKADE_SHELL_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
    {
        Some(count) => (count, TestRunner::default()),
        None => (100, TestRunner::deterministic()),
    }
}

#[test]
fn no_shell_starts_a_forbidden_command_from_a_pre_approved_line() {
    let world = world();
    assert!(
        zaps("/bin/bash", "zap", world.path()) && zaps("/bin/sh", "env zap", world.path()),
        "the mark works"
    );
    let rules = [rule("zap", Demand::Deny)];
    let free = rule("", Demand::None);
    let (wanted, mut runner) = wanted();
    let lines = prop_oneof![1 => soup(), 3 => disturbed()];
    let (mut ran, mut wrong) = (0, Vec::new());
    while ran < wanted {
        let line = lines.new_tree(&mut runner).unwrap().current();
        if !line.contains("zap") || judge(&line, &rules, &free, &|_, _| true).requirement != Requirement::PreApproved {
            continue;
        }
        ran += 1;
        for shell in ["/bin/bash", "/bin/sh"] {
            if zaps(shell, &line, world.path()) {
                wrong.push(format!("{shell} starts it in {line:?}"));
            }
        }
        if !valid(&line) {
            wrong.push(format!("not valid: {line:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Words around builtins that only steer the shell.
const STEERING: &[&str] = &[
    "cd ",
    "exit ",
    "test ",
    "[ ",
    " ]",
    "set ",
    "wait ",
    "export ",
    "shift ",
    ": ",
    "true ",
    "pwd ",
    "for i in ",
    "for zap in ",
    "; do ",
    "; done",
    "zap",
    "'a[$(zap)]'",
    "\"$x\"",
    "$i",
    "'$(zap)'",
    "$(zap)",
    "x='a[$(zap)]' ",
    "CI=1 ",
    "PATH=. ",
    "-v ",
    "-R ",
    "-eq ",
    "-n ",
    "= ",
    "-p ",
    "-e ",
    "-o pipefail",
    "! ",
    "&& ",
    "; ",
    "1 ",
    "CI=1",
    "PATH=.",
    "&>/dev/null",
    "2>&1 ",
    ">/dev/null ",
    "</dev/null ",
    "<<< zap",
    "\n",
    "{ ",
    "}",
    "if ",
    "then ",
    "fi",
    "0",
    "( ",
    ") ",
    "-a ",
    "-o ",
    "break ",
];

#[test]
fn no_shell_starts_or_makes_anything_in_a_line_that_needs_no_rule() {
    let world = world();
    let ask = rule("", Demand::Required);
    let lines = prop::collection::vec(prop::sample::select(STEERING), 2..10).prop_map(|pieces| pieces.concat());
    let (wanted, mut runner) = wanted();
    let (mut ran, mut wrong) = (0, Vec::new());
    while ran < wanted {
        let line = lines.new_tree(&mut runner).unwrap().current();
        // Else there is nothing that could be started.
        if !line.contains("zap")
            || judge(&line, &[rule("zip", Demand::None)], &ask, &|_, _| true).requirement != Requirement::PreApproved
        {
            continue;
        }
        ran += 1;
        for shell in ["/bin/bash", "/bin/sh"] {
            if zaps(shell, &line, world.path()) {
                wrong.push(format!("{shell} starts it in {line:?}"));
            }
            if fs::read_dir(world.path().join("cwd")).unwrap().next().is_some() {
                wrong.push(format!("{shell} makes a file in {line:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
