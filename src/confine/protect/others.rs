//! Sessions under way beside ours in the same tree.
//!
//! Where another session has written down how a tree was, that is the state to keep, and not what its
//! command has made of the tree meanwhile: a snapshot of that would put an intruder back after the other
//! session took it away. A [`Gate`] lets one session at a time write down or put back, so that whatever a
//! command changed belongs to a journal that can be seen.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

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

fn adopt_one(record: &mut Record, other: Record) {
    let covered = |path: &[u8]| other.roots.iter().any(|(root, _)| is_within(path, root));
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
