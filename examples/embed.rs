//! The least that a program needs: a session, one call, and a function of its own behind the same guard.
//!
//! `docs/calls.md` shows this file. Run it in a directory with a `stockade.yaml` (`cargo run --example embed`).
#![expect(clippy::print_stdout, reason = "it shows what the calls return")]

use serde_json::json;
use stockade::{ApprovalContext, FunctionTool, Prepared, Session, TerminalApprover, Tool as _, terminal_size};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    stockade::init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let here = std::env::current_dir()?;
        let approver = Box::new(TerminalApprover::new(terminal_size));
        let session = Session::with_config(&here.join("stockade.yaml"), &here, approver)?;
        let mut tools = session.tools();
        let read = tools.call("read_file", json!({"path": "README.md"})).await?;
        println!("{}", read.text);

        let schema = json!({"type": "object"});
        let now = FunctionTool::new("clock", "Tell the time", schema, |_| async { Ok(json!("noon")) }).pre_approved();
        let mut clock = session.delegate("planner").guarded(Box::new(now));
        let time = clock
            .call(&ApprovalContext::new("clock", json!({})), Prepared::nothing())
            .await?;
        println!("{}", time.text);
        session.finish().await;
        Ok(())
    })
}
