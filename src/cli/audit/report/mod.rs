//! `stockade audit report`: a log as one page that a person reads, or as one JSON document.
//!
//! `gather` makes sessions, calls and profiles (`model`) of records, `denied` what was denied to commands;
//! [`page`] writes them as HTML. The page is whole in itself: nothing in it is loaded from anywhere, its own
//! policy forbids that, and of what an agent wrote nothing is markup.

mod denied;
mod gather;
mod model;
mod page;
mod record;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::log::{complain, entries, place};
use super::wanted::{Calls, Wanted};
use crate::audit::{Entry, verify};
use crate::cli::complain::{Complaint, print, say};
use crate::cli::exit::Exit;
use crate::config::state_files;
use crate::policy::path::display;

use gather::Gathering;
use model::Gathered;

/// The most calls that a report shows; of more, the last.
const MOST_CALLS: usize = 5_000;

/// `stockade audit report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The log; the files beside it belong to it. Without this, the default one.
    #[arg(long, value_name = "PATH")]
    pub log: Option<PathBuf>,
    /// Which records are wanted.
    #[command(flatten)]
    pub wanted: Wanted,
    /// Write one page of HTML that needs nothing else.
    #[arg(long, required_unless_present = "json")]
    pub html: bool,
    /// Write the same as one JSON object.
    #[arg(long, conflicts_with = "html")]
    pub json: bool,
    /// Only the last so many calls.
    #[arg(long, value_name = "N", default_value_t = MOST_CALLS)]
    pub limit: usize,
    /// Write it to this file, readable by you alone, instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

pub(super) fn report(args: &ReportArgs) -> Result<Exit, Complaint> {
    let place = place(args.log.as_ref())?;
    let found = verify(&place, None).map_err(complain)?;
    let mut calls = Calls::default();
    let mut gathering = Gathering::new(args.limit);
    // Of a call with the wanted decision all is wanted.
    let wanted = Wanted {
        decision: None,
        ..args.wanted.clone()
    };
    for entry in entries(&place, &found)? {
        match entry.map_err(complain)? {
            Entry::Record(record) if wanted.wants(&record, &mut calls) => gathering.add(&record),
            Entry::Record(_) => {}
            Entry::Unreadable(_) => gathering.unreadable(),
        }
    }
    let gathered = gathering.done(place.log(), &found, args.wanted.decision);
    let text = if args.html {
        page::page(&gathered)
    } else {
        json(&gathered)?
    };
    match &args.out {
        None => print(&text)?,
        Some(file) => write(file, &text)
            .map_err(|error| Complaint::failed(format!("failed to write {}: {error}", display(file))))?,
    }
    match &found.fault {
        None => Ok(Exit::Success),
        Some(fault) => {
            say(&format!(
                "stockade: THE LOG IS NOT AS IT WAS WRITTEN, so the report may not be of what happened\n  → {fault}\n"
            ));
            Ok(Exit::Found)
        }
    }
}

fn json(gathered: &Gathered) -> Result<String, Complaint> {
    let text = serde_json::to_string(gathered).map_err(Complaint::failed)?;
    Ok(format!("{text}\n"))
}

/// Writes all of it or nothing, for its owner alone.
fn write(file: &Path, text: &str) -> io::Result<()> {
    state_files::replace(&std::path::absolute(file)?, text.as_bytes())
}
