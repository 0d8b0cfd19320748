//! `stockade profile`: a policy audited, one file per way of looking at it.

mod args;
mod check;
mod diff;
mod explain;
mod export;
mod show;

pub(in crate::cli) use args::ProfileArgs;

use args::View;

use super::args::{BackendFlag, PolicyFlags};
use super::complain::{Complaint, print, say};
use super::exit::Exit;
use super::policy::{self, Chosen, Purpose};
use crate::config::{Context, Loaded};
use crate::tools::inspect::{Backend, Inspection};
use crate::tools::person;

/// Looks at a policy in the way that was asked for.
pub(super) fn profile(args: ProfileArgs) -> Result<Exit, Complaint> {
    match args.view {
        View::Show(args) => show::show(&args),
        View::Explain(args) => explain::explain(&args),
        View::Check(args) => check::check(args),
        View::Diff(args) => diff::diff(&args),
        View::Export(args) => export::export(&args),
    }
}

/// The policy that the flags name, only looked at; what it warns of goes to standard error.
fn inspected(flags: &PolicyFlags, context: &Context) -> Result<Inspection, Complaint> {
    let cwd = here()?;
    let Chosen { loaded, narrowing } = policy::choose(flags, &cwd, context, Purpose::Look)?;
    warn(&loaded);
    let inspection = Inspection {
        person: person(context),
        ..Inspection::of(loaded.policy, narrowing)
    };
    Ok(match flags.backend {
        // What the policy says by now.
        BackendFlag::Auto | BackendFlag::Landlock | BackendFlag::Namespaces | BackendFlag::Bwrap => inspection,
        BackendFlag::Seatbelt => inspection.only(Backend::Seatbelt),
    })
}

/// Refuses a backend where none is looked at.
fn without_backend(flags: &PolicyFlags, why: &str) -> Result<(), Complaint> {
    match flags.backend {
        BackendFlag::Auto => Ok(()),
        BackendFlag::Landlock | BackendFlag::Namespaces | BackendFlag::Bwrap | BackendFlag::Seatbelt => {
            Err(Complaint::failed(format!("`--backend` has no meaning here: {why}")))
        }
    }
}

fn warn(loaded: &Loaded) {
    for warning in policy::warnings(loaded.warnings.iter()) {
        say(&format!("{warning}\n"));
    }
}

fn here() -> Result<std::path::PathBuf, Complaint> {
    std::env::current_dir().map_err(|error| Complaint::failed(format!("the current directory cannot be told: {error}")))
}

fn print_json(value: &impl serde::Serialize) -> Result<(), Complaint> {
    let text = serde_json::to_string_pretty(value).map_err(Complaint::failed)?;
    print(&format!("{text}\n"))
}

/// Rows of text with their columns aligned; the last one is not padded.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (cell, width) in row.iter().zip(&widths) {
            line.push(' ');
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count()) + 1));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
