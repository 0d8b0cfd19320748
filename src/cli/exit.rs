//! The one table of exit codes.

use std::process::ExitCode;

use crate::tools::Status;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done.
    Success,
    /// A check found something wrong, two policies differ, nothing of what was asked about is permitted, or this
    /// machine cannot confine.
    Found,
    /// The command's own code.
    Command(i32),
    /// 124: the command ran out of time.
    TimedOut,
    /// 125: Stockade could not: bad usage, bad config, cannot confine.
    Failed,
    /// 126: a rule blocked it, a person or the mode denied it, the program may not be executed, or `learn` ended with something
    /// denied that nobody accepted to permit, or that no change permits.
    Denied,
    /// 127: the program was not found.
    NotFound,
    /// 128 + N: signal N killed it.
    Signaled(i32),
}

impl Exit {
    pub(super) const fn code(self) -> i32 {
        match self {
            Self::Success => 0,
            Self::Found => 1,
            Self::Command(code) => code,
            Self::TimedOut => 124,
            Self::Failed => 125,
            Self::Denied => 126,
            Self::NotFound => 127,
            Self::Signaled(signal) => 128 + signal,
        }
    }
}

impl From<&Status> for Exit {
    fn from(status: &Status) -> Self {
        match status {
            Status::Exited { code } => Self::Command(*code),
            Status::Signaled { signal } | Status::Cancelled { signal } => Self::Signaled(*signal),
            Status::TimedOut => Self::TimedOut,
            Status::OverLimit { .. } => Self::Signaled(9),
            Status::NotFound { .. } => Self::NotFound,
            Status::NotExecutable { .. } => Self::Denied,
            Status::Failed { .. } => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        // Codes outside of 0 to 255 become 125.
        u8::try_from(exit.code()).map_or(Self::from(125), Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_contract() {
        let table = [
            (Exit::Command(7), 7),
            (Exit::TimedOut, 124),
            (Exit::Failed, 125),
            (Exit::Denied, 126),
            (Exit::NotFound, 127),
            (Exit::Signaled(15), 143),
        ];
        for (exit, code) in table {
            assert_eq!(exit.code(), code);
        }
    }
}
