//! What lies in the store, outside every root: journals, quarantine and caches.

pub(super) mod inventory_cache;
pub(super) mod journal;
pub(super) mod other_sessions;
pub(super) mod quarantine;
pub(super) mod quota;
pub(super) mod store;
