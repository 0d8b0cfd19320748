//! Why a log could not be written or read.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fault::Fault;
use crate::policy::path::display;

/// Why a log could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A log cannot be kept there.
    #[error("the audit log {} cannot be kept there: {why}", display(.path))]
    Unsuitable {
        /// Where.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A step failed.
    #[error("the audit log failed: {step} {}: {source}", display(.path))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// Another process has not let go of the log.
    #[error(
        "the audit log is busy: another process has held {} for {waited:?}; `fuser {}` says which, and it lets go when it ends",
        display(.path), display(.path)
    )]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The log is not what was written to it, so nothing is added to it.
    #[error(
        "the audit log is broken, and nothing is added to it: {0}; look at it with `stockade audit verify`, and move all of its \
         files away to begin another"
    )]
    Broken(Box<Fault>),
    /// Something beside the log bears the name of one of its files.
    #[error("nothing is added to the audit log: {0}")]
    Stray(Box<Fault>),
    /// There is no log.
    #[error("there is no audit log at {}", display(.0))]
    Absent(PathBuf),
    /// An event could not be written down.
    #[error("the audit log failed: an event could not be written down: {0}")]
    Unwritable(#[from] serde_json::Error),
    /// An earlier failure left open where the log ends.
    #[error("the audit log failed earlier, and is not written any more: {0}")]
    Failed(String),
}

impl AuditError {
    pub(super) fn io(path: &Path, step: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, step, source }
    }
}

impl From<Fault> for AuditError {
    fn from(fault: Fault) -> Self {
        Self::Broken(Box::new(fault))
    }
}
