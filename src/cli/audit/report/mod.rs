//! `stockade audit report`: a log as one page that a person reads, or as one JSON document.
//!
//! `builder` turns records into sessions, calls and profiles (`model`), `denied` into denials; [`page`] writes them as HTML. The page
//! loads nothing: its own policy forbids that. Text of an agent is never markup.

mod builder;
mod denied;
mod model;
mod page;
mod record;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::filter::{Calls, Filter};
use super::log::{audit_error, entries, locate};
use crate::audit::{Entry, verify};
use crate::cli::error::{CliError, print, print_notice};
use crate::cli::exit::Exit;
use crate::config::state_files;
use crate::policy::path::display;

use builder::ReportBuilder;
use model::LogReport;

/// The most calls that a report shows; of more, the last.
const MAX_CALLS: usize = 5_000;

/// `stockade audit report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The log; the files beside it belong to it. Without this, the default one.
    #[arg(long, value_name = "PATH")]
    pub log: Option<PathBuf>,
    /// Which records are wanted.
    #[command(flatten)]
    pub filter: Filter,
    /// Write one page of HTML that needs nothing else.
    #[arg(long, required_unless_present = "json")]
    pub html: bool,
    /// Write the same as one JSON object.
    #[arg(long, conflicts_with = "html")]
    pub json: bool,
    /// Only the last so many calls.
    #[arg(long, value_name = "N", default_value_t = MAX_CALLS)]
    pub limit: usize,
    /// Write it to this file, readable by you alone, instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

pub(super) fn report(args: &ReportArgs) -> Result<Exit, CliError> {
    let location = locate(args.log.as_ref())?;
    let found = verify(&location, None).map_err(audit_error)?;
    let mut calls = Calls::default();
    let mut builder = ReportBuilder::new(args.limit);
    // All records of a call with that decision are selected.
    let filter = Filter {
        decision: None,
        ..args.filter.clone()
    };
    for entry in entries(&location, &found)? {
        match entry.map_err(audit_error)? {
            Entry::Record(record) if filter.matches(&record, &mut calls) => builder.add(&record),
            Entry::Record(_) => {}
            Entry::Unreadable(_) => builder.unreadable(),
        }
    }
    let log_report = builder.done(location.log(), &found, args.filter.decision);
    let text = if args.html {
        page::page(&log_report)
    } else {
        json(&log_report)?
    };
    match &args.out {
        None => print(&text)?,
        Some(file) => write(file, &text)
            .map_err(|error| CliError::failed(format!("failed to write {}: {error}", display(file))))?,
    }
    match &found.fault {
        None => Ok(Exit::Success),
        Some(fault) => {
            print_notice(format_args!(
                "THE LOG IS NOT AS IT WAS WRITTEN, so the report may not be of what happened\n  → {fault}"
            ));
            Ok(Exit::Found)
        }
    }
}

fn json(log_report: &LogReport) -> Result<String, CliError> {
    let text = serde_json::to_string(log_report).map_err(CliError::failed)?;
    Ok(format!("{text}\n"))
}

/// Writes the file atomically, readable by its owner alone.
fn write(file: &Path, text: &str) -> io::Result<()> {
    state_files::replace(&std::path::absolute(file)?, text.as_bytes())
}
