//! The result of a probe.

use serde::{Deserialize, Serialize};

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// It worked.
    Works,
    /// It did not, and why.
    Fails(String),
    /// It was not tried.
    Untried,
}

impl Probe {
    /// Whether it was tried and worked.
    pub const fn works(&self) -> bool {
        matches!(self, Self::Works)
    }
}

impl From<Result<(), String>> for Probe {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(Self::Fails, |()| Self::Works)
    }
}
