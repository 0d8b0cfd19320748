//! What one call may do.

use std::collections::BTreeMap;

use crate::policy::{AbsPath, Deny, Environment, Grant, Identity, Limits, Network, Origin, Rights, UnixSockets};

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
