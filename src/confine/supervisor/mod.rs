//! The supervisor: one for each profile and lane. It outlives the parent, and is not confined.
//!
//! [`start`] makes this process one and forks what becomes the forker; [`serve`] then waits for both. It records protected names
//! before a command and restores them after it ([`protected`], [`undone`]), says what mounts are to cover ([`covering`]), samples
//! limits ([`samples`]) and passes on what bwrap complained of ([`complaint`]). When the parent or the forker ends, it kills every
//! process below it, restores, and removes the session directory.

pub(crate) mod complaint;
pub(crate) mod covering;
pub(crate) mod protected;
pub(crate) mod samples;
pub mod serve;
pub mod start;
pub(crate) mod undone;
