//! What restricts a process of ours: the Landlock [`ruleset`], the seccomp [`filter`], fewer [`descriptors`] and [`privilege`]s, and the
//! [`selftest`], which really tries what must fail.

pub(crate) mod descriptors;
pub mod filter;
pub mod privilege;
pub mod ruleset;
pub mod selftest;
