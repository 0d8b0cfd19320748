//! Approvers of the program's own: a closure, and an async function that passes questions on to another task.
//!
//! Run it with `cargo run --example own_approver`.
#![expect(clippy::print_stdout, reason = "it shows what the calls return")]

use std::time::Duration;

use serde_json::json;
use stockade::{ApprovalDecision, ApprovalRequest, Approver, AsyncApprover, FunctionTool, ToolSet};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

type Question = (String, oneshot::Sender<ApprovalDecision>);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // A closure decides by what the request says.
    let by_name = |request: &ApprovalRequest| match request.tool_name.as_str() {
        "look" => ApprovalDecision::approve().for_session(),
        _ => ApprovalDecision::deny("this agent only looks"),
    };
    calls(by_name).await;

    // An async function waits for somebody: here another task, elsewhere a chat or a page.
    let (questions, inbox) = mpsc::channel::<Question>(1);
    tokio::spawn(person(inbox));
    calls(AsyncApprover::new(async move |request: &ApprovalRequest| {
        let (answer, answered) = oneshot::channel();
        let _nobody_reads = questions.send((request.description.clone(), answer)).await;
        match timeout(Duration::from_mins(1), answered).await {
            Ok(Ok(decision)) => decision,
            Ok(Err(_)) | Err(_) => ApprovalDecision::deny("nobody answered"),
        }
    }))
    .await;
}

async fn person(mut inbox: mpsc::Receiver<Question>) {
    while let Some((question, answer)) = inbox.recv().await {
        println!("? {question}");
        let _gone = answer.send(ApprovalDecision::approve());
    }
}

async fn calls(approver: impl Approver + Send + 'static) {
    let mut tools = ToolSet::builder().approver(approver).build();
    for name in ["look", "touch"] {
        tools.add(Box::new(FunctionTool::new(name, "", json!({}), |_| async {
            Ok(json!("done"))
        })));
        match tools.call(name, json!({})).await {
            Ok(output) => println!("{name}: {}", output.text),
            Err(error) => println!("{name}: {error}"),
        }
    }
}
