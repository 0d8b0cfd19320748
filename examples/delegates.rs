//! Agents that call agents: one session, one person, and a word of the program's own.
//!
//! Whoever asks is named in the question; a yes for the session holds for all of them. No config is written here: the
//! preset confines, and a hook of the program says what is asked about. Run it at a terminal
//! (`cargo run --example delegates`).
#![expect(clippy::print_stdout, reason = "it tells what it does")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use stockade::{ApprovalContext, Assessment, Override, Session, TerminalApprover};

fn main() -> Result<(), Box<dyn Error>> {
    stockade::init();
    let project = tempfile::tempdir()?;
    std::fs::write(project.path().join("check.sh"), "echo looks fine\n")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(project.path()))
}

async fn run(project: &Path) -> Result<(), Box<dyn Error>> {
    let agent = Session::builder().preset("workspace-write").directory(project);
    let agent = agent
        .approver(TerminalApprover::new())
        .open()?
        .overridden_by(Arc::new(word));
    let planner = agent.delegate("planner");
    let reviewer = planner.delegate("reviewer");
    let (check, note) = (
        json!({"command": "sh check.sh"}),
        json!({"path": "note", "content": "fine\n"}),
    );
    for (who, session, tool, args) in [
        ("reviewer", &reviewer, "shell", &check),
        // The same command: a yes for the session is enough for all three.
        ("planner", &planner, "shell", &check),
        ("agent", &agent, "shell", &check),
        ("reviewer", &reviewer, "write_file", &note),
        ("reviewer", &reviewer, "delete_file", &json!({"path": "check.sh"})),
        ("reviewer", &reviewer, "read_file", &json!({"path": "check.sh"})),
    ] {
        println!("{who}: {}", done(session, tool, args).await);
    }
    for record in agent.history() {
        let caller = record.caller.as_deref().unwrap_or("the agent");
        println!(
            "{caller} may {}: {}",
            record.tool_name, record.verdict.decision.approved
        );
    }
    agent.finish().await;
    Ok(())
}

/// The program's own word on each call, after the config's.
fn word(call: &ApprovalContext, _: &Assessment) -> Override {
    let is_reviewer = call
        .caller
        .as_deref()
        .is_some_and(|caller| caller.ends_with("reviewer"));
    match call.tool_name.as_str() {
        "delete_file" if is_reviewer => Override::Block("a reviewer deletes nothing".to_owned()),
        "shell" | "write_file" => Override::Ask,
        _ => Override::Keep,
    }
}

async fn done(session: &Session, tool: &str, args: &Value) -> String {
    match session.tools().call(tool, args.clone()).await {
        Ok(output) => output.text.trim_end().to_owned(),
        Err(error) => error.to_string(),
    }
}
