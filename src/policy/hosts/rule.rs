//! One rule of a list: what becomes of connections to some hosts and ports.

use super::pattern::Place;
use crate::policy::Origin;

/// What becomes of a connection to a host and port. Ordered; the rules of one list combine by `max`, lists by `min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostAccess {
    /// It is refused.
    Denied,
    /// Somebody is asked first.
    Asked,
    /// It is made.
    Free,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostRule {
    /// Hosts and ports.
    pub place: Place,
    /// What it gives them: [`Asked`](HostAccess::Asked) or [`Free`](HostAccess::Free).
    pub access: HostAccess,
    /// Where it was written.
    pub origin: Origin,
}

impl HostRule {
    /// One that gives hosts and ports without a question.
    pub const fn free(place: Place, origin: Origin) -> Self {
        Self {
            place,
            access: HostAccess::Free,
            origin,
        }
    }
}
