//! What this machine can enforce, found by trying it.
//!
//! Nothing is inferred from versions or settings: a Landlock layer is put on a thread and a forbidden open is
//! tried there, a filter is installed and must act, a user namespace is really entered. [`Host::quick`] does
//! the part a run without namespaces needs, [`Host::with_acting_namespaces`] the part that tells which regime
//! to take, and who makes namespaces; [`Host::full`] does all of it, for `doctor`. [`Host::findings`] and
//! [`Host::regimes`] say what was found, what it means and how to get the rest.

mod bwrap;
mod delegated;
mod findings;
#[expect(clippy::module_inception, reason = "the host is the idea this folder is named for")]
mod host;
mod kernel;
mod namespaces;
mod probe;
pub mod program;
mod regimes;
pub mod terminal_lock;
mod tree;
mod trial;

pub use bwrap::{Bwrap, BwrapFile};
pub use delegated::{
    DelegatedGroup, NoDelegatedGroup, PREFIX as GROUP_PREFIX, ProcessLocation, own_name as own_group_name,
};
pub use findings::{Finding, Standing};
pub use host::{Host, KnownMaker, Maker};
pub use namespaces::{PROBE, Probed};
pub use probe::Probe;
pub use regimes::{ABIS, AbiNeed, LANDLOCK_FLOOR, RegimeReport};
pub use tree::{LimitEnforcement, TreeLimit};
