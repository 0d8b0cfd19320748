//! Walking the roots: the inventory of their directories and protected entries, and what changed in them.

pub(super) mod appeared;
pub(super) mod growth;
pub(super) mod inventory;
pub(super) mod listing;
pub(super) mod search;
pub(super) mod stamp;
pub(super) mod unchanged;
pub(super) mod walk;
