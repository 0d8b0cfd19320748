//! `stockade audit show`.

use std::collections::VecDeque;
use std::path::PathBuf;

use clap::Args;

use super::describe::record_line;
use super::filter::{Calls, Filter};
use super::log::{audit_error, entries, locate};
use super::verify::partial;
use crate::audit::{AuditError, Entry, verify};
use crate::cli::error::{CliError, print, print_notice, print_stderr};
use crate::cli::exit::Exit;
use crate::policy::path::escape;

/// How many bytes are buffered before they are printed.
const AT_ONCE: usize = 64 << 10;

/// `stockade audit show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The log; the files beside it belong to it. Without this, the default one.
    #[arg(long, value_name = "PATH")]
    pub log: Option<PathBuf>,
    /// Which records are wanted.
    #[command(flatten)]
    pub filter: Filter,
    /// Only the last so many of them.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Print the records as they are, one JSON object a line.
    #[arg(long)]
    pub json: bool,
}

pub(super) fn show(args: &ShowArgs) -> Result<Exit, CliError> {
    let location = locate(args.log.as_ref())?;
    let report = verify(&location, None).map_err(audit_error)?;
    if let Some(fault) = &report.fault {
        print_notice(format_args!(
            "THE LOG IS NOT AS IT WAS WRITTEN, so what follows may not be what happened\n  → {fault}"
        ));
    } else {
        print_stderr(&partial(report.tail));
    }
    let mut calls = Calls::default();
    let matching = entries(&location, &report)?.filter(|entry| match entry {
        Ok(Entry::Record(record)) => args.filter.matches(record, &mut calls),
        Ok(Entry::Unreadable(_)) | Err(_) => true,
    });
    match args.limit {
        None => lines(matching, args.json)?,
        Some(limit) => {
            let mut kept = VecDeque::new();
            for entry in matching {
                kept.push_back(Ok(entry.map_err(audit_error)?));
                if kept.len() > limit {
                    kept.pop_front();
                }
            }
            lines(kept.into_iter(), args.json)?;
        }
    }
    Ok(match report.fault {
        None => Exit::Success,
        Some(_) => Exit::Found,
    })
}

/// Prints the entries, buffered.
fn lines(entries: impl Iterator<Item = Result<Entry, AuditError>>, json: bool) -> Result<(), CliError> {
    let mut text = String::new();
    for entry in entries {
        match entry {
            Ok(entry) => text.push_str(&line(entry, json)),
            Err(error) => {
                print(&text)?;
                return Err(audit_error(error));
            }
        }
        if text.len() >= AT_ONCE {
            print(&text)?;
            text.clear();
        }
    }
    print(&text)
}

fn line(entry: Entry, json: bool) -> String {
    match entry {
        Entry::Record(record) if json => format!("{}\n", serde_json::Value::Object(record)),
        Entry::Record(record) => record_line(&record),
        Entry::Unreadable(line) => {
            let line = escape(line.get(..line.len().min(200)).unwrap_or_default());
            if json {
                format!("{}\n", serde_json::json!({"unreadable": line}))
            } else {
                format!("(no record) {line}\n")
            }
        }
    }
}
