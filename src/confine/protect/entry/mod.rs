//! Single entries of a root: reading, restoring, moving and removing them without following a link.

pub(super) mod access;
pub(super) mod nofollow;
pub(super) mod restore;
pub(super) mod state;
pub(super) mod subtree;
