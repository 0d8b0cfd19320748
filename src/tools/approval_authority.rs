//! Whether somebody may want to ask about what nobody need be asked about.

use crate::policy::{Demand, Policy};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalAuthority {
    /// The config has the last word.
    Config,
    /// A hook has.
    Hook,
}

impl ApprovalAuthority {
    /// Whether the tool of this name may have to ask about what it would run unasked.
    pub(super) fn may_ask(self, policy: &Policy, name: &str) -> bool {
        match self {
            Self::Config => policy.tools.get(name).is_some_and(|rule| rule.approval != Demand::None),
            Self::Hook => true,
        }
    }
}
