//! What grants and denies ask of any backend that rules paths.
//!
//! `obstacles` knows where denies stand in the way of a rule that reaches a whole tree, `aliases` and
//! `links` where a mount or a hard link leads around a deny, and `words` says clauses and losses to people.

pub(in crate::backend) mod aliases;
pub(in crate::backend) mod links;
pub(in crate::backend) mod obstacles;
pub(in crate::backend) mod words;
