//! Policy and call → [`Profile`]: the set of operations one call may perform, free of any OS name.
//!
//! The story, file by file: [`derive`] turns a policy and what was asked of a person into a
//! profile; [`order`] decides whether one reach lies within another and gives a witness when not;
//! [`intersect`] is the greatest profile below two. Every start checks `config ⊒ profile` and
//! `profile ⊒ plan` with the same procedure.

pub mod derive;
pub mod intersect;
pub mod order;

use std::collections::BTreeMap;

use crate::policy::{AbsPath, Access, Deny, Environment, Grant, Identity, Limits, Network, Operation, UnixSockets};

pub use derive::{Asked, Call, derive};
pub use intersect::intersect;
pub use order::{FileReach, Landmarks, Witness, files_within, within};

/// The permitted operations of one call: an operation is permitted iff some grant covers it and no
/// deny covers it. Deny wins; the order of clauses never matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What is permitted.
    pub grants: Vec<Grant>,
    /// What is forbidden whatever the grants say.
    pub denies: Vec<Deny>,
    /// The inode each granted path led to when the config was resolved.
    pub identities: BTreeMap<AbsPath, Identity>,
    /// IP reach.
    pub network: Network,
    /// Unix-socket reach.
    pub unix_sockets: UnixSockets,
    /// Bounds.
    pub limits: Limits,
    /// The variables a command may see.
    pub environment: Environment,
}
