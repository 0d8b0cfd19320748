//! What becomes of the config in the end.

use std::path::{Path, PathBuf};

use super::args::LearnArgs;
use super::rounds::Learned;
use crate::cli::complain::Complaint;
use crate::config::amend::{Original, create};

/// What became of the config.
pub(super) enum Written {
    /// Nothing was accepted.
    Unchanged,
    /// It is in this file.
    In(PathBuf),
    /// It is printed: it has no file, or writing that failed.
    Printed,
    /// It was not written, because of a signal.
    Stopped,
}

/// What becomes of the config, and what went wrong with that.
pub(super) fn write(
    args: &LearnArgs,
    learned: &Learned,
    original: Option<&Original>,
    target: &Path,
) -> (Written, Option<Complaint>) {
    if learned.stopped {
        return (Written::Stopped, None);
    }
    let text = learned.draft.text();
    let (done, path) = match (&args.out, original) {
        (Some(out), _) => (create(target, text), out.as_path()),
        (None, _) if learned.draft.accepted().is_empty() => return (Written::Unchanged, None),
        (None, Some(original)) => (original.replace(text), original.path()),
        (None, None) => return (Written::Printed, None),
    };
    match done {
        Ok(()) => (Written::In(path.to_owned()), None),
        Err(error) => (Written::Printed, Some(Complaint::failed(error))),
    }
}
