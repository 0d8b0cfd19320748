//! Why a config was not changed.

use std::path::PathBuf;

use crate::policy::path::display;

/// Why a config was not changed.
#[derive(Debug, thiserror::Error)]
pub enum AmendError {
    /// Its text has a form that cannot be edited automatically.
    #[error(
        "the config has a form that is not edited without a person ({why})\n\nWrite this into it yourself:\n\n{what}"
    )]
    Form {
        /// The obstacle.
        why: String,
        /// What to write, as YAML.
        what: String,
    },
    /// A path that is not UTF-8.
    #[error("{} is not UTF-8, so no config can name it", display(.0))]
    NotText(PathBuf),
    /// The file has changed since it was read.
    #[error("{} has changed since it was read; nothing was written", display(.0))]
    Changed(PathBuf),
    /// The file cannot be replaced.
    #[error("{} was not written: {why}", display(.path))]
    NotReplaced {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Reading or writing failed.
    #[error("failed to {step} {}: {source}", display(.path))]
    Io {
        /// What was tried.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
