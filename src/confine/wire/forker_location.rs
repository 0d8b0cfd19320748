//! Where a forker runs, as announced to the supervisor before there is a plan.

use serde::{Deserialize, Serialize};

use crate::backend::namespaces::NetworkNamespace;

/// Where a forker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ForkerLocation {
    /// Beside the supervisor.
    Host,
    /// In namespaces that the supervisor makes at once, with this network. The supervisor first reports the protected names that
    /// mounts must cover.
    Namespaces(NetworkNamespace),
    /// The same in namespaces that bwrap makes.
    Bwrap,
}

impl ForkerLocation {
    /// Whether mounts stand between the forker and the host.
    pub const fn is_behind_mounts(self) -> bool {
        match self {
            Self::Host => false,
            Self::Namespaces(_) | Self::Bwrap => true,
        }
    }
}
