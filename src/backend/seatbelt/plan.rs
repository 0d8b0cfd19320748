//! The arguments of `sandbox-exec`, as data.

use serde::{Deserialize, Serialize};

/// The arguments of `sandbox-exec`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeatbeltPlan {
    /// The profile text, for `-p`.
    pub text: String,
    /// What its parameters stand for, for `-D`, by number.
    pub parameters: Vec<Parameter>,
}

/// One `-D NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Parameter {
    /// Letters and digits only.
    pub name: String,
    /// A path, or an expression over paths.
    pub value: String,
}
