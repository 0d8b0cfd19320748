//! How a command ended, as far as it matters for what was denied to it.

use crate::confine::wire::protocol::End;

/// How a command ended. One that succeeded did without what programs ask in passing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum CommandResult {
    /// With status 0.
    Succeeded,
    /// Any other way.
    Failed,
}

impl CommandResult {
    pub(in crate::tools) const fn of(end: &End) -> Self {
        match end {
            End::Exited(0) => Self::Succeeded,
            End::Exited(_)
            | End::Signaled(_)
            | End::TimedOut
            | End::Cancelled
            | End::OverLimit(_)
            | End::Unbounded
            | End::NotStarted(_)
            | End::Lost
            | End::Aborted(_) => Self::Failed,
        }
    }
}
