//! Profile → plan: data that says exactly what a kernel will be told, and a reader of that data.
//!
//! Lowering is pure: it takes a profile, what the [`host`] can do and a [`survey`] of the
//! directories that must be ruled entry by entry, and gives plan data. Each backend file has the
//! same two halves: `lower`, and a reader that answers from the plan alone what it permits. At every
//! start the reader's view is held against the profile; a plan that permits more is not applied.

pub mod attributes;

mod clauses;
pub mod host;
pub mod landlock;
pub mod namespaces;
pub mod protected;
pub mod seatbelt;
pub mod seccomp;
pub mod status;
pub mod survey;

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

pub use clauses::obstacles::in_the_way;

use crate::policy::Network;

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

/// Everything the kernel is told for one profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The Landlock layer, of the worker and again of each command.
    pub landlock: landlock::LandlockPlan,
    /// The filters.
    pub filters: seccomp::Filters,
    /// What takes their place where somebody hears of a command's attempts: they refuse the same, and hand what is
    /// attempted and refused to the runner on its way.
    pub watched: Option<seccomp::Filters>,
    /// Where the broker lets attributes be changed.
    pub attributes: attributes::AttributePlan,
    /// The namespaces around all of it; `None` in the `landlock` regime.
    pub world: Option<World>,
}

/// What is made of namespaces and mounts before the layer is put on inside them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct World {
    /// Who makes it.
    pub made_by: MadeBy,
    /// What is mounted, and which network there is.
    pub mounts: namespaces::MountPlan,
    /// The layer's rules on the mounts that exist only inside.
    pub own: Vec<namespaces::OwnRule>,
    /// Mount points that only keep protected names from changing; what happens to them is undone as well.
    pub protected: Vec<OsString>,
    /// Mount points that cover what a pattern names. Whoever replaces a file on the host takes its cover along, and the next
    /// command gets another.
    pub matched: Vec<OsString>,
    /// Whether something leads out of the network namespace.
    pub exit: Exit,
}

/// Who makes namespaces and mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MadeBy {
    /// The stage, by calls to the kernel.
    Stockade,
    /// The bwrap at this absolute path, which is told.
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
