//! `stockade audit show`.

use std::collections::VecDeque;
use std::path::PathBuf;

use clap::Args;

use super::told::told;
use super::verify::partial;
use super::wanted::{Calls, Wanted};
use super::{complain, place};
use crate::audit::{Entry, records, verify};
use crate::cli::complain::{Complaint, print, say};
use crate::cli::exit::Exit;
use crate::policy::path::escape;

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
    let mut kept: VecDeque<String> = VecDeque::new();
    for entry in records(&place).map_err(complain)? {
        let line = match entry.map_err(complain)? {
            Entry::Record(record) if !args.wanted.wants(&record, &mut calls) => continue,
            Entry::Record(record) if args.json => format!("{}\n", serde_json::Value::Object(record)),
            Entry::Record(record) => told(&record),
            // It is no JSON, and nobody can tell what it is about.
            Entry::Unreadable(line) if args.json => {
                let line = escape(line.get(..line.len().min(200)).unwrap_or_default());
                format!("{}\n", serde_json::json!({"unreadable": line}))
            }
            Entry::Unreadable(line) => {
                let line = escape(line.get(..line.len().min(200)).unwrap_or_default());
                format!("(no record) {line}\n")
            }
        };
        match args.limit {
            None => print(&line)?,
            Some(limit) => {
                kept.push_back(line);
                if kept.len() > limit {
                    kept.pop_front();
                }
            }
        }
    }
    for line in kept {
        print(&line)?;
    }
    Ok(match report.fault {
        None => Exit::Success,
        Some(_) => Exit::Found,
    })
}
