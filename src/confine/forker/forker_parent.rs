//! Which parent the forker has, and whether it still has it.

use nix::unistd::{Pid, getpid, getppid};

/// The forker's parent, as far as it has a process id where the forker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForkerParent {
    /// The supervisor, on the host.
    Supervisor(Pid),
    /// None is visible: the forker is process 1 of a PID namespace.
    Hidden,
}

impl ForkerParent {
    /// Whether this process still has the parent that started it.
    pub(crate) fn is_parent(self) -> bool {
        match self {
            Self::Supervisor(pid) => getppid() == pid,
            // A parent in another namespace has no process id here. A pipe reports its death, or bwrap has set the signal.
            Self::Hidden => getpid() == Pid::from_raw(1) && getppid() == Pid::from_raw(0),
        }
    }
}
