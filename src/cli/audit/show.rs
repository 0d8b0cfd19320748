//! `stockade audit show`.

use std::collections::VecDeque;
use std::path::PathBuf;

use clap::Args;

use super::log::{complain, entries, place};
use super::told::told;
use super::verify::partial;
use super::wanted::{Calls, Wanted};
use crate::audit::{AuditError, Entry, verify};
use crate::cli::complain::{Complaint, print, say};
use crate::cli::exit::Exit;
use crate::policy::path::escape;

/// About how much is printed at once.
const AT_ONCE: usize = 64 << 10;

/// `stockade audit show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The log; the files beside it belong to it. Without this, the default one.
    #[arg(long, value_name = "PATH")]
    pub log: Option<PathBuf>,
    /// Which records are wanted.
    #[command(flatten)]
    pub wanted: Wanted,
    /// Only the last so many of them.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Print the records as they are, one JSON object a line.
    #[arg(long)]
    pub json: bool,
}

pub(super) fn show(args: &ShowArgs) -> Result<Exit, Complaint> {
    let place = place(args.log.as_ref())?;
    let report = verify(&place, None).map_err(complain)?;
    if let Some(fault) = &report.fault {
        say(&format!(
            "stockade: THE LOG IS NOT AS IT WAS WRITTEN, so what follows may not be what happened\n  → {fault}\n"
        ));
    } else {
        say(&partial(report.tail));
    }
    let mut calls = Calls::default();
    let wanted = entries(&place, &report)?.filter(|entry| match entry {
        Ok(Entry::Record(record)) => args.wanted.wants(record, &mut calls),
        Ok(Entry::Unreadable(_)) | Err(_) => true,
    });
    match args.limit {
        None => lines(wanted, args.json)?,
        Some(limit) => {
            let mut kept = VecDeque::new();
            for entry in wanted {
                kept.push_back(Ok(entry.map_err(complain)?));
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

/// Prints them, many at once.
fn lines(entries: impl Iterator<Item = Result<Entry, AuditError>>, json: bool) -> Result<(), Complaint> {
    let mut text = String::new();
    for entry in entries {
        match entry {
            Ok(entry) => text.push_str(&line(entry, json)),
            Err(error) => {
                print(&text)?;
                return Err(complain(error));
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
        Entry::Record(record) => told(&record),
        Entry::Unreadable(line) => {
            let line = escape(line.get(..line.len().min(200)).unwrap_or_default());
            if json {
                // It is no JSON, and nobody can tell what it is about.
                format!("{}\n", serde_json::json!({"unreadable": line}))
            } else {
                format!("(no record) {line}\n")
            }
        }
    }
}
