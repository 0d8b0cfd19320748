//! How paths are shown, and what a clause permits on a single file.

use crate::backend::landlock::Beneath;
use crate::backend::survey::Kind;
use crate::policy::{AbsPath, Access, Grant, Operation, Right};

/// How a path is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Visibility {
    /// Not at all: the root tmpfs, or a mount of the regime's own, is there.
    Nothing,
    /// Covered.
    Masked,
    /// The host's, read-only.
    ReadOnly,
    /// The host's, writable.
    Writable,
    /// A working device of the host.
    Device,
}

/// What a mount of such a thing has below it.
pub(super) const fn beneath(kind: Kind) -> Beneath {
    match kind {
        Kind::Directory => Beneath::Directory,
        Kind::File | Kind::Device | Kind::Symlink | Kind::Fifo | Kind::Socket => Beneath::File,
    }
}

/// Whether the clause lets this one file be written at any size, whatever files appear beside it.
pub(super) fn writes_file(grant: &Grant, path: &AbsPath) -> bool {
    grant.rights.has(Right::Write) && grant.gives(Operation::Write, path) == Access::Full
}

/// Whether the clause gives anything of this one file.
pub(super) fn names_file(grant: &Grant, path: &AbsPath) -> bool {
    let content = [Operation::Read, Operation::Write, Operation::Execute];
    content
        .into_iter()
        .any(|operation| grant.gives(operation, path) != Access::Denied)
}
