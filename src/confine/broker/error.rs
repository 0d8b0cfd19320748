//! Why there can be no broker.

use nix::errno::Errno;

/// Why there can be no broker. The command must not run then.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The kernel does not say how large a notification is.
    #[error("failed to size seccomp notifications: {0}")]
    Sizes(Errno),
    /// `/proc` could not be opened.
    #[error("failed to open /proc: {0}")]
    OpenProc(Errno),
    /// What is mounted at `/proc` could not be told.
    #[error("failed to inspect /proc: {0}")]
    InspectProc(Errno),
    /// Something else is mounted at `/proc`.
    #[error("/proc is not the proc file system")]
    NotProc,
    /// `/proc` belongs to another PID namespace, so its numbers mean other processes.
    #[error("/proc shows another PID namespace")]
    ForeignProc,
}
