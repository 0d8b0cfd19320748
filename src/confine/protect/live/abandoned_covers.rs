//! Copies that a crash left: what a command put into them is kept, the rest is removed.
//!
//! A session that ends keeps what its command wrote into a copy before it removes that. Where all of it was killed, the next
//! start does so. It has no record of how a copy was, so it compares with the host: a copy that holds nothing else goes, any
//! other is moved to quarantine whole.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::super::entry::state::{Found, MAX_FILE, MAX_TOTAL, State, observe};
use super::super::entry::subtree::{list, names};
use super::super::error::ProtectError;
use super::super::naming::names::Names;
use super::super::naming::patterns::Patterns;
use super::super::roots::{Root, open_roots};
use super::super::storage::quarantine::Quarantine;
use super::super::violation::{Effect, Keys, Violation};
use super::covers::{COPIES, ORIGINS};
use crate::confine::session;
use crate::policy::path::display;

/// The most entries of one copy that are compared; one with more is kept.
const MAX_COMPARED: usize = 10_000;

/// Moves to quarantine what commands put into the copies that no session has locked, and removes the rest. The store is locked.
pub(crate) fn keep_abandoned(store: &Path) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut quarantine = Quarantine::new(store);
    for entry in std::fs::read_dir(store.join(COPIES)).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(folder) = File::open(&path) else { continue };
        if folder.try_lock().is_err() {
            continue;
        }
        let origins = match std::fs::read(path.join(ORIGINS)) {
            Ok(origins) => origins,
            // No command could change a copy, or what it changed is settled.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                session::remove(&path);
                continue;
            }
            Err(error) => {
                violations.push(not_kept(path, error.to_string()));
                continue;
            }
        };
        match keep_copies(&path, &origins, &mut quarantine, &mut violations) {
            None => session::remove(&path),
            Some(failed) => violations.push(failed),
        }
    }
    quarantine.close();
    violations
}

/// Keeps what is in the copies of one folder. Returns what could not be kept; then the folder stays.
fn keep_copies(
    folder: &Path,
    origins: &[u8],
    quarantine: &mut Quarantine,
    violations: &mut Vec<Violation>,
) -> Option<Violation> {
    let open = |path: &Path| {
        let opened = open_roots(&[path.to_owned()], &[], &mut Patterns::new(&Names::default()))?;
        let opened = opened.into_iter().next();
        opened.ok_or_else(|| ProtectError::io("open", path.to_owned(), Errno::ENOTDIR))
    };
    let opened = open(folder).and_then(|copies| {
        let names = names(&copies.fd).map_err(|error| ProtectError::io("list", folder.to_owned(), error))?;
        Ok((copies, names, open(Path::new("/"))?))
    });
    let (copies, names, host) = match opened {
        Ok(opened) => opened,
        Err(error) => return Some(not_kept(folder.to_owned(), error.to_string())),
    };
    let origins: Vec<&[u8]> = origins.split(|&byte| byte == 0).collect();
    for name in names.into_iter().filter(|name| name != ORIGINS.as_bytes()) {
        let number = std::str::from_utf8(&name)
            .ok()
            .and_then(|name| name.parse::<usize>().ok());
        let origin = number.and_then(|number| origins.get(number));
        let origin = origin.copied().filter(|origin| origin.starts_with(b"/"));
        if origin.is_some_and(|origin| has_nothing_else(&copies, &name, &host, &origin[1..])) {
            continue;
        }
        // A power cut can take the list of origins.
        let origin = origin.map_or_else(
            || folder.join(OsStr::from_bytes(&name)),
            |origin| PathBuf::from(OsStr::from_bytes(origin)),
        );
        let Some(place) = quarantine.move_in(&copies, &name, &origin, Effect::Changed) else {
            let why = format!("what a command made of its copy stays in {}", display(folder));
            return Some(not_kept(origin, why));
        };
        violations.push(Violation {
            quarantined: Some(place),
            failed: None,
            ..not_kept(origin, String::new())
        });
    }
    None
}

fn not_kept(path: PathBuf, why: String) -> Violation {
    Violation {
        path,
        kind: Effect::Changed,
        quarantined: None,
        settings: Keys::default(),
        is_other_in_head: false,
        failed: Some(why),
    }
}

/// Whether everything in the copy is on the host as well, at `origin` from its root. What the host has beside it is not lost; nor is a mode.
fn has_nothing_else(copies: &Root, copy: &[u8], host: &Root, origin: &[u8]) -> bool {
    let Ok(all) = list(copies, copy, MAX_COMPARED) else {
        return false;
    };
    let mut left = 2 * MAX_TOTAL;
    all.into_iter().all(|(path, _)| {
        let origin = [origin, &path[copy.len()..]].concat();
        let mut read = |root: &Root, path: &[u8]| {
            let found = observe(&root.fd, path, MAX_FILE.min(left));
            left = left.saturating_sub(found.length());
            found
        };
        match (read(copies, &path), read(host, &origin)) {
            (
                Found::Present(State::File { content: ours, .. }),
                Found::Present(State::File { content: theirs, .. }),
            ) => ours == theirs,
            (Found::Present(State::Symlink { target: ours }), Found::Present(State::Symlink { target: theirs })) => {
                ours == theirs
            }
            // A directory in which there is something else says so itself.
            (Found::Present(State::Directory { .. }), Found::Present(State::Directory { .. })) => true,
            (Found::Present(_) | Found::Absent | Found::TooLong { .. } | Found::Unreadable(_), _) => false,
        }
    })
}
