//! Why a command's streams could not be made or served.

use std::io;

/// Why a command's streams could not be made or served.
#[derive(Debug, thiserror::Error)]
pub enum IoError {
    /// A pipe could not be made.
    #[error("failed to make a pipe for a command: {0}")]
    Pipe(#[source] io::Error),
    /// `/dev/null` could not be opened.
    #[error("failed to open /dev/null: {0}")]
    Null(#[source] io::Error),
    /// A descriptor of Stockade's own could not be copied.
    #[error("failed to copy a standard stream: {0}")]
    Copy(#[source] io::Error),
    /// The pseudo-terminal could not be made or set up.
    #[error("failed to make a terminal for a command: {step}: {source}")]
    Terminal {
        /// The step that failed.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A descriptor could not be watched.
    #[error("failed to watch a command's streams: {0}")]
    Watch(#[source] io::Error),
    /// The command's output could not be read.
    #[error("failed to read a command's output: {0}")]
    Read(#[source] io::Error),
    /// Stockade's own output could not be written; a closed pipe is not an error but a [cut](super::Relayed::cut).
    #[error("failed to write a command's output: {0}")]
    Write(#[source] io::Error),
}
