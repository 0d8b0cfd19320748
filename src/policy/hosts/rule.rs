//! One rule of a list: the access to some hosts and ports.

use super::pattern::Destination;
use crate::policy::Origin;

/// The access to a host and port. Ordered; the rules of one list combine by `max`, lists by `min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostAccess {
    /// Refused.
    Denied,
    /// Permitted after approval.
    Asked,
    /// Permitted.
    Free,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostRule {
    /// Hosts and ports.
    pub destination: Destination,
    /// What it gives them: [`Asked`](HostAccess::Asked) or [`Free`](HostAccess::Free).
    pub access: HostAccess,
    /// Where it was written.
    pub origin: Origin,
}

impl HostRule {
    /// A rule that permits hosts and ports without approval.
    pub const fn free(destination: Destination, origin: Origin) -> Self {
        Self {
            destination,
            access: HostAccess::Free,
            origin,
        }
    }
}
