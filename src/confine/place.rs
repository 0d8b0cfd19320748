//! Where a worker runs: as it is announced to the stage, before there is a plan.

use serde::{Deserialize, Serialize};

use crate::backend::namespaces::NetworkNamespace;

/// Where a worker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// Beside the keeper.
    Host,
    /// In namespaces that the stage makes at once, with this network. Mounts are made before anything runs there, so the
    /// keeper first says which protected names there are.
    Namespaces(NetworkNamespace),
    /// The same in namespaces that bwrap makes.
    Bwrap,
}

impl Place {
    /// Whether mounts stand between the worker and the host.
    pub const fn is_behind_mounts(self) -> bool {
        match self {
            Self::Host => false,
            Self::Namespaces(_) | Self::Bwrap => true,
        }
    }
}
