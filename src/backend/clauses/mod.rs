//! Grants and denies, for every backend that has rules on paths.
//!
//! `obstacles` finds denies inside a tree that one rule would grant, `aliases` and `links` mounts and hard links that lead
//! around a deny, and `statuses` describes clauses to people.

pub(in crate::backend) mod aliases;
pub(in crate::backend) mod links;
pub(in crate::backend) mod obstacles;
pub(in crate::backend) mod statuses;
