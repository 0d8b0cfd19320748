//! The ways in which a command can be held.

use serde::{Deserialize, Serialize};

/// How a command is held. Ordered: stronger is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Regime {
    /// Not at all; only where the config says that confinement is not required.
    None,
    /// Landlock and seccomp.
    Landlock,
    /// `sandbox-exec`, on a Mac.
    Seatbelt,
    /// Namespaces in which only the granted world is mounted, with Landlock and seccomp inside.
    Namespaces,
}
