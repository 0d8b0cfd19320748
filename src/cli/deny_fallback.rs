//! `--deny-fallback`.

use clap::ValueEnum;

use crate::policy::DenyFallback;

/// `--deny-fallback`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum DenyFallbackFlag {
    /// Refuse to start, naming the clause.
    Refuse,
    /// Rule the siblings one by one: stricter, because the directories on the way are frozen.
    Decompose,
    /// Cover what a pattern matches before each command; a name that a command makes is covered from the next one on.
    CoverExisting,
}

impl From<DenyFallbackFlag> for DenyFallback {
    fn from(flag: DenyFallbackFlag) -> Self {
        match flag {
            DenyFallbackFlag::Refuse => Self::Refuse,
            DenyFallbackFlag::Decompose => Self::Decompose,
            DenyFallbackFlag::CoverExisting => Self::CoverExisting,
        }
    }
}
