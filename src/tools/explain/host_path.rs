//! Whether there is anything on the host that a denial could be about.

use std::ffi::OsStr;
use std::fs::{Metadata, symlink_metadata};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, openat2, readlink};
use nix::unistd::{AccessFlags, faccessat, geteuid};

use super::explained::Wanted;
use crate::confine::wire::attempted::{FileAccess, Found};

/// An attempt and the host path it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResolvedAttempt {
    pub(super) wanted: Wanted,
    pub(super) path: PathBuf,
    /// Whether it was found from inside.
    pub(super) found: Found,
    /// Whether root is kept from it by its modes, for lack of capabilities.
    pub(super) modes: Modes,
}

/// What the modes of something say to root without capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modes {
    /// They permit it, or this user is not root.
    Permit,
    /// They refuse it.
    Refuse,
}

/// Where an attempt leads on the host, if it could have come to something there for this user.
///
/// Nothing is opened: a path that a command chose is only walked.
pub(super) fn resolve_attempt(path: &OsStr, found: Found, access: FileAccess) -> Option<ResolvedAttempt> {
    let path = Path::new(path);
    let real = match (found, access) {
        (Found::There, _) | (Found::Absent, FileAccess::Make) => path.components().collect(),
        // It is not there, or it is hidden by what is mounted around it.
        (Found::Absent | Found::Nothing, FileAccess::Remove | FileAccess::Link)
        | (Found::Nothing, FileAccess::Make) => {
            // With a slash behind it, it is there only as a directory.
            let beside = real(&path.parent()?.join(""))?.join(path.file_name()?);
            let is_named_as_one = path.as_os_str().as_bytes().ends_with(b"/");
            let is_there = symlink_metadata(&beside).is_ok_and(|metadata| metadata.is_dir() || !is_named_as_one);
            (access == FileAccess::Make || is_there).then_some(beside)?
        }
        (
            Found::Absent | Found::Nothing,
            FileAccess::Read
            | FileAccess::List
            | FileAccess::Write
            | FileAccess::Execute
            | FileAccess::Look
            | FileAccess::Attributes
            | FileAccess::Connect,
        ) => real(path)?,
    };
    let metadata = symlink_metadata(&real).ok();
    let is_directory = metadata.as_ref().is_some_and(Metadata::is_dir);
    let wanted = match access {
        FileAccess::Read if is_directory => Wanted::List,
        FileAccess::Read => Wanted::Read,
        FileAccess::List => Wanted::List,
        FileAccess::Write => Wanted::Write,
        FileAccess::Make => Wanted::Make,
        FileAccess::Remove => Wanted::Remove,
        FileAccess::Link => Wanted::Link,
        FileAccess::Execute => Wanted::Execute,
        FileAccess::Attributes => Wanted::Attributes,
        FileAccess::Look => Wanted::Look,
        FileAccess::Connect => Wanted::Connect,
    };
    // What lies in a private directory, or is gone by now, was there for the command; its modes are not known any more.
    let subject = match wanted {
        Wanted::Make | Wanted::Remove => real.parent()?.to_owned(),
        _ => real.clone(),
    };
    let modes = match symlink_metadata(&subject) {
        Err(_) => Modes::Permit,
        Ok(metadata) if permitted_by_modes(&subject, &metadata, wanted) => modes_for_bare_root(&metadata, wanted),
        Ok(_) => return None,
    };
    Some(ResolvedAttempt {
        wanted,
        path: real,
        found,
        modes,
    })
}

/// Where a path leads on the host; not through what `/proc` says of this process, which the command's is not.
fn real(path: &Path) -> Option<PathBuf> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let fd = openat2(AT_FDCWD, path, how).ok()?;
    let real = readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()).as_str()).ok()?;
    let real = PathBuf::from(real);
    let own = format!("/proc/{}", std::process::id());
    (real.is_absolute() && !real.starts_with(own)).then_some(real)
}

/// The mode bits that an operation needs.
const fn access_flags(wanted: Wanted) -> AccessFlags {
    match wanted {
        Wanted::Read | Wanted::List => AccessFlags::R_OK,
        Wanted::Write | Wanted::Connect => AccessFlags::W_OK,
        Wanted::Make | Wanted::Remove => AccessFlags::W_OK.union(AccessFlags::X_OK),
        Wanted::Execute => AccessFlags::X_OK,
        Wanted::Attributes | Wanted::Link | Wanted::Look | Wanted::Socket | Wanted::Call => AccessFlags::F_OK,
    }
}

/// Whether this user could do it here without Stockade: what modes refuse, no change of a config permits.
fn permitted_by_modes(path: &Path, metadata: &Metadata, wanted: Wanted) -> bool {
    match wanted {
        Wanted::Attributes => metadata.uid() == geteuid().as_raw() || geteuid().is_root(),
        Wanted::Execute if !metadata.is_file() => false,
        _ => faccessat(AT_FDCWD, path, access_flags(wanted), AtFlags::AT_EACCESS).is_ok(),
    }
}

/// Whether this user could make a device node here without Stockade.
pub(super) fn makes_devices() -> bool {
    caps::has_cap(None, caps::CapSet::Effective, caps::Capability::CAP_MKNOD).unwrap_or(false)
}

/// What modes say to a root that has no capabilities, and no group but its own.
fn modes_for_bare_root(metadata: &Metadata, wanted: Wanted) -> Modes {
    let shift = match (metadata.uid(), metadata.gid()) {
        (0, _) => 6,
        (_, 0) => 3,
        (_, _) => 0,
    };
    let wanted_bits = u32::try_from(access_flags(wanted).bits()).unwrap_or(0);
    if !geteuid().is_root() || metadata.is_symlink() || metadata.mode() >> shift & wanted_bits == wanted_bits {
        Modes::Permit
    } else {
        Modes::Refuse
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn at(path: &Path, found: Found, access: FileAccess) -> Option<(Wanted, PathBuf)> {
        resolve_attempt(path.as_os_str(), found, access)
            .map(|resolve_attempt| (resolve_attempt.wanted, resolve_attempt.path))
    }

    #[test]
    fn what_is_not_there_is_not_denied_but_what_could_be_made_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let missing = root.join("missing");
        for access in [
            FileAccess::Read,
            FileAccess::List,
            FileAccess::Write,
            FileAccess::Remove,
            FileAccess::Execute,
            FileAccess::Look,
        ] {
            for found in [Found::Absent, Found::Nothing] {
                assert_eq!(at(&missing, found, access), None, "{access:?}");
            }
        }
        for found in [Found::Absent, Found::Nothing] {
            assert_eq!(
                at(&missing, found, FileAccess::Make),
                Some((Wanted::Make, missing.clone()))
            );
        }
        assert_eq!(at(&missing.join("x"), Found::Nothing, FileAccess::Make), None);
    }

    #[test]
    fn what_is_hidden_is_found_where_it_leads_on_the_host() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let (file, link) = (root.join("file"), root.join("link"));
        fs::write(&file, "x").unwrap();
        symlink("file", &link).unwrap();
        assert_eq!(at(&link, Found::Nothing, FileAccess::Read), Some((Wanted::Read, file)));
        assert_eq!(
            at(&link, Found::Nothing, FileAccess::Remove),
            Some((Wanted::Remove, link))
        );
        assert_eq!(
            at(&root, Found::Absent, FileAccess::Read),
            Some((Wanted::List, root.clone()))
        );
    }

    #[test]
    fn what_was_there_and_is_gone_was_denied_all_the_same() {
        let gone = Path::new("/nowhere/gone");
        assert_eq!(
            at(gone, Found::There, FileAccess::Read),
            Some((Wanted::Read, gone.to_owned()))
        );
    }

    #[test]
    fn nothing_is_found_through_what_proc_says_of_this_process() {
        for path in ["/proc/self/status", "/proc/self/cwd", "/dev/fd/0", "/dev/stdin"] {
            assert_eq!(at(Path::new(path), Found::Nothing, FileAccess::Read), None, "{path}");
        }
        assert!(at(Path::new("/proc/version"), Found::Nothing, FileAccess::Read).is_some());
    }
}
