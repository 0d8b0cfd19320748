//! The settings of git configs: reading them, and judging which may stay.

pub(super) mod judge;
pub(super) mod keys;
pub(super) mod list;
pub(super) mod scope;
pub(super) mod settings;
pub(super) mod text;
