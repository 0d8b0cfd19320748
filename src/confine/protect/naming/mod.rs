//! Which names are protected, and what each directory and entry is by its name and content.

pub(super) mod class;
pub(super) mod lookup;
pub(super) mod markers;
pub(super) mod names;
pub(super) mod patterns;
pub(super) mod vcs;
