//! The tools that the official conformance suite of MCP asks for, behind the transport of `stockade mcp --http`.
//!
//! The suite calls tools of its own (`test_simple_text`, …), which no config of Stockade offers. What it says of those
//! tells about the transport: which messages pass, in which order, with which status. `tests/conformance/run.sh` runs it.

mod fixtures;
mod rounds;

use std::error::Error;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use stockade::mcp::http::{HttpServer, HttpSettings, HttpToken};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use fixtures::Fixtures;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(address), Some(token)) = (arguments.next(), arguments.next()) else {
        return Err("usage: conformance_server ADDRESS TOKEN_FILE".into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(address, token.into()))
}

async fn serve(address: OsString, token: PathBuf) -> Result<(), Box<dyn Error>> {
    let address = address.into_string().map_err(|_| "the address is no text")?;
    let token = HttpToken::read(&token, |_| None)?;
    let server = HttpServer::bind(HttpSettings::new(&address, &[], &[], token)?)?;
    std::io::stderr().write_all(format!("conformance: {}", server.announcement()).as_bytes())?;
    let (teller, stops) = mpsc::channel(1);
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        while terminated.recv().await.is_some() {
            let _gone = teller.send(Signal::SIGTERM).await;
        }
    });
    server
        .serve(|| Fixtures, || true, CancellationToken::new(), stops)
        .await?;
    Ok(())
}
