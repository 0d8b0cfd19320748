//! What can go wrong between a plan and its outcome.

use std::io;
use std::path::PathBuf;

use super::way_out::WayOutError;
use crate::confine::wire::protocol::{StartFailure, Step};
use crate::policy::path::display;

/// Why a command could not be confined, or has no outcome. In each case it did not run, or was killed.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The session directory could not be made.
    #[error("failed to make the session directory {}: {source}", display(path))]
    SessionDirectory {
        /// Where.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No directory is suitable for it.
    #[error("no place for private directories ({0}); set TMPDIR to a directory outside every root and outside /tmp")]
    NoPrivateDirectory(String),
    /// The control group for the command could not be made.
    #[error(
        "failed to make the control group that bounds the command: {0}; start Stockade outside a delegated control group to \
         have its limits measured instead"
    )]
    Group(#[source] io::Error),
    /// The supervisor could not be started.
    #[error("failed to start the supervisor: {0}")]
    Spawn(#[source] io::Error),
    /// A step of the supervisor, the forker or the command failed; nothing was run.
    #[error("{}{}", if .0.step == Step::Killed { "" } else { "failed to confine: " }, .0)]
    Step(#[from] StartFailure),
    /// A self-test found the confinement not to hold.
    #[error("the self-test found that {0}; nothing was run")]
    SelfTest(String),
    /// The socket to the forker failed.
    #[error("lost the connection to the confined forker: {0}")]
    Channel(#[source] io::Error),
    /// The forker died in mid-call.
    #[error("the confined forker died; every process of the command was killed")]
    ForkerDied,
    /// The forker ended before it began with the call. Another one may run it.
    #[error("the confined forker ended before the command: {}; nothing was run", .0.as_ref().map_or_else(|| "it was killed".to_owned(), ToString::to_string))]
    ForkerExited(Option<StartFailure>),
    /// The forker did not end a command that timed out or was stopped.
    #[error(
        "the command was not ended when its time was over or it was told to stop, so its whole session was killed; \
         whoever watches it may have been stopped by it"
    )]
    Unresponsive,
    /// The forker sent something that is not a message.
    #[error("the confined forker sent a malformed message; it was killed")]
    Malformed,
    /// The sockets of the forker's way out cannot be used.
    #[error("the way out of the sandbox's network namespace cannot be used: {0}; nothing was run")]
    WayOut(#[from] WayOutError),
    /// The protected names could not be recorded, so the command was not started.
    #[error("failed to record protected names before the command: {0}")]
    Protect(String),
}

impl ConfineError {
    /// A failure of `step` in the child.
    pub fn step(step: Step, errno: nix::errno::Errno) -> Self {
        Self::Step(StartFailure {
            step,
            errno: errno as i32,
            detail: String::new(),
        })
    }
}
