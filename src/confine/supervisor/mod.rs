//! The supervisor: one for each profile and lane. It outlives the parent, and is not confined.
//!
//! [`start`] makes this process one and forks what becomes the forker; [`serve`] then waits for both. It records protected names
//! before a command and restores them after it ([`protected`], [`restore_report`]), says what mounts are to cover ([`mounted_covers`]), samples
//! limits ([`samples`]) and passes on the error of bwrap ([`bwrap_error`]). When the parent or the forker ends, it kills every
//! process below it, restores, and removes the session directory.

pub(crate) mod bwrap_error;
pub(crate) mod mounted_covers;
pub(crate) mod protected;
pub(crate) mod restore_report;
pub(crate) mod samples;
pub mod serve;
pub mod start;
