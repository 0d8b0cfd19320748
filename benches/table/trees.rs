//! Commands that do little else than ask the kernel for files, and loops of single calls.

use std::process::{Command, Stdio};

use serde_json::json;

use super::common::repository;
use super::programs::Workshop;
use super::sheet::{Sheet, Wanted, Way};
use super::warm::Warm;

/// What a command over a tree may take.
const TREE: Wanted = Wanted::Ratio(1.15);
/// What `git status` inside may take.
const STATUS: Wanted = Wanted::Ratio(1.25);
/// How the kernel's own share in what a command takes is told apart.
const FILTERING: &str = "a launcher that does Landlock and one filter";
/// What a call of the kernel may take.
const CALL: Wanted = Wanted::Ratio(1.1);

/// Over a repository of 20,000 files.
pub(crate) fn trees(sheet: &mut Sheet, workshop: &Workshop, rounds: usize) {
    sheet.part("Commands over a repository of 20,000 files");
    repository(&workshop.root().join("tree"));
    // Under an agent a worker is there already; what is left is what the command itself takes inside.
    let mut landlock = Warm::new(workshop, "landlock", None);
    let mut namespaces = Warm::new(workshop, "namespaces", None);
    let lines = [
        ("git status", "git -c gc.auto=0 -C tree status --short"),
        ("grep -r", "grep -r no_such_word tree; true"),
        ("tar", "tar -cf - tree | cat >/dev/null"),
        ("find", "find tree -size +100M"),
    ];
    for (what, line) in lines {
        let ways = vec![
            Way::new("bare", || quiet(Command::new("bash").arg("-c").arg(line), workshop)),
            Way::new("a launcher that does Landlock alone", || {
                quiet(workshop.launcher().args(["bash", "-c", line]), workshop);
            }),
            Way::new(FILTERING, || {
                quiet(workshop.filtering_launcher().args(["bash", "-c", line]), workshop);
            }),
            Way::new("start included, landlock", || {
                quiet(workshop.stockade("landlock").arg("-c").arg(line), workshop);
            })
            .wanted(TREE),
            Way::new("start included, namespaces", || {
                quiet(workshop.stockade("namespaces").arg("-c").arg(line), workshop);
            }),
            Way::new("in a session, landlock", || {
                landlock.call("shell", &json!({"command": line}));
            })
            .wanted(if what == "git status" { STATUS } else { TREE }),
            Way::new("in a session, namespaces", || {
                namespaces.call("shell", &json!({"command": line}));
            }),
        ];
        sheet.compare(what, rounds, ways);
    }
    landlock.finish();
    namespaces.finish();
    std::fs::remove_dir_all(workshop.root().join("tree")).unwrap();
}

/// One call of the kernel, as a loop inside sees it.
pub(crate) fn loops(sheet: &mut Sheet, workshop: &Workshop, rounds: usize) {
    sheet.part("One system call inside, start left out");
    for (name, count) in [("getppid", 1_000_000), ("stat", 200_000), ("open", 100_000)] {
        let ways = vec![
            Way::told("bare", || workshop.per_call(&mut Command::new("env"), name, count)),
            Way::told("a launcher that does Landlock alone", || {
                workshop.per_call(&mut workshop.launcher(), name, count)
            }),
            Way::told(FILTERING, || {
                workshop.per_call(&mut workshop.filtering_launcher(), name, count)
            }),
            Way::told("stockade, landlock", || {
                workshop.per_call(workshop.stockade("landlock").arg("--"), name, count)
            })
            .wanted(CALL),
            Way::told("stockade, namespaces", || {
                workshop.per_call(workshop.stockade("namespaces").arg("--"), name, count)
            })
            .wanted(CALL),
        ];
        sheet.compare(name, rounds.min(11), ways);
    }
}

fn quiet(command: &mut Command, workshop: &Workshop) {
    // The user's own is not granted to a launcher, and git ends where it may not look for it.
    command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    let streams = command.stdin(Stdio::null()).stdout(Stdio::null());
    assert!(streams.current_dir(workshop.root()).status().unwrap().success());
}
