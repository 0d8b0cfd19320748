//! `stockade audit verify`.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::log::{audit_error, locate};
use crate::audit::{Fault, Report, Tail, verify as walk};
use crate::cli::error::{CliError, print};
use crate::cli::exit::Exit;
use crate::policy::hex::hex;
use crate::policy::path::display;

/// `stockade audit verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The log; the files beside it belong to it. Without this, the default one.
    #[arg(long, value_name = "PATH")]
    pub log: Option<PathBuf>,
    /// A hash that was noted down elsewhere, all 64 hexadecimal digits of it: some record must have it.
    #[arg(long, value_name = "HASH", value_parser = parse_hash)]
    pub expect: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Refuses anything but a full hash: a typing error must not look like a log that was changed.
fn parse_hash(text: &str) -> Result<String, String> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_owned());
    }
    Err("a hash is 64 hexadecimal digits, as `audit verify` prints it".to_owned())
}

pub(super) fn verify(args: &VerifyArgs) -> Result<Exit, CliError> {
    let location = locate(args.log.as_ref())?;
    let report = walk(&location, args.expect.as_deref()).map_err(audit_error)?;
    let shown = display(location.log());
    if args.json {
        print(&format!("{}\n", object(&report, &shown)))?;
    } else {
        print(&text(&report, &shown))?;
    }
    Ok(match report.fault {
        None => Exit::Success,
        Some(_) => Exit::Found,
    })
}

fn text(report: &Report, shown: &str) -> String {
    let files = if report.files == 1 {
        String::new()
    } else {
        format!(" in {} files", report.files)
    };
    let removed = report
        .removed
        .map(|last| format!("; files up to {last} were removed by rotation"))
        .unwrap_or_default();
    let last = match report.last {
        Some((seq, hash)) => format!("the last of them is {seq}, with the hash {}\n", hex(&hash)),
        None => String::new(),
    };
    match &report.fault {
        Some(fault) => format!(
            "{shown}: NOT AS IT WAS WRITTEN\n{fault}\n{} records before that are as they were written{files}{removed}\n{last}",
            report.records
        ),
        None => format!(
            "{shown}: ok, {} records{files}{removed}\n{last}{}{}",
            report.records,
            behind(report.behind),
            partial(report.tail)
        ),
    }
}

/// A note on a partial last line.
pub(super) fn partial(tail: Tail) -> String {
    match tail {
        Tail::Complete => String::new(),
        Tail::Partial(bytes) => {
            format!(
                "partial last line: {bytes} bytes behind the last record, as a crash leaves them; the next session removes them\n"
            )
        }
    }
}

/// A note on records behind the head.
fn behind(behind: Option<u64>) -> String {
    match behind {
        Some(0) => String::new(),
        Some(1) => "1 record is behind the head: nothing would tell of it were it cut off\n".to_owned(),
        Some(count) => format!("{count} records are behind the head: nothing would tell of it were they cut off\n"),
        None => "there is no head, which says how far a log was certainly written: it was just begun, or cut to its \
                 beginning\n"
            .to_owned(),
    }
}

fn object(report: &Report, shown: &str) -> Value {
    let (tail, partial_bytes) = match report.tail {
        Tail::Complete => ("whole", 0),
        Tail::Partial(bytes) => ("partial", bytes),
    };
    json!({
        "ok": report.fault.is_none(),
        "log": shown,
        "records": report.records,
        "files": report.files,
        "last": report.last.map(|(seq, hash)| json!({"seq": seq, "hash": hex(&hash)})),
        "behind_head": report.behind,
        "tail": tail,
        "partial_bytes": partial_bytes,
        "removed_up_to_file": report.removed,
        "fault": report.fault.as_ref().map(fault),
    })
}

fn fault(fault: &Fault) -> Value {
    let mut object = json!({
        "file": display(&fault.file),
        "line": fault.line,
        "seq": fault.seq,
        "told": fault.to_string(),
    });
    if let (Some(members), Ok(Value::Object(wrong))) = (object.as_object_mut(), serde_json::to_value(&fault.wrong)) {
        members.extend(wrong);
    }
    object
}
