//! Locates a log and reads its records.

use std::path::PathBuf;

use crate::audit::{AuditError, Entry, Fault, LogPaths, Report, Wrong, records};
use crate::cli::error::CliError;
use crate::cli::policy;

/// The location of the named log, or of the default one.
pub(super) fn locate(named: Option<&PathBuf>) -> Result<LogPaths, CliError> {
    match named {
        Some(path) if path.as_os_str() != "default" => Ok(LogPaths::at(path)),
        Some(_) | None => {
            let places = policy::places(&policy::context(&[]))?;
            Ok(LogPaths::default_in(&places.state))
        }
    }
}

/// The records; none where `found` reports that a file of the log is no regular file.
pub(super) fn entries(
    location: &LogPaths,
    found: &Report,
) -> Result<impl Iterator<Item = Result<Entry, AuditError>>, CliError> {
    let read = match (records(location), &found.fault) {
        (Ok(read), _) => Some(read),
        (
            Err(_),
            Some(Fault {
                wrong: Wrong::NoFile { .. },
                ..
            }),
        ) => None,
        (Err(error), _) => return Err(audit_error(error)),
    };
    Ok(read.into_iter().flatten())
}

#[expect(clippy::needless_pass_by_value, reason = "it is the argument of map_err")]
pub(super) fn audit_error(error: AuditError) -> CliError {
    let failure = CliError::failed(&error);
    match error {
        AuditError::Absent(_) => failure.remedy(
            "`audit: {log: default}` in a config, or `--audit default` for one run, keeps one; `--log PATH` names another",
        ),
        AuditError::Unsuitable { .. }
        | AuditError::Io { .. }
        | AuditError::Busy { .. }
        | AuditError::Broken(_)
        | AuditError::Stray(_)
        | AuditError::Unwritable(_)
        | AuditError::Failed(_) => failure,
    }
}
