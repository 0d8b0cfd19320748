//! `stockade profile export`.

use std::io::Write as _;
use std::path::Path;

use super::args::{ExportArgs, FormatArg};
use super::inspected::{inspected, without_backend};
use crate::cli::complain::{Complaint, print_bytes, say};
use crate::cli::exit::Exit;
use crate::cli::policy;
use crate::inspect::export::{Format, Whose};
use crate::policy::path::display;

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Json => Self::Json,
            FormatArg::Landlock => Self::Landlock,
            FormatArg::Bwrap => Self::Bwrap,
            FormatArg::Seatbelt => Self::Seatbelt,
            FormatArg::SeccompOci => Self::SeccompOci,
            FormatArg::Systemd => Self::Systemd,
        }
    }
}

/// Prints the export, or writes it to a file.
pub(super) fn export(args: &ExportArgs) -> Result<Exit, Complaint> {
    without_backend(&args.policy, "`--format` says for what the profile is written")?;
    let inspection = inspected(&args.policy, &policy::context(&args.policy.ceiling))?;
    let whose = if args.unasked { Whose::Unasked } else { Whose::Approved };
    let export = inspection
        .export(Format::from(args.format), whose)
        .map_err(Complaint::failed)?;
    for note in export.notes {
        say(&format!("note: {note}\n"));
    }
    match &args.output {
        None => print_bytes(&export.bytes)?,
        Some(file) => write(file, &export.bytes)
            .map_err(|error| Complaint::failed(format!("failed to write {}: {error}", display(file))))?,
    }
    Ok(Exit::Success)
}

/// Whole or not at all: the file is renamed into place.
fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut new = tempfile::Builder::new().tempfile_in(directory.unwrap_or(Path::new(".")))?;
    new.write_all(bytes)?;
    new.persist(file)?;
    Ok(())
}
