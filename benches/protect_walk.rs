//! What guarding protected names costs a command: snapshot and settle on a generated tree of 20,000 files
//! in 2,000 directories, beside `find` and `git status` on the same tree.
//!
//! Run with `cargo bench --bench protect_walk`.
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

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use stockade::confine::protect::Guard;

const ROUNDS: usize = 21;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let (root, store) = (folder.path().join("root"), folder.path().join("store"));
    generate(&root);
    fs::create_dir(&store).unwrap();
    git(&root, &["init", "-q"]);
    git(&root, &["add", "."]);
    git(
        &root,
        &[
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "commit",
            "-qm",
            "all",
        ],
    );
    // Stamps become reliable once their clock tick is over.
    std::thread::sleep(Duration::from_millis(50));

    let roots = [root.clone()];
    report("find", || run(Command::new("find").arg(&root)));
    report("git status", || git(&root, &["status", "--short"]));
    report("first snapshot", || drop(Guard::snapshot(&roots, &[], &store).unwrap()));
    report("first snapshot, git status, settle", || {
        guarded(&root, &store);
        fs::remove_dir_all(store.join("known")).unwrap();
    });
    guarded(&root, &store);
    report("later snapshot", || drop(Guard::snapshot(&roots, &[], &store).unwrap()));
    let mut guards: Vec<Guard> = (0..ROUNDS)
        .map(|_| Guard::snapshot(&roots, &[], &store).unwrap())
        .collect();
    println!("{:?} directories and entries", guards[0].size());
    report("settle, nothing changed", || {
        assert!(guards.pop().unwrap().settle().errors.is_empty());
    });
    report("later snapshot, git status, settle", || guarded(&root, &store));
}

fn guarded(root: &Path, store: &Path) {
    let guard = Guard::snapshot(&[root.to_owned()], &[], store).unwrap();
    git(root, &["status", "--short"]);
    assert!(guard.settle().errors.is_empty());
}

/// 20 × 100 directories of 10 files.
fn generate(root: &Path) {
    for outer in 0..20 {
        for inner in 0..99 {
            let directory = root.join(format!("package{outer}/module{inner}"));
            fs::create_dir_all(&directory).unwrap();
            for file in 0..10 {
                fs::write(
                    directory.join(format!("source_file_{file}.rs")),
                    format!("{outer} {inner} {file}\n"),
                )
                .unwrap();
            }
        }
    }
}

fn git(root: &Path, arguments: &[&str]) {
    // Without gc, which would go on in the background and be measured too.
    run(Command::new("git")
        .args(["-c", "gc.auto=0", "-C"])
        .arg(root)
        .args(arguments));
}

fn run(command: &mut Command) {
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
}

/// Prints wall time, and processor time of this process and its children: steadier on a busy machine.
fn report(what: &str, mut work: impl FnMut()) {
    let mut times: Vec<(Duration, Duration)> = (0..ROUNDS)
        .map(|_| {
            let (start, used) = (Instant::now(), processor_time());
            work();
            (processor_time().saturating_sub(used), start.elapsed())
        })
        .collect();
    times.sort();
    let (processor, _) = times[ROUNDS / 2];
    let least = times[0].0;
    times.sort_by_key(|time| time.1);
    let wall = times[ROUNDS / 2].1;
    println!("{what:40} wall {wall:>10.2?}   processor {processor:>10.2?}   least {least:>10.2?}");
}

fn processor_time() -> Duration {
    let used = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN].map(|who| {
        let usage = getrusage(who).unwrap();
        let (user, system) = (usage.user_time(), usage.system_time());
        u64::try_from(user.num_microseconds() + system.num_microseconds()).unwrap()
    });
    Duration::from_micros(used.iter().sum())
}
