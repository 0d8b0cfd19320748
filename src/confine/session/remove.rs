//! Removing session directories.

use std::fs::{self, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg, OFlag, openat, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::names::{CLOSED, HOME, LOCK, READABLE, TMP};

/// How old a directory must be for its lock to count.
pub(super) const MIN_AGE: Duration = Duration::from_secs(5);
/// How old a directory without a lock file must be to be removed.
const MIN_AGE_UNLOCKED: Duration = Duration::from_mins(1);

/// Removes unlocked sessions beside this one.
pub(crate) fn sweep_stale(session: &Path) {
    let Some(entries) = session.parent().and_then(|base| fs::read_dir(base).ok()) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        // A session is made, locked and filled in several steps: a young one is left alone whatever its lock says.
        if path == session || !is_older(&path, MIN_AGE) {
            continue;
        }
        let Ok(file) = OpenOptions::new()
            .write(true)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(path.join(LOCK))
        else {
            // Without a lock file it is a session that is just being made, or one half removed.
            if is_older(&path, MIN_AGE_UNLOCKED) {
                remove(&path);
            }
            continue;
        };
        if let Ok(_lock) = Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            remove(&path);
        }
    }
}

fn is_older(path: &Path, least: Duration) -> bool {
    let age = fs::symlink_metadata(path)
        .and_then(|meta| meta.modified())
        .map(|made| made.elapsed());
    matches!(age, Ok(Ok(age)) if age > least)
}

/// Removes what nobody has put anything into, while the last processes of a session are still ending.
///
/// It tries each thing once: whoever still lives could keep it busy for ever. [`remove`] does the rest when
/// they are dead.
pub(crate) fn prune(session: &Path) {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let Ok(top) = nix::fcntl::open(session, flags, Mode::empty()) else {
        return;
    };
    for canary in [CLOSED, READABLE] {
        let _removed = unlinkat(&top, canary, UnlinkatFlags::NoRemoveDir);
    }
    for private in [HOME, TMP] {
        let _removed = unlinkat(&top, private, UnlinkatFlags::RemoveDir);
    }
}

/// Removes a session whose processes are dead, and its base when it was the last. There may be none: the supervisor removes it, and
/// the parent what is left where somebody killed that, or where a supervisor ended before the session was made.
///
/// What cannot be removed stays for the next sweep.
pub(crate) fn remove(session: &Path) {
    let _left = remove_tree(session);
    if let Some(base) = session.parent() {
        let _others = fs::remove_dir(base);
    }
}

/// Removes a tree of any depth with two descriptors: each directory found is moved up to the top
/// first. Directories the command made unreadable are made readable again.
fn remove_tree(top: &Path) -> nix::Result<()> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let root = nix::fcntl::open(top, flags, Mode::empty())?;
    let mut serial: u64 = 0;
    loop {
        let entries = list(&root)?;
        if entries.is_empty() {
            break;
        }
        // The lock goes last: without it nobody sweeps what is left when this is interrupted.
        let only_the_lock = entries.len() == 1;
        for name in entries
            .iter()
            .filter(|name| only_the_lock || name.as_bytes() != LOCK.as_bytes())
        {
            if unlinkat(&root, name.as_c_str(), UnlinkatFlags::NoRemoveDir).is_ok() {
                continue;
            }
            fchmodat(&root, name.as_c_str(), Mode::S_IRWXU, FchmodatFlags::NoFollowSymlink)?;
            let directory = openat(&root, name.as_c_str(), flags, Mode::empty())?;
            for child in list(&directory)? {
                if unlinkat(&directory, child.as_c_str(), UnlinkatFlags::NoRemoveDir).is_ok() {
                    continue;
                }
                // Moving a directory changes its `..`, so it must be writable itself.
                fchmodat(
                    &directory,
                    child.as_c_str(),
                    Mode::S_IRWXU,
                    FchmodatFlags::NoFollowSymlink,
                )?;
                serial += 1;
                renameat(
                    &directory,
                    child.as_c_str(),
                    &root,
                    format!("r-{serial}-{}", std::process::id()).as_str(),
                )?;
            }
            unlinkat(&root, name.as_c_str(), UnlinkatFlags::RemoveDir)?;
        }
    }
    nix::unistd::unlinkat(nix::fcntl::AT_FDCWD, top, UnlinkatFlags::RemoveDir)
}

fn list(directory: &impl AsFd) -> nix::Result<Vec<std::ffi::CString>> {
    let copy = openat(
        directory,
        ".",
        OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )?;
    let mut names = Vec::new();
    for entry in nix::dir::Dir::from_fd(copy)?.iter() {
        let name = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_tree_deeper_than_the_descriptor_limit_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let top = base.path().join("s");
        fs::create_dir(&top).unwrap();
        std::thread::spawn({
            let top = top.clone();
            move || {
                let mut at = nix::fcntl::open(&top, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).unwrap();
                for _ in 0..3000 {
                    nix::sys::stat::mkdirat(&at, "d", Mode::S_IRWXU).unwrap();
                    at = openat(&at, "d", OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).unwrap();
                }
            }
        })
        .join()
        .unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn a_link_in_the_tree_is_removed_and_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let (top, outside) = (base.path().join("s"), base.path().join("outside"));
        fs::create_dir(&top).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::set_permissions(&outside, Permissions::from_mode(0o750)).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, top.join("link")).unwrap();
        fs::create_dir(top.join("dir")).unwrap();
        std::os::unix::fs::symlink(&outside, top.join("dir/link")).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists());
        assert!(outside.join("kept").exists());
        assert_eq!(fs::metadata(&outside).unwrap().mode() & 0o777, 0o750);
    }
}
