//! `stockade profile export`.

use std::io::Write as _;
use std::path::Path;

use super::args::{ExportArgs, FormatArg};
use super::inspection::{inspection_of, without_backend};
use crate::cli::error::{CliError, print_bytes, print_stderr};
use crate::cli::exit::Exit;
use crate::cli::policy;
use crate::inspect::export::{CommandKind, Format};
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
pub(super) fn export(args: &ExportArgs) -> Result<Exit, CliError> {
    without_backend(&args.policy, "`--format` says for what the profile is written")?;
    let inspection = inspection_of(&args.policy, &policy::context(&args.policy.ceiling))?;
    let kind = if args.unasked {
        CommandKind::Unasked
    } else {
        CommandKind::Approved
    };
    let export = inspection
        .export(Format::from(args.format), kind)
        .map_err(CliError::failed)?;
    for note in export.notes {
        print_stderr(&format!("note: {note}\n"));
    }
    match &args.output {
        None => print_bytes(&export.bytes)?,
        Some(file) => write(file, &export.bytes)
            .map_err(|error| CliError::failed(format!("failed to write {}: {error}", display(file))))?,
    }
    Ok(Exit::Success)
}

/// Writes the file atomically.
fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut new = tempfile::Builder::new().tempfile_in(directory.unwrap_or(Path::new(".")))?;
    new.write_all(bytes)?;
    new.persist(file)?;
    Ok(())
}
