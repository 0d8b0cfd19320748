//! `stockade doctor`: what this machine can enforce.

use super::args::DoctorArgs;
use super::error::{CliError, print};
use super::exit::Exit;
use crate::tools::doctor::Report;

/// Prints the report; exit code 1 when commands could not run confined.
pub(super) fn doctor(args: &DoctorArgs) -> Result<Exit, CliError> {
    let report = Report::make();
    let text = if args.json {
        serde_json::to_string_pretty(&report).map_err(CliError::failed)?
    } else {
        report.text()
    };
    print(&format!("{text}\n"))?;
    Ok(if report.confines() { Exit::Success } else { Exit::Found })
}
