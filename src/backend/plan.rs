//! A plan: what is asked of the kernel for one profile, as data.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use super::attributes::AttributePlan;
use super::landlock::LandlockPlan;
use super::namespaces::{MountPlan, OwnRule};
use super::seccomp::Filters;
use crate::policy::Network;

/// What is asked of the kernel for one profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The Landlock layer, of the forker and again of each command.
    pub landlock: LandlockPlan,
    /// The filters.
    pub filters: Filters,
    /// The filters in their place where a command's attempts are reported: they refuse the same calls, and the runner is
    /// notified first, of attempts and of refusals.
    pub watched: Option<Filters>,
    /// Where the broker lets attributes be changed.
    pub attributes: AttributePlan,
    /// The namespaces around all of it; `None` in the `landlock` regime.
    pub world: Option<World>,
}

/// What is made of namespaces and mounts before the layer is put on inside them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct World {
    /// Who makes it.
    pub made_by: MadeBy,
    /// What is mounted, and which network there is.
    pub mounts: MountPlan,
    /// The layer's rules on the mounts that exist only inside.
    pub own: Vec<OwnRule>,
    /// Mount points that only keep protected names from changing; what happens to them is undone as well.
    pub protected: Vec<OsString>,
    /// Mount points that cover what a pattern names. When a file is replaced on the host, its cover goes with it, and the next
    /// command gets a new one.
    pub matched: Vec<OsString>,
    /// Whether something leads out of the network namespace.
    pub exit: Exit,
}

/// Who makes namespaces and mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MadeBy {
    /// The supervisor, by calls to the kernel.
    Stockade,
    /// The bwrap at this absolute path, by its arguments.
    Bwrap(OsString),
}

/// Whether something leads out of a network namespace that has nothing but a loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// Nothing does, or the namespace is the host's.
    None,
    /// Sockets that listen on its loopback and that the parent holds, whose proxy judges every connection.
    Proxy,
}

impl Exit {
    /// What a reach over IP needs.
    pub const fn of(network: &Network) -> Self {
        match network {
            Network::Hosts(_) => Self::Proxy,
            Network::Off | Network::Full => Self::None,
        }
    }
}
