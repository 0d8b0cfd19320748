//! What a backend does with each clause.

use std::fmt;

/// The status of one clause under one backend.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Exactly as written.
    Enforced,
    /// The OS blocks more than the clause does; the text says what.
    Stricter(String),
    /// Restored after the command instead of prevented (protected names only).
    Undone,
    /// The OS cannot hold it.
    Residual(Residual),
}

/// What a clause that cannot be held leaves open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Residual {
    /// What kind of reach it is; only metadata may be left open, and only when the config does not refuse it.
    pub reach: ReachKind,
    /// What an agent could do, in plain words.
    pub what: String,
}

/// The kinds of reach a residual can concern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReachKind {
    /// Names, sizes, times: existence.
    Metadata,
    /// File content.
    Content,
    /// Sockets.
    Network,
    /// Other processes, or what the host will later run.
    Process,
}

/// One clause with its status: what `doctor`, `check` and the regime line print.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClauseStatus {
    /// The clause, as a person would say it (`deny read+write /srv/x`).
    pub clause: String,
    /// Where it was written.
    pub origin: String,
    /// What becomes of it.
    pub status: Status,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enforced => f.write_str("enforced"),
            Self::Stricter(what) => write!(f, "stricter: {what}"),
            Self::Undone => f.write_str("undone"),
            Self::Residual(residual) => write!(f, "residual: {}", residual.what),
        }
    }
}
