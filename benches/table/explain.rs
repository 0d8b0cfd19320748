//! What `--explain` costs: commands confined, and confined with somebody who looks on.

use std::fs;
use std::process::{Command, Stdio};

use super::programs::Workshop;
use super::sheet::{Sheet, Way};

/// What `--explain` costs, in both regimes.
pub(crate) fn explain(sheet: &mut Sheet, workshop: &Workshop, rounds: usize) {
    sheet.part("With --explain, start included");
    let root = workshop.root();
    fs::create_dir(root.join("src")).unwrap();
    let manifest = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    fs::write(root.join("Cargo.toml"), manifest).unwrap();
    fs::write(root.join("src/main.rs"), "fn main() { println!(\"tiny\"); }\n").unwrap();
    for line in [
        "true",
        "grep -r no_such_word /usr/include; true",
        "find /usr/include -type f -size +100M",
        "rm -rf target && cargo build -q --offline",
    ] {
        let run = |command: &mut Command| {
            let command = command.arg("-c").arg(line).current_dir(root);
            let streams = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            assert!(streams.status().unwrap().success(), "{line}");
        };
        let ways = vec![
            Way::new("bare", || run(&mut Command::new("bash"))),
            Way::new("landlock", || run(&mut workshop.stockade("landlock"))),
            Way::new("landlock, explained", || {
                run(workshop.stockade("landlock").arg("--explain"));
            }),
            Way::new("namespaces", || run(&mut workshop.stockade("namespaces"))),
            Way::new("namespaces, explained", || {
                run(workshop.stockade("namespaces").arg("--explain"));
            }),
        ];
        sheet.compare(line, rounds.min(7), ways);
    }
}
