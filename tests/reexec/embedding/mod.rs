//! Programs that embed the library, each a `main` of its own: one that calls `init` as it should, and some that do not.
//!
//! They are this program under other names, so that what they start is, as everywhere, the same program with the same `main`.

pub(crate) mod programs;
pub(crate) mod trials;
