//! What stands over the forker.

use nix::unistd::{Pid, getpid, getppid};

/// What stands outside the forker's layer and has a number where the forker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Above {
    /// The supervisor; around it is the host.
    Supervisor(Pid),
    /// Nothing: the forker is the first process of a PID namespace.
    Nothing,
}

impl Above {
    /// Whether the parent of this process is the one that it was started by.
    pub(crate) fn is_parent(self) -> bool {
        match self {
            Self::Supervisor(pid) => getppid() == pid,
            // A parent in another namespace has no number here. Its death was told by a pipe, or bwrap has asked for the signal.
            Self::Nothing => getpid() == Pid::from_raw(1) && getppid() == Pid::from_raw(0),
        }
    }
}
