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

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use stockade::confine::protect::Guard;

use common::{git, repository, run};

const ROUNDS: usize = 21;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let (root, store) = (folder.path().join("root"), folder.path().join("store"));
    repository(&root);
    fs::create_dir(&store).unwrap();

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
