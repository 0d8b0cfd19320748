//! The launcher of macOS, with a stand-in for `sandbox-exec` that answers from the profile text alone.

pub(crate) mod stand_in;
pub(crate) mod trials;
