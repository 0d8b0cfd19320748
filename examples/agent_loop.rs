//! An agent with hands: it reads, edits, runs its tests, is told no, and finds another way.
//!
//! All that a program needs of Stockade stands in `main` and `run`; the agent below them is a script, where yours asks a
//! model. Run it at a terminal (`cargo run --example agent_loop`) and answer its questions with y or n.
#![expect(clippy::print_stdout, reason = "it tells what it does")]

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use stockade::{FunctionTool, Session, TerminalApprover};

fn main() -> Result<(), Box<dyn Error>> {
    // The confined child is this same program, started again.
    stockade::init();
    let place = prepared()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(place.path()))
}

async fn run(place: &Path) -> Result<(), Box<dyn Error>> {
    let session = Session::builder()
        .config_file(place.join("agent.yaml"))
        .directory(place.join("project"));
    let session = session.approver(TerminalApprover::new()).open()?;
    let mut tools = session.tools();
    // A function of the program itself, asked about like any other tool; nobody is shown the key.
    let notify = FunctionTool::new("notify", "Tell the team.", notify_schema(), |call| async move {
        Ok(json!(format!("told the team: {}", call.args["text"])))
    });
    let notify = notify.redacted_by(|args| json!({"text": args["text"], "key": "(hidden)"}));
    tools.add(Box::new(notify));
    let mut agent = Agent::default();
    while let Some((tool, args)) = agent.wants() {
        let done = tools.call(tool, args).await.map(|output| output.text);
        agent.hears(tool, done.unwrap_or_else(|error| error.to_string()));
    }
    session.finish().await;
    Ok(())
}

// The agent, and its world. Nothing below knows who guards it.

/// A script that listens.
#[derive(Debug, Default)]
struct Agent {
    heard: Vec<String>,
}

impl Agent {
    /// What it does next, after what it heard.
    fn wants(&self) -> Option<(&'static str, Value)> {
        let last = self.heard.last().map(String::as_str).unwrap_or_default();
        Some(match self.heard.len() {
            0 => ("read_file", json!({"path": "greet.sh"})),
            1 => (
                "edit_file",
                json!({"path": "greet.sh", "edits": [{"old": "Helo", "new": "Hello"}]}),
            ),
            2 => ("shell", json!({"command": "sh test.sh"})),
            3 => ("shell", json!({"command": "rm -r old"})),
            // The rule said how it is done instead.
            4 if last.contains("delete_file") => ("delete_file", json!({"path": "old", "recursive": true})),
            // A person said no: out of the way is good enough.
            5 if last.contains("denied") => ("move_file", json!({"from": "old", "to": "attic"})),
            6 => (
                "notify",
                json!({"text": "the greeting is spelled right", "key": "s3cret"}),
            ),
            _ => return None,
        })
    }

    fn hears(&mut self, tool: &str, text: String) {
        println!("agent: {tool}\n  {}", text.trim_end().replace('\n', "\n  "));
        self.heard.push(text);
    }
}

fn notify_schema() -> Value {
    json!({"type": "object", "properties": {"text": {"type": "string"}, "key": {"type": "string"}}})
}

const CONFIG: &str = "\
extends: [system]
sandbox:
  protect_fallback: undo
  paths:
    project: {root: ./project, mode: rw, approval: {write: required, read: none}}
shell:
  rules:
    - {pattern: sh test.sh, approval: none}
    - {pattern: rm, allowed: false, reason: delete with delete_file}
";

/// A temporary directory with the project and its config.
fn prepared() -> std::io::Result<tempfile::TempDir> {
    let place = tempfile::tempdir()?;
    let project = place.path().join("project");
    fs::create_dir_all(project.join("old"))?;
    fs::write(project.join("old/draft"), "a draft\n")?;
    fs::write(project.join("greet.sh"), "echo 'Helo, world'\n")?;
    fs::write(project.join("test.sh"), "sh greet.sh | grep -q Hello && echo passed\n")?;
    fs::write(place.path().join("agent.yaml"), CONFIG)?;
    Ok(place)
}
