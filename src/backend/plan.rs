//! The plan for one profile: rules for the kernel, as data.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use super::attributes::AttributePlan;
use super::landlock::LandlockPlan;
use super::namespaces::{MountPlan, OwnRule};
use super::seccomp::Filters;
use crate::policy::Network;

/// The rules for the kernel for one profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The Landlock layer, of the forker and again of each command.
    pub landlock: LandlockPlan,
    /// The filters.
    pub filters: Filters,
    /// The filters used instead if a command's attempts are reported. They refuse the same calls, and notify the runner of
    /// attempts and refusals first.
    pub watched: Option<Filters>,
    /// Where the broker lets attributes be changed.
    pub attributes: AttributePlan,
    /// The namespaces around all of it; `None` in the `landlock` regime.
    pub namespaces: Option<NamespacePlan>,
}

/// The namespaces and mounts around the Landlock layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespacePlan {
    /// Who makes it.
    pub made_by: MadeBy,
    /// What is mounted, and which network there is.
    pub mounts: MountPlan,
    /// The layer's rules on the mounts that exist only inside.
    pub own: Vec<OwnRule>,
    /// Mount points that only protect names; changes to these names are restored as well.
    pub protected: Vec<OsString>,
    /// Mount points that cover matches of a pattern. If the host replaces such a file, the cover is lost, and the next command
    /// gets a new one.
    pub matched: Vec<OsString>,
    /// Whether the network namespace has a way out.
    pub exit: NetworkExit,
}

/// Who makes namespaces and mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MadeBy {
    /// The supervisor, by calls to the kernel.
    Stockade,
    /// The bwrap at this absolute path, by its arguments.
    Bwrap(OsString),
}

/// The way out of a network namespace that has only a loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkExit {
    /// None, or the namespace is the host's.
    None,
    /// Sockets that listen on its loopback and that the parent holds, whose proxy judges every connection.
    Proxy,
}

impl NetworkExit {
    /// What a reach over IP needs.
    pub const fn of(network: &Network) -> Self {
        match network {
            Network::Hosts(_) => Self::Proxy,
            Network::Off | Network::Full => Self::None,
        }
    }
}
