//! What the agent does: calls of tools, under a config.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::Fixture;
use crate::stories::terminal::{Size, Terminal, USUAL};

/// Everything in the workspace may be read; each change, and each command, is asked about.
pub(crate) const CAREFUL: &str = "approval: {write: required, read: none}";
/// What a root says that demands the same by default.
pub(crate) const BY_DEFAULT: &str = "execute: false";

/// Writes a config whose one root is the workspace, with `root` said of it and `rest` of everything else.
pub(crate) fn config(world: &Fixture, root: &str, rest: &str) -> String {
    let text = format!(
        "extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    w: {{root: {}, mode: rw, {root}}}
{rest}",
        world.workspace().display()
    );
    let file = world.write(world.base().join("agent.yaml"), text);
    file.to_str().unwrap().to_owned()
}

/// The words of `stockade call --config CONFIG WORDS…`, in the regime of the fixture.
pub(crate) fn call<'a>(world: &'a Fixture, config: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    let backend = world.backend.name();
    let binary = world.binary().to_str().unwrap();
    [
        &[binary, "call", "--quiet", "--config", config, "--backend", backend],
        words,
    ]
    .concat()
}

/// One call at a terminal.
pub(crate) fn one<'w>(world: &'w Fixture, config: &str, tool: &str, args: &Value) -> Terminal<'w> {
    one_with(world, USUAL, &[], config, &[], tool, args)
}

/// The same with flags, at a terminal that looks so.
pub(crate) fn one_with<'w>(
    world: &'w Fixture,
    size: Size,
    environment: &[(&str, &str)],
    config: &str,
    flags: &[&str],
    tool: &str,
    args: &Value,
) -> Terminal<'w> {
    let args = args.to_string();
    let words = [flags, &[tool, &args]].concat();
    Terminal::start(world, size, environment, &call(world, config, &words))
}

/// One command at a terminal.
pub(crate) fn command<'w>(world: &'w Fixture, config: &str, line: &str) -> Terminal<'w> {
    one(world, config, "shell", &json!({"command": line}))
}

/// A session at a terminal: the agent's lines come from a file, and what it is answered goes to another.
pub(crate) fn session<'w>(world: &'w Fixture, config: &str, flags: &[&str], lines: &[Value]) -> Terminal<'w> {
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let calls = world.write(world.base().join("calls"), text.join("\n"));
    let to = answers_of(world);
    let line = "calls=$1 answers=$2; shift 2; exec \"$@\" <\"$calls\" >\"$answers\"";
    let files = [calls.to_str().unwrap(), to.to_str().unwrap()];
    let stockade = call(world, config, &[flags, &["--stream"]].concat());
    let argv = [&["/bin/sh", "-c", line, "sh"], files.as_slice(), &stockade].concat();
    Terminal::start(world, USUAL, &[], &argv)
}

fn answers_of(world: &Fixture) -> PathBuf {
    world.base().join("run/answers")
}

/// What the agent was answered in a session that has ended.
#[track_caller]
pub(crate) fn answers(world: &Fixture) -> Vec<Value> {
    let text = fs::read_to_string(answers_of(world)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A line of a session: the agent calls a tool.
pub(crate) fn calls(tool: &str, args: Value) -> Value {
    let mut line = json!({"call": {"tool": tool}});
    line["call"]["args"] = args;
    line
}

/// A line of a session: somebody whom the agent delegated to does.
pub(crate) fn calls_for(caller: &str, tool: &str, args: Value) -> Value {
    let mut line = calls(tool, args);
    line["call"]["caller"] = caller.into();
    line
}

/// A line of a session: the agent runs a command.
pub(crate) fn runs(line: &str) -> Value {
    calls("shell", json!({"command": line}))
}

/// The text of a file in the workspace, if it is there.
pub(crate) fn text_of(world: &Fixture, name: &str) -> Option<String> {
    fs::read_to_string(world.workspace().join(name)).ok()
}
