//! Approval without a sandbox: functions of the program, with modes, memory, groups, delegates and history.
//!
//! No config, no root, no child. Run it at a terminal (`cargo run --example approval_alone`).
#![expect(clippy::print_stdout, reason = "it shows what the calls return")]

use serde_json::json;
use stockade::{ApprovalContext, Demand, FunctionTool, TerminalApprover, ToolSet};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut tools = ToolSet::builder()
        .tool("stats", Demand::None)
        .tool("drop_table", Demand::Deny)
        .approver(TerminalApprover::new())
        .build();
    for name in ["stats", "notify", "drop_table"] {
        tools.add(function(name));
    }

    // One runs, one is asked about (`s` says yes for the session), one is blocked.
    for name in ["stats", "notify", "notify", "drop_table"] {
        match tools.call(name, json!({"to": "team"})).await {
            Ok(output) => println!("{}", output.text),
            Err(error) => println!("{error}"),
        }
    }

    // Calls of one group are one question.
    let page = |who: &str| ApprovalContext {
        group_id: Some("paging".to_owned()),
        ..ApprovalContext::new("notify", json!({"to": who}))
    };
    for done in tools.call_together(&[page("ann"), page("bob")]).await {
        println!("{}", done.map_or_else(|error| error.to_string(), |output| output.text));
    }

    // A worker has its own tools and the same memory: what was approved for the session is not asked again.
    let mut worker = tools.delegate("worker");
    worker.add(function("notify"));
    let _done = worker.call("notify", json!({"to": "team"})).await;

    for approval in tools.approvals() {
        println!("{} holds: {}", approval.id, approval.description);
        tools.revoke(approval.id);
    }
    for record in tools.history() {
        let who = record.caller.unwrap_or_else(|| "the agent".to_owned());
        println!("{who}: {} ({})", record.description, record.verdict.decision.approved);
    }
}

fn function(name: &str) -> Box<FunctionTool> {
    let named = name.to_owned();
    let function = FunctionTool::new(name, "", json!({"type": "object"}), move |call| {
        let done = format!("{named}: {}", call.args["to"]);
        async move { Ok(json!(done)) }
    });
    let named = name.to_owned();
    Box::new(function.described_by(move |args| format!("{named} {}", args["to"])))
}
