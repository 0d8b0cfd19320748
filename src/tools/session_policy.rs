//! What the calls of a session are held to, whoever makes them.

use super::narrowing::Narrowing;
use super::search::may_take_names;
use crate::confine::SessionName;
use crate::policy::{AbsPath, Access, Operation, Policy};
use crate::profile::{ApprovedRoots, Call, FileReach, Profile, derive};

/// The policy of a session, what flags leave of it, and the profile within which each call of the session lies.
#[derive(Debug)]
pub(super) struct SessionPolicy {
    pub(super) policy: Policy,
    pub(super) narrowing: Narrowing,
    /// What a call may do when all that needs asking was approved.
    pub(super) envelope: Profile,
}

impl SessionPolicy {
    /// Derives the envelope; nothing is checked yet.
    pub(super) fn of(policy: Policy, narrowing: Narrowing) -> Self {
        Self {
            envelope: narrowing.narrow(derive(&policy, &Call::of(ApprovedRoots::All))),
            policy,
            narrowing,
        }
    }

    /// What is permitted there: by the config's own words, and by what flags leave of it.
    pub(super) fn may(&self, operation: Operation, path: &AbsPath) -> Access {
        let config = self.policy.access(operation, path);
        config.min(self.envelope.access(operation, path))
    }

    /// Whether an agent may be told of what lies at the path: it may read there.
    pub(super) fn may_tell(&self, path: &AbsPath) -> bool {
        self.policy.root_for(path).is_some() && self.may(Operation::Read, path) > Access::Denied
    }

    /// Whether a command may write there: the config says so, or it is the session's own.
    pub(super) fn is_in_reach(&self, path: &AbsPath) -> bool {
        self.may(Operation::Write, path) != Access::Denied || self.is_private(path)
    }

    /// Whether the session may have something of its own there, which each forker sees otherwise: HOME, TMPDIR, /tmp, /dev, /proc.
    pub(super) fn is_private(&self, path: &AbsPath) -> bool {
        let is_own = ["/proc", "/dev"].iter().any(|top| path.as_path().starts_with(top));
        let is_denied = |operation| self.envelope.access(operation, path) == Access::Denied;
        is_own || SessionName::may_lie_around(path) && Operation::ALL.into_iter().all(is_denied)
    }

    /// Whether a command may write something in a directory.
    pub(super) fn takes_names(&self, directory: &AbsPath) -> bool {
        let program = directory.child(".any").unwrap_or_else(|| directory.clone());
        self.is_private(directory) || may_take_names(&self.envelope, directory, &program)
    }
}
