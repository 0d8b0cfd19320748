//! Writes the config at the end.

use std::path::{Path, PathBuf};

use super::args::LearnArgs;
use super::rounds::LearnRun;
use crate::cli::error::CliError;
use crate::config::amend::{Original, create};

/// Where the config was written.
pub(super) enum ConfigWrite {
    /// Nothing was accepted.
    Unchanged,
    /// Written to this file.
    In(PathBuf),
    /// Printed: there is no file, or writing it failed.
    Printed,
    /// Not written, because of a signal.
    Stopped,
}

/// Writes the config; returns where, and what failed.
pub(super) fn write(
    args: &LearnArgs,
    run: &LearnRun,
    original: Option<&Original>,
    target: &Path,
) -> (ConfigWrite, Option<CliError>) {
    if run.stopped {
        return (ConfigWrite::Stopped, None);
    }
    let text = run.draft.text();
    let (done, path) = match (&args.out, original) {
        (Some(out), _) => (create(target, text), out.as_path()),
        (None, _) if run.draft.accepted().is_empty() => return (ConfigWrite::Unchanged, None),
        (None, Some(original)) => (original.replace(text), original.path()),
        (None, None) => return (ConfigWrite::Printed, None),
    };
    match done {
        Ok(()) => (ConfigWrite::In(path.to_owned()), None),
        Err(error) => (ConfigWrite::Printed, Some(CliError::failed(error))),
    }
}
