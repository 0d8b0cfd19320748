//! What the measuring programs share: the tree they measure on.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A git repository with one commit: 20 × 100 directories of 10 files.
pub(crate) fn repository(root: &Path) {
    for place in 0..2000 {
        let directory = root.join(format!("package{}/module{}", place / 100, place % 100));
        fs::create_dir_all(&directory).unwrap();
        for file in 0..10 {
            let path = directory.join(format!("source_file_{file}.rs"));
            fs::write(path, format!("{place} {file}\n")).unwrap();
        }
    }
    git(root, &["init", "-q"]);
    git(root, &["add", "."]);
    let author = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    git(root, &[&author[..], &["commit", "-qm", "all"]].concat());
    // Stamps become reliable once their clock tick is over.
    std::thread::sleep(Duration::from_millis(50));
}

/// Runs git there.
pub(crate) fn git(root: &Path, arguments: &[&str]) {
    // Without gc, which would go on in the background and be measured too.
    run(Command::new("git")
        .args(["-c", "gc.auto=0", "-C"])
        .arg(root)
        .args(arguments));
}

/// Runs a program that must succeed, unseen.
pub(crate) fn run(command: &mut Command) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    assert!(status.unwrap().success());
}
