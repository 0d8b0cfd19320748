//! The change that is proposed permits what was denied: it is taken, and the operation comes off.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Fixture, in_both_regimes};
use crate::explain::tried::operate;
use crate::explain::twins::Twins;

in_both_regimes! {
    a_proposed_root_permits_what_was_denied ["cc"];
    more_for_a_root_permits_what_it_lacked ["cc"];
    a_command_that_was_asked_about_needs_no_more_than_a_writable_root [];
    a_proposed_root_gives_what_was_given_there [];
}

const CONFIG: &str = "\
extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    tools: {root: ./tools, execute: true}
    docs: {root: ./docs}
    free: {root: ./free, mode: rw, write_approval: false}
shell:
  default: {allowed: true, approval: none}
";

/// Tries one operation under this config: its errno, and what is told.
fn tried(world: &Fixture, config: &Path, letter: char, [a, b]: [&Path; 2]) -> (i32, Value) {
    let free = world.workspace().join("free");
    let words = ["run", "--explain", "--json", "--config", config.to_str().unwrap()];
    let run = world
        .stockade(&[&words[..], &["--cwd", free.to_str().unwrap(), "--"]].concat())
        .args([
            operate(world).into_os_string(),
            letter.to_string().into(),
            a.into(),
            b.into(),
        ])
        .output();
    let outcome: Value = serde_json::from_str(&run.out()).unwrap_or_else(|_| panic!("{} {}", run.out(), run.err()));
    (run.code(), outcome)
}

/// What stands between two marks in each change that is proposed, each once.
fn proposed(outcome: &Value, begins: &str, ends: &str) -> Vec<String> {
    let blocked = outcome["explained"]["blocked"].as_array().unwrap();
    let changes = blocked.iter().flat_map(|blocked| blocked["change"].as_array().unwrap());
    let mut found = Vec::new();
    for change in changes {
        let change = change.as_str().unwrap();
        assert!(!change.contains(".beside"), "{outcome:#}");
        let part = change.split_once(begins).and_then(|(_, rest)| rest.split_once(ends));
        if let Some((part, _)) = part.filter(|(part, _)| !found.contains(&(*part).to_owned())) {
            found.push(part.to_owned());
        }
    }
    found
}

/// The config with these roots in it as well.
fn with_roots(world: &Fixture, roots: &[String]) -> PathBuf {
    let roots = roots.iter().enumerate();
    let lines = roots.map(|(number, root)| format!("    taken-{number}: {{root: {root}}}\n"));
    let lines = lines.collect::<Vec<_>>().concat();
    world.write("agent.yaml", CONFIG.replace("shell:\n", &format!("{lines}shell:\n")))
}

fn places(world: &Fixture) -> Twins<'_> {
    let twins = Twins::new(world);
    for file in ["docs/a", "docs/b", "docs/c", "free/a"] {
        world.write(file, "\x7fx");
    }
    twins
}

fn program(world: &Fixture, path: PathBuf) -> PathBuf {
    let path = world.write(path, fs::read(operate(world)).unwrap());
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path
}

fn a_proposed_root_permits_what_was_denied(world: &Fixture) {
    let twins = places(world);
    let out = &twins.out;
    program(world, out.join("program"));
    let mut rows = vec![
        ('r', "a", ""),
        ('l', "sub", ""),
        ('w', "b", ""),
        ('a', "c", ""),
        ('L', "d", ""),
        ('o', "e", ""),
        ('c', "new-file", ""),
        ('d', "new-folder", ""),
        ('s', "new-link", ""),
        ('u', "f", ""),
        ('D', "empty", ""),
        ('m', "g", "moved"),
        ('x', "program", ""),
        ('q', "h", ""),
    ];
    if !twins.trial.is_in_namespaces() {
        // Where files are hidden a link only looks, and goes no further.
        rows.push(('k', "j", "sub/linked"));
        // Landlock lets everything be looked at.
        rows.retain(|(letter, ..)| *letter != 'q');
    }
    for (letter, a, b) in rows {
        let paths = [out.join(a), out.join(b)];
        let paths = paths.each_ref().map(PathBuf::as_path);
        let (errno, outcome) = tried(world, &with_roots(world, &[]), letter, paths);
        assert_ne!(errno, 0, "{letter} {a}");
        let roots = proposed(&outcome, "`{root: ", "}`");
        assert!(!roots.is_empty(), "{letter} {a}: {outcome:#}");
        let (errno, outcome) = tried(world, &with_roots(world, &roots), letter, paths);
        assert_eq!(errno, 0, "{letter} {a} with {roots:?}: {outcome:#}");
        assert_eq!(
            outcome["explained"]["blocked"].as_array().unwrap().len(),
            0,
            "{outcome:#}"
        );
    }
}

fn more_for_a_root_permits_what_it_lacked(world: &Fixture) {
    let twins = places(world);
    let docs = world.workspace().join("docs");
    program(world, docs.join("program"));
    for (letter, a, b) in [
        ('w', "a", ""),
        ('c', "new-file", ""),
        ('d', "new-folder", ""),
        ('u', "b", ""),
        ('m', "c", "moved"),
        ('o', "a", ""),
        ('x', "program", ""),
    ] {
        let paths = [docs.join(a), docs.join(b)];
        let paths = paths.each_ref().map(PathBuf::as_path);
        let (errno, outcome) = tried(world, &with_roots(world, &[]), letter, paths);
        assert_ne!(errno, 0, "{letter} {a}");
        let more = proposed(&outcome, "a root there would need `", "`");
        assert_eq!(more.len(), 1, "{letter} {a}: {outcome:#}");
        let amended = CONFIG.replace("./docs}", &format!("./docs, {}}}", more[0]));
        let (errno, outcome) = tried(world, &world.write("agent.yaml", amended), letter, paths);
        assert_eq!(errno, 0, "{letter} {a} with {more:?}: {outcome:#}");
    }
    drop(twins);
}

fn a_command_that_was_asked_about_needs_no_more_than_a_writable_root(world: &Fixture) {
    let out = world.write(world.outside().join("w"), "x");
    for file in ["tools/kept", "docs/kept", "free/kept"] {
        world.write(file, "");
    }
    let asking = CONFIG.replace("approval: none", "approval: required");
    let run = |config: &str| {
        let config = world.write("agent.yaml", config);
        let line = format!("echo y > {}", out.display());
        let words = [
            "run",
            "--explain",
            "--json",
            "--mode",
            "approve_all",
            "--cwd",
            "free",
            "--config",
        ];
        let run = world
            .stockade(&[&words[..], &[config.to_str().unwrap(), "-c", &line]].concat())
            .output();
        serde_json::from_str::<Value>(&run.out()).unwrap_or_else(|_| panic!("{} {}", run.out(), run.err()))
    };
    let outcome = run(&asking);
    let roots = proposed(&outcome, "`{root: ", "}`");
    assert_eq!(roots.len(), 1, "{outcome:#}");
    assert!(roots[0].ends_with(", mode: rw"), "{outcome:#}");
    let outcome = run(&asking.replace("shell:\n", &format!("    taken: {{root: {}}}\nshell:\n", roots[0])));
    assert_eq!(outcome["code"], 0, "{outcome:#}");
}

fn a_proposed_root_gives_what_was_given_there(world: &Fixture) {
    let run = world
        .stockade(&["run", "--explain", "--json", "-c", "touch /usr/share/x-by-a-test"])
        .output();
    let outcome: Value = serde_json::from_str(&run.out()).unwrap();
    // An ordinary user may not, with or without Stockade.
    if world.actor.uid() == 0 {
        let roots = proposed(&outcome, "`{root: ", "}`");
        assert_eq!(
            roots,
            ["/usr/share, mode: rw, write_approval: false, execute: true"],
            "{outcome:#}"
        );
    }
}
