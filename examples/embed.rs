//! The least that a program needs: a session and one call.
//!
//! `docs/calls.md` shows this file. Run it in a directory with a `stockade.yaml` (`cargo run --example embed`).
#![expect(clippy::print_stdout, reason = "it shows what the call returns")]

use serde_json::json;
use stockade::{Session, TerminalApprover};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    stockade::init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let session = Session::builder()
            .config_file("stockade.yaml")
            .approver(TerminalApprover::new())
            .open()?;
        let output = session.tools().call("read_file", json!({"path": "README.md"})).await?;
        println!("{}", output.text);
        session.finish().await;
        Ok(())
    })
}
