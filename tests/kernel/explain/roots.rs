//! What hangs on the lines of a config, on flags and on ceilings.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Actor, Fixture, in_both_regimes};
use crate::explain::tried::{Told, Trial, blocked, operate};

in_both_regimes! {
    each_kind_of_root_is_told_with_its_line ["cc"];
    flags_are_told_as_flags ["cc"];
    a_ceiling_is_named ["cc"];
    modes_of_others_are_not_told_as_denials ["cc"];
    what_asking_would_permit_is_said ["cc"];
}

pub(crate) const CONFIG: &str = "\
extends: [system]
sandbox:
  protect_fallback: undo
  deny_fallback: decompose
  paths:
    tools: {root: ./tools, execute: true}
    src: {root: ./src, mode: rw, write_approval: false, deny: [.env, \"*.pem\"]}
    docs: {root: ./docs}
    notes: {root: ./notes, mode: rw, write_approval: false, suffixes: [.md]}
    small: {root: ./small, mode: rw, write_approval: false, max_file_bytes: 1KiB}
    asked: {root: ./asked, mode: rw, approval: {write: required, read: none}}
    private: {root: ./private, approval: {read: required}}
    free: {root: ./free, mode: rw, write_approval: false}
shell:
  default: {allowed: true, approval: none}
";

pub(crate) fn files(world: &Fixture) -> PathBuf {
    for file in [
        "src/.env",
        "src/key.pem",
        "src/sub/.env",
        "src/plain",
        "src/sub/plain",
        "docs/a",
        "docs/b",
        "notes/a.md",
        "notes/x.txt",
        "small/a",
        "asked/a",
        "private/a",
        "free/a",
    ] {
        world.write(file, "\x7fx");
    }
    world.write("agent.yaml", CONFIG)
}

/// The line of the config that says this, as origins write it.
fn line(config: &Path, begins: &str) -> String {
    let at = CONFIG
        .lines()
        .position(|line| line.trim_start().starts_with(begins))
        .unwrap()
        + 1;
    format!("{}:{at}", config.display())
}

const NOTHING: &str = "";

fn each_kind_of_root_is_told_with_its_line(world: &Fixture) {
    let mut trial = Trial::new(world);
    let config = files(world);
    let at = |path: &str| world.workspace().join(path);
    let told = |trial: &Trial<'_>, wanted: &str, path: &str, clause: &str, begins: &str| Told {
        clause: clause.to_owned(),
        origin: line(&config, begins),
        ..trial.told(wanted, at(path))
    };
    // What mounts show and the layer inside them refuses.
    let inner = |told: Told| Told {
        by: "landlock".to_owned(),
        ..told
    };
    // A file that is denied is there, and nothing of it can be had.
    for (letter, path, wanted) in [
        ('r', "src/.env", "read"),
        ('w', "src/.env", "write"),
        ('r', "src/key.pem", "read"),
        ('r', "src/sub/.env", "read"),
        ('u', "src/sub/.env", "remove"),
        ('m', "src/key.pem", "remove"),
    ] {
        // A name that may come to be anywhere no mount can cover: it is ruled one by one in both regimes.
        let told = inner(told(&trial, wanted, path, "deny", "src:"));
        trial.denied(letter, at(path), at("free/moved"), &[told]);
    }
    trial.permitted('r', at("src/plain"), NOTHING);
    trial.permitted('w', at("src/plain"), NOTHING);
    // For names that are denied nothing comes or goes beside them.
    for (letter, path, wanted) in [
        ('c', "src/new", "make"),
        ('d', "src/sub/new", "make"),
        ('u', "src/sub/plain", "remove"),
    ] {
        let told = inner(told(&trial, wanted, path, "deny", "src:"));
        trial.denied(letter, at(path), NOTHING, &[told]);
    }
    // A root that is read-only.
    for (letter, path, wanted) in [
        ('w', "docs/a", "write"),
        ('c', "docs/new", "make"),
        ('u', "docs/b", "remove"),
        ('d', "docs/folder", "make"),
    ] {
        let told = told(&trial, wanted, path, "grant read", "docs:");
        trial.denied(letter, at(path), NOTHING, &[told]);
    }
    trial.permitted('r', at("docs/a"), NOTHING);
    trial.permitted('l', at("docs"), NOTHING);
    let attributes = Told {
        by: "broker".to_owned(),
        ..told(&trial, "attributes", "docs/a", "grant read", "docs:")
    };
    trial.denied('o', at("docs/a"), NOTHING, &[attributes]);
    // Suffixes: what matches now, and nothing new.
    let other = inner(told(&trial, "read", "notes/x.txt", "grant", "notes:"));
    trial.denied('r', at("notes/x.txt"), NOTHING, &[other]);
    trial.permitted('w', at("notes/a.md"), NOTHING);
    let new = told(&trial, "make", "notes/new.md", "grant", "notes:");
    trial.denied('c', at("notes/new.md"), NOTHING, &[new]);
    // A size that nothing can hold a command to.
    let sized = told(&trial, "write", "small/a", "", "small:");
    trial.denied('w', at("small/a"), NOTHING, &[sized]);
    trial.permitted('r', at("small/a"), NOTHING);
    // What would have to be asked about.
    let asked = told(&trial, "write", "asked/a", "grant", "asked:");
    trial.denied('w', at("asked/a"), NOTHING, &[asked]);
    trial.permitted('r', at("asked/a"), NOTHING);
    let private = told(&trial, "read", "private/a", "grant", "private:");
    trial.denied('r', at("private/a"), NOTHING, &[private]);
    // What may be written may not be run.
    let program = std::fs::read("/usr/bin/true").unwrap();
    let program = world.write("free/true", program);
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = inner(told(&trial, "execute", "free/true", "grant", "free:"));
    trial.denied('x', &program, NOTHING, &[run]);
    // The root itself stands in a folder that nothing grants.
    let root = [("remove", "free"), ("make", "gone")].map(|(wanted, name)| inner(trial.told(wanted, at(name))));
    trial.denied('m', at("free"), at("gone"), &root);
    trial.permitted('w', at("free/a"), NOTHING);
    assert!(trial.denials() >= 17);
    trial.try_all(&[
        "--config",
        config.to_str().unwrap(),
        "--cwd",
        at("free").to_str().unwrap(),
    ]);
}

fn flags_are_told_as_flags(world: &Fixture) {
    let mut trial = Trial::new(world);
    files(world);
    let at = |path: &str| world.workspace().join(path);
    let denied = Told {
        clause: "deny".to_owned(),
        origin: "--deny".to_owned(),
        ..trial.told("read", at("src/.env"))
    };
    trial.denied('r', at("src/.env"), NOTHING, &[denied]);
    trial.permitted('r', at("src/plain"), NOTHING);
    let read_only = Told {
        clause: "grant read".to_owned(),
        origin: "--ro".to_owned(),
        ..trial.told("write", at("docs/a"))
    };
    trial.denied('w', at("docs/a"), NOTHING, &[read_only]);
    trial.permitted('r', at("docs/a"), NOTHING);
    trial.permitted('w', at("src/plain"), NOTHING);
    let [tools, src, docs, env] = ["tools", "src", "docs", "src/.env"].map(|path| at(path).display().to_string());
    let deny_needs_mounts = !trial.is_in_namespaces();
    let mut flags = vec!["--rw", &tools, "--rw", &src, "--ro", &docs, "--cwd", &src];
    if deny_needs_mounts {
        // Landlock alone cannot take a file out of a writable folder.
        trial = without_deny(trial, world);
    } else {
        flags.extend(["--deny", &env]);
    }
    trial.try_all(&flags);
}

/// The same rows but for the denied file.
fn without_deny<'w>(_: Trial<'w>, world: &'w Fixture) -> Trial<'w> {
    let mut trial = Trial::new(world);
    let at = |path: &str| world.workspace().join(path);
    trial.permitted('r', at("src/.env"), NOTHING);
    let read_only = Told {
        clause: "grant read".to_owned(),
        origin: "--ro".to_owned(),
        ..trial.told("write", at("docs/a"))
    };
    trial.denied('w', at("docs/a"), NOTHING, &[read_only]);
    trial.permitted('r', at("docs/a"), NOTHING);
    trial
}

pub(crate) fn explained(world: &Fixture, flags: &[&str], line: &str) -> Value {
    let words = [&["run", "--explain", "--json"], flags, &["-c", line]].concat();
    let run = world.stockade(&words).output();
    serde_json::from_str(&run.out()).unwrap_or_else(|_| panic!("{} {}", run.out(), run.err()))
}

fn a_ceiling_is_named(world: &Fixture) {
    world.write("i/a", "x");
    let text = format!(
        "extends: [system]\nsandbox:\n  paths:\n    all: {{root: {}, execute: true}}\n",
        world.workspace().display()
    );
    let ceiling = world.write(world.base().join("ceiling.yaml"), text);
    let outcome = explained(
        world,
        &["--ceiling", ceiling.to_str().unwrap()],
        "cat i/a; echo x > i/a",
    );
    let told = blocked(&outcome);
    let written = world.workspace().join("i/a");
    assert_eq!(told.len(), 1, "{outcome:#}");
    assert_eq!(
        (told[0].wanted.as_str(), told[0].what.as_str()),
        ("write", written.to_str().unwrap())
    );
    let notes = outcome["explained"]["blocked"][0]["notes"].to_string();
    assert!(notes.contains("ceiling.yaml does not give it"), "{outcome:#}");
}

fn modes_of_others_are_not_told_as_denials(world: &Fixture) {
    let closed = world.write("i/closed", "x");
    let open = |mode| std::fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    open(0o600);
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&closed, Some(12), Some(12)).unwrap();
    } else {
        open(0o000);
    }
    let outcome = explained(world, &[], "cat i/closed");
    assert_ne!(outcome["code"], 0, "{outcome:#}");
    let told = blocked(&outcome);
    match (world.actor, nix::unistd::geteuid().is_root()) {
        // Root elsewhere could: it is the capability that it lacks.
        (Actor::Root, true) => {
            assert_eq!(told.len(), 1, "{outcome:#}");
            assert_eq!(
                (told[0].wanted.as_str(), told[0].what.as_str(), told[0].by.as_str()),
                ("read", closed.to_str().unwrap(), "capabilities")
            );
        }
        (Actor::User | Actor::Root, _) => assert_eq!(told, [], "{outcome:#}"),
    }
}

fn what_asking_would_permit_is_said(world: &Fixture) {
    let config = files(world);
    let _program = Trial::new(world);
    assert!(operate(world).exists());
    let at = world.workspace();
    let outcome = explained(
        world,
        &[
            "--config",
            config.to_str().unwrap(),
            "--cwd",
            at.join("free").to_str().unwrap(),
        ],
        &format!("cat {}", at.join("private/a").display()),
    );
    let change = outcome["explained"]["blocked"][0]["change"].to_string();
    assert!(change.contains("asked about and approved"), "{outcome:#}");
    let notes = outcome["explained"]["blocked"][0]["notes"].to_string();
    assert!(notes.contains("`private`"), "{outcome:#}");
}
