//! A read-only config, and what learning from it comes to.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::Fixture;

/// A config that lets the workspace be read, and nothing else of anybody's.
pub(crate) fn read_only(world: &Fixture) -> PathBuf {
    config(world, "    project: {root: ./workspace, mode: ro} # the project\n")
}

/// A config beside the workspace with these roots.
pub(crate) fn config(world: &Fixture, roots: &str) -> PathBuf {
    let text = format!(
        "# mine\nextends: [system, git, rust, node, python]\nsandbox:\n  protect_fallback: undo\n  paths:\n{roots}shell:\n  default: {{allowed: true, approval: none}}\n"
    );
    world.write(world.base().join("agent.yaml"), text)
}

/// What was learned, with these flags, of this line.
pub(crate) fn learn(world: &Fixture, config: &Path, flags: &[&str], line: &str) -> Value {
    let config = config.to_str().unwrap();
    let args = [&["learn", "--json", "--config", config], flags, &["-c", line]].concat();
    let run = world.stockade(&args).output();
    serde_json::from_str(&run.out()).unwrap_or_else(|error| panic!("{error}: {} {}", run.out(), run.err()))
}

/// Learning must come to a config with which the line passes, also when it is just run.
#[track_caller]
pub(crate) fn passes(world: &Fixture, config: &Path, flags: &[&str], line: &str) -> Value {
    let learned = learn(world, config, flags, line);
    assert_eq!(learned["passes"], true, "{learned:#}");
    world
        .stockade(&["run", "--config", config.to_str().unwrap(), "-c", line])
        .output()
        .exits(0);
    learned
}

/// The paths of what was proposed, with its risk and who accepted it.
pub(crate) fn proposals(learned: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let all = learned["proposals"].as_array().unwrap_or_else(|| panic!("{learned:#}"));
    all.iter()
        .map(|one| {
            (
                text(&one["change"]["path"]),
                text(&one["risk"]),
                text(&one["accepted_by"]),
            )
        })
        .collect()
}

/// Whether anything was accepted.
pub(crate) fn accepted_nothing(learned: &Value) -> bool {
    proposals(learned).iter().all(|(.., by)| by == "-")
}

pub(crate) fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

pub(crate) fn shown(path: impl AsRef<Path>) -> String {
    path.as_ref().to_str().unwrap().to_owned()
}
