//! Where an object is, and whether the plan permits changes there.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

use super::caller::Proc;
use crate::backend::attributes::AttributePlan;
use crate::confine::sys::attributes::mount_of;
use crate::policy::AbsPath;

/// What the kernel appends to the path of an object that was unlinked.
const DELETED: &[u8] = b" (deleted)";

/// Whether attributes of `object` may change where it is now.
///
/// What cannot be told, a path too long for the kernel among it, is not permitted.
pub(super) fn permitted(plan: &AttributePlan, proc: &Proc, object: &OwnedFd) -> bool {
    proc.path_of(object)
        .is_ok_and(|path| permits(plan, &path) && reachable(object, &path).is_ok_and(|reachable| reachable))
}

/// Whether the plan permits the object that the kernel shows as `path`.
///
/// An object without a path (`pipe:[1]`, `(unreachable)/x`) is nowhere. A name that ends in
/// ` (deleted)` may be an unlinked `name` or really be called so: it must be permitted as both.
fn permits(plan: &AttributePlan, path: &Path) -> bool {
    let shown = |path: &Path| AbsPath::new(path).is_ok_and(|path| plan.permits(&path));
    let before = path.as_os_str().as_bytes().strip_suffix(DELETED);
    shown(path) && before.is_none_or(|before| shown(Path::new(OsStr::from_bytes(before))))
}

/// Whether `path` is one from our own root.
///
/// For an object on a mount that is not below our root (in another namespace, detached, or internal to
/// the kernel) the path shown starts somewhere else, and can look like one of ours. Where some ancestor
/// in our own tree is on the very same mount, it does not.
fn reachable(object: &OwnedFd, path: &Path) -> Result<bool, Errno> {
    let mount = mount_of(object)?;
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    // A rename that races only makes the search go further up, at most to where the mount begins.
    Ok(path
        .ancestors()
        .filter_map(|at| openat2(AT_FDCWD.as_fd(), at, how).ok())
        .any(|at| mount_of(at).is_ok_and(|there| there == mount)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::attributes::{Denied, Writable};

    fn plan() -> AttributePlan {
        AttributePlan {
            writable: vec![Writable::Tree("/w".into()), Writable::File("/f".into())],
            denied: vec![Denied::Tree("/w/no".into())],
        }
    }

    #[test]
    fn an_object_without_a_path_is_nowhere() {
        let everywhere = AttributePlan {
            writable: vec![Writable::Tree("/".into())],
            denied: vec![],
        };
        for shown in [
            "pipe:[1]",
            "anon_inode:[eventfd]",
            "(unreachable)/w/x",
            "socket:[7]",
            "",
        ] {
            assert!(!permits(&everywhere, Path::new(shown)), "{shown}");
        }
        assert!(permits(&everywhere, Path::new("/w/x")));
    }

    #[test]
    fn a_deleted_name_is_judged_as_both_of_its_readings() {
        assert!(permits(&plan(), Path::new("/w/x (deleted)")));
        assert!(!permits(&plan(), Path::new("/w/no (deleted)")));
        assert!(!permits(&plan(), Path::new("/f (deleted)")));
        assert!(permits(&plan(), Path::new("/f")));
        assert!(!permits(&plan(), Path::new("/ (deleted)")));
    }

    #[test]
    fn names_of_any_bytes_are_judged_by_component() {
        assert!(permits(&plan(), Path::new(OsStr::from_bytes(b"/w/\xff\n'\""))));
        assert!(!permits(&plan(), Path::new(OsStr::from_bytes(b"/w\n/x"))));
    }
}
