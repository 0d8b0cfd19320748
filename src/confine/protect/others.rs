//! Sessions under way beside ours in the same tree.
//!
//! Where another session has written down how a tree was, that is the state to keep, and not what its
//! command has made of the tree meanwhile: a snapshot of that would put an intruder back after the other
//! session took it away. A [`Gate`] lets one session at a time write down or put back, so that whatever a
//! command changed belongs to a journal that can be seen.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;

use super::ProtectError;
use super::at::{Identity, is_within, join};
use super::journal::{self, Kept, Record};
use super::sight::Holder;

/// The lock on the store, held while a tree is written down or put back. The kernel drops it with its holder.
#[derive(Debug)]
pub(super) struct Gate {
    _lock: File,
}

impl Gate {
    /// Waits until no other session is at it.
    pub(super) fn enter(store: &Path) -> Result<Self, ProtectError> {
        journal::folder(store, "journal")?;
        let path = store.join("gate");
        let fail = |step| {
            let path = path.clone();
            move |source| ProtectError::Io { step, path, source }
        };
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .map_err(fail("open"))?;
        file.lock().map_err(fail("lock"))?;
        Ok(Self { _lock: file })
    }
}

/// Makes `record` say, wherever it overlaps with one of `others` (oldest first), what that one says.
pub(super) fn adopt(record: &mut Record, others: Vec<Record>) {
    // The oldest last: it has seen the tree before all of them.
    for other in others.into_iter().rev() {
        adopt_one(record, other);
    }
}

fn adopt_one(record: &mut Record, mut other: Record) {
    // Where its roots are now, under our names for them.
    let now: Vec<Option<Vec<u8>>> = other.roots.iter().map(|root| standing(root, &record.roots)).collect();
    let stands = |root: u16| now.get(usize::from(root)).is_some_and(Option::is_some);
    other.entries.retain(|kept| stands(kept.root));
    other.holders.retain(|holder| stands(holder.root));
    for ((path, _), now) in other.roots.iter_mut().zip(&now) {
        if let Some(now) = now {
            path.clone_from(now);
        }
    }
    let covered = |path: &[u8]| now.iter().flatten().any(|root| is_within(path, root));
    // A file that only this session protects by its path is not in the other's journal however it was.
    let extra: HashSet<&Vec<u8>> = other.extra.iter().collect();
    let own: Vec<&Vec<u8>> = record.extra.iter().filter(|path| !extra.contains(path)).collect();
    let roots = &record.roots;
    record.entries.retain(|kept| {
        let path = absolute(roots, kept.root, &kept.path);
        !covered(&path) || own.iter().any(|own| is_within(&path, own))
    });
    record
        .holders
        .retain(|holder| !covered(&absolute(roots, holder.root, &holder.path)));
    let (their_roots, their_entries, their_holders) = (other.roots, other.entries, other.holders);
    for kept in their_entries {
        let Some((root, path)) = place(roots, &absolute(&their_roots, kept.root, &kept.path)) else {
            continue;
        };
        let anchor = absolute(&their_roots, kept.root, &kept.anchor);
        // One above our root is there as long as our root is.
        let anchor = place(roots, &anchor).map_or_else(Vec::new, |(_, anchor)| anchor);
        record.entries.push(Kept {
            root,
            path,
            anchor,
            ..kept
        });
    }
    for holder in their_holders {
        if let Some((root, path)) = place(roots, &absolute(&their_roots, holder.root, &holder.path)) {
            record.holders.push(Holder { root, path, ..holder });
        }
    }
    // Holders before what they hold, outer ones first.
    record.entries.sort_by(|a, b| (a.root, &a.path).cmp(&(b.root, &b.path)));
    record.entries.dedup_by(|b, a| (a.root, &a.path) == (b.root, &b.path));
    record.holders.sort_by(|a, b| (a.root, &a.path).cmp(&(b.root, &b.path)));
}

/// Where a root of another session is now, by our names where it or one around it is ours as well: a mount gives a
/// directory a second path. None where another directory has taken its place.
fn standing((path, identity): &(Vec<u8>, Identity), ours: &Roots) -> Option<Vec<u8>> {
    let theirs = Path::new(OsStr::from_bytes(path));
    let is = |wanted: Identity| move |place: &&Path| found(place) == Found::Is(wanted);
    // It is ours, or ours lies in it.
    for (own, _) in ours {
        let mut above = Path::new(OsStr::from_bytes(own)).ancestors();
        if let Some(above) = above.find(is(*identity)) {
            return Some(above.as_os_str().as_bytes().to_vec());
        }
    }
    match found(theirs) {
        Found::Is(now) if now == *identity => {}
        // What cannot be looked at may still be what it was.
        Found::Unknown => {}
        Found::Is(_) | Found::Nothing => return None,
    }
    // Ours holds it.
    for (own, who) in ours {
        let above = theirs.ancestors().skip(1).find(is(*who));
        if let Some(rest) = above.and_then(|above| theirs.strip_prefix(above).ok()) {
            return Some(Path::new(OsStr::from_bytes(own)).join(rest).into_os_string().into_vec());
        }
    }
    Some(path.clone())
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Is(Identity),
    Nothing,
    Unknown,
}

fn found(path: &Path) -> Found {
    match nix::sys::stat::stat(path) {
        Ok(stat) => Found::Is(Identity::of(&stat)),
        Err(Errno::ENOENT | Errno::ENOTDIR) => Found::Nothing,
        Err(_) => Found::Unknown,
    }
}

type Roots = [(Vec<u8>, Identity)];

fn absolute(roots: &Roots, root: u16, path: &[u8]) -> Vec<u8> {
    roots
        .get(usize::from(root))
        .map_or_else(Vec::new, |(root, _)| join(root, path))
}

/// The root an absolute path lies in, the innermost, and the path in it.
fn place(roots: &Roots, path: &[u8]) -> Option<(u16, Vec<u8>)> {
    let inside = roots.iter().zip(0_u16..).filter(|((root, _), _)| is_within(path, root));
    let ((root, _), number) = inside.max_by_key(|((root, _), _)| root.len())?;
    let rest = &path[root.len()..];
    Some((number, rest.strip_prefix(b"/").unwrap_or(rest).to_vec()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn bytes(path: &Path) -> Vec<u8> {
        path.as_os_str().as_bytes().to_vec()
    }

    fn who(path: &Path) -> Identity {
        match found(path) {
            Found::Is(identity) => identity,
            Found::Nothing | Found::Unknown => Identity { device: 0, inode: 0 },
        }
    }

    #[test]
    fn a_root_of_another_session_is_known_by_what_it_is_and_not_by_its_path() {
        let scene = tempfile::tempdir().unwrap();
        let at = |path: &str| scene.path().join(path);
        fs::create_dir_all(at("x/in")).unwrap();
        fs::create_dir_all(at("other")).unwrap();
        // Stands in for a mount, which shows the same directory under a second path.
        symlink(at("x"), at("y")).unwrap();
        let ours = |path: &str| vec![(bytes(&at(path)), who(&at(path)))];
        let stands = |theirs: &str, mine: &str| standing(&(bytes(&at(theirs)), who(&at(theirs))), &ours(mine));
        for (theirs, mine, now) in [
            ("x", "x", Some("x")),
            ("y", "x", Some("x")),
            ("y/in", "x", Some("x/in")),
            ("y", "x/in", Some("x")),
            ("other", "x", Some("other")),
        ] {
            assert_eq!(
                stands(theirs, mine),
                now.map(|now| bytes(&at(now))),
                "{theirs} beside {mine}"
            );
        }
        // Another directory now, and none; whoever holds that place knows nothing of the one that was there.
        let moved = (bytes(&at("x")), who(&at("other")));
        assert_eq!(standing(&moved, &ours("x/in")), None);
        assert_eq!(standing(&moved, &ours("")), None);
        let gone = (bytes(&at("gone")), who(&at("x")));
        assert_eq!(standing(&gone, &ours("other")), None);
    }
}
