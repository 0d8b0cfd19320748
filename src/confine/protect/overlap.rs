//! Whether two roots share files: one is the other, or lies above it, by path or by identity.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::entry::nofollow::Identity;
use super::missing::is_missing;

/// Whether the root with this path and identity and the directory `other` share files.
///
/// By identity too, because a bind mount gives a directory a second path.
pub(super) fn overlaps((path, identity): (&Path, Identity), other: &Path) -> bool {
    if path.starts_with(other) || other.starts_with(path) {
        return true;
    }
    let is = |wanted: Identity| move |path: &Path| identify(path) == Some(wanted);
    other.ancestors().any(is(identity)) || identify(other).is_some_and(|other| path.ancestors().any(is(other)))
}

/// Whether the directory `other` is the one with this identity, or lies in it. The number of one that is gone is used again, so
/// where both tell when they were made, that must agree.
pub(super) fn is_inside(identity: Identity, created: Option<(i64, u32)>, other: &Path) -> bool {
    other
        .ancestors()
        .any(|path| identify(path) == Some(identity) && !is_missing(path, identity, created))
}

fn identify(path: &Path) -> Option<Identity> {
    let found = std::fs::metadata(path).ok()?;
    Some(Identity {
        device: found.dev(),
        inode: found.ino(),
    })
}
