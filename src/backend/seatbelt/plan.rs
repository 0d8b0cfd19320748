//! The arguments of `sandbox-exec`, as data.

use serde::{Deserialize, Serialize};

/// The arguments of `sandbox-exec`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeatbeltPlan {
    /// The profile text, for `-p`.
    pub text: String,
    /// The parameters, for `-D`.
    pub parameters: Vec<Parameter>,
}

/// One `-D NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Parameter {
    /// The name: letters and digits.
    pub name: String,
    /// The value: a path, or an expression.
    pub value: String,
}
