//! After a command: comparing the tree with the record, and undoing the difference.

pub(super) mod closed;
pub(super) mod compare;
pub(super) mod cover_changes;
pub(super) mod inspect;
pub(super) mod new_entries;
pub(super) mod new_work_trees;
pub(super) mod reported;
pub(super) mod settle;
pub(super) mod settlement;
pub(super) mod touched;
pub(super) mod worktrees;
