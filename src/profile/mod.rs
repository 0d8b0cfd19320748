//! Policy and call → [`Profile`]: the set of operations one call may perform, free of any OS name.
//!
//! The story, file by file: [`derive()`] turns a policy and what was asked of a person into a
//! profile; [`order`] decides whether one reach lies within another and gives a witness when not;
//! [`diff()`] gives all of them, both ways; `explain` says which clause decides;
//! [`intersect()`] is the greatest profile below two, in the form that [`canonical`] gives; [`cuts()`] names
//! what a policy asks beyond its ceilings; [`index`]
//! keeps all of it fast. Every start checks `config ⊒ profile` and `profile ⊒ plan` with the same
//! procedure.

pub mod canonical;
pub mod cuts;
pub mod derive;
pub mod diff;
mod explain;
pub mod index;
pub mod intersect;
pub mod order;
mod representatives;

use std::collections::BTreeMap;

use crate::policy::{AbsPath, Deny, Environment, Grant, Identity, Limits, Network, Origin, Rights, UnixSockets};

pub use cuts::cuts;
pub use derive::{Asked, Call, derive};
pub use diff::{Excess, diff};
pub use explain::{Decided, Explanation};
pub use intersect::intersect;
pub use order::{FileReach, Landmarks, Reach, Witness, files_within, within};

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

impl Profile {
    /// The profile with the session's own directories (HOME, TMPDIR), where everything is permitted.
    #[must_use]
    pub fn with_private(mut self, directories: impl IntoIterator<Item = (AbsPath, Identity)>) -> Self {
        for (path, identity) in directories {
            let origin = Origin::Builtin("private directory");
            self.grants.push(Grant::tree(path.clone(), Rights::ALL, origin));
            self.identities.insert(path, identity);
        }
        self
    }
}
