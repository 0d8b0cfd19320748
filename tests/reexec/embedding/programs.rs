//! The programs. Each notes that it was started, runs a command in a session, and prints what came of it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use stockade::Session;

/// A program by the name of its file.
pub(crate) fn named(name: &str) -> Option<fn() -> ExitCode> {
    Some(match name {
        "careful" => careful,
        "forgetful" => forgetful,
        "late" => late,
        "fickle" => fickle,
        _ => return None,
    })
}

/// Calls `init` first.
fn careful() -> ExitCode {
    stockade::init();
    run()
}

/// Never calls it.
fn forgetful() -> ExitCode {
    run()
}

/// Calls it when there is a thread.
fn late() -> ExitCode {
    let _thread = std::thread::spawn(|| std::thread::sleep(Duration::from_mins(1)));
    stockade::init();
    run()
}

/// Calls it only where it has no arguments, which the confined child has.
fn fickle() -> ExitCode {
    if std::env::args_os().len() == 1 {
        stockade::init();
    }
    run()
}

/// Where a program notes that it was started.
pub(crate) fn notes(program: &Path) -> PathBuf {
    program.with_extension("starts")
}

fn run() -> ExitCode {
    let program = std::env::current_exe().unwrap();
    let mut notes = OpenOptions::new()
        .create(true)
        .append(true)
        .open(notes(&program))
        .unwrap();
    notes.write_all(b"!").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done: Result<String, Box<dyn std::error::Error>> = runtime.unwrap().block_on(async {
        let session = Session::builder()
            .directory(program.parent().unwrap())
            .set("extends", json!(["system"]))
            .rule(json!({"pattern": "echo", "approval": "none"}))
            .open()?;
        let output = session
            .tools()
            .call("shell", json!({"argv": ["echo", "confined"]}))
            .await;
        session.finish().await;
        Ok(output?.text)
    });
    match done {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
