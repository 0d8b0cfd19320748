//! A config with every kind of line, as `stockade profile` meets it.

use std::fs;

use serde_json::Value;

use super::{Actor, Backend, Fixture, Run};

/// A config of which every kind of line is in; its roots are in the workspace.
pub(crate) const CONFIG: &str = "\
sandbox:
  protect_fallback: undo
  deny_fallback: decompose
  paths:
    notes: {root: ./notes, mode: rw, suffixes: [.md], max_file_bytes: 1MiB, approval: {write: required, read: none}}
    src: {root: ./src, mode: rw, write_approval: false, deny: [.env, ./secret]}
    tools: {root: ./tools, execute: true}
    private: {root: ./private, approval: {read: once_per_session}}
shell:
  network: true
  limits: {timeout: 90s, memory: 2GiB, processes: 64, output: 1500}
  env: {pass: [TZ], set: {CI: \"a b\"}}
  rules:
    - {pattern: git status, approval: none}
    - {pattern: rm, allowed: false}
extends: []
";

pub(crate) fn world() -> Fixture {
    let world = Fixture::new(Actor::invoker(), Backend::Landlock);
    for folder in ["notes", "src/secret", "tools", "private"] {
        fs::create_dir_all(world.workspace().join(folder)).unwrap();
    }
    world.write(world.workspace().join("agent.yaml"), CONFIG);
    world
}

/// `stockade profile WORDS…` in the workspace, beside agent.yaml.
pub(crate) fn profile(world: &Fixture, words: &[&str]) -> Run {
    let words: Vec<&str> = [&["profile"], words].concat();
    world.stockade(&words).cwd(world.workspace()).output()
}

/// The output with what differs from run to run taken out.
pub(crate) fn shown(world: &Fixture, run: Run) -> String {
    plain(world, &run.ok())
}

/// The same of text. How wide a column is depends on where the workspace is, so blanks count as one.
pub(crate) fn plain(world: &Fixture, text: &str) -> String {
    let text = text.replace(world.workspace().to_str().unwrap(), "<workspace>");
    let line = |line: &str| {
        let indent = &line[..line.len() - line.trim_start().len()];
        let words: Vec<&str> = line.split_whitespace().collect();
        format!("{indent}{}\n", words.join(" "))
    };
    text.lines().map(line).collect()
}

pub(crate) fn json(run: &Run) -> Value {
    serde_json::from_str(&run.out()).unwrap_or_else(|error| panic!("{error}: {} {}", run.out(), run.err()))
}
