//! Applying a change that was undone, because a person who was shown it asks for it.
//!
//! What is put back is the copy in memory, made anew: the very bytes that were shown. Nothing else may have
//! changed meanwhile: where the entry is no longer what restoring left, nothing happens. The new thing is built
//! under a name of our own and takes its place in one step; what it took the place of is looked at once more.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::RenameFlags;
use sha2::{Digest as _, Sha256};

use super::change::{Change, Changes, TreeCopy, copy_tree};
use super::diff;
use super::entry::nofollow::{Identity, join, split};
use super::entry::restore::{create, rename, set_mode};
use super::entry::state::{Found, State, observe};
use super::entry::subtree;
use super::error::ProtectError;
use super::roots::{Root, absolute};
use super::storage::other_sessions::StoreLock;
use super::storage::store::temporary_name;
use super::violation::Effect;

/// The changes of one settlement that may still be applied, all by one answer.
#[derive(Debug)]
pub struct Offer {
    roots: Vec<Root>,
    store: PathBuf,
    changes: Vec<Change>,
}

/// The identity of an offer: a hash of each path, its state before and after.
pub type Digest = [u8; 32];

/// An offer in the form that a person is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// What it is known by.
    pub digest: Digest,
    /// The entries, and what the command did to each.
    pub entries: Vec<(PathBuf, Effect)>,
    /// All the changes, as lines of text.
    pub text: String,
}

/// Why a change was not applied; then nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// It is not what was shown.
    #[error("it is not on offer")]
    Unknown,
    /// The entry is not what restoring left.
    #[error("something else has changed it meanwhile")]
    ChangedSince,
    /// The system refused a step.
    #[error("{}", .0.desc())]
    System(#[from] Errno),
    /// The store of protected names cannot be locked.
    #[error(transparent)]
    Store(#[from] ProtectError),
}

impl Offer {
    pub(super) fn new(roots: Vec<Root>, store: PathBuf, changes: Changes) -> Self {
        let changes = changes.single();
        Self { roots, store, changes }
    }

    /// What is on offer, in full; from here on nothing else is. `None` where that is nothing.
    pub fn describe(&mut self) -> Option<Diff> {
        let (mut entries, mut text) = (Vec::new(), String::new());
        let roots = &self.roots;
        self.changes.retain(|change| {
            let Some(root) = roots.get(usize::from(change.root)) else {
                return false;
            };
            let path = absolute(root, &change.path);
            let kind = match (&change.before, &change.after) {
                (None, _) => Effect::Created,
                (Some(_), None) => Effect::Removed,
                (Some(_), Some(_)) => Effect::Changed,
            };
            let is_shown = diff::add(&mut text, &path, kind, change);
            if is_shown {
                entries.push((path, kind));
            }
            is_shown
        });
        (!entries.is_empty()).then_some(Diff {
            digest: self.digest()?,
            entries,
            text,
        })
    }

    /// Puts back what was shown, each entry for which that can be, in its order.
    pub fn apply(self, digest: &Digest) -> Vec<Result<(), ApplyError>> {
        if self.digest().as_ref() != Some(digest) {
            return self.changes.iter().map(|_| Err(ApplyError::Unknown)).collect();
        }
        self.changes.iter().map(|change| self.apply_one(change)).collect()
    }

    fn apply_one(&self, change: &Change) -> Result<(), ApplyError> {
        let root = self.roots.get(usize::from(change.root)).ok_or(ApplyError::Unknown)?;
        // No other session may record or undo half of it.
        let _gate = StoreLock::enter(&self.store)?;
        if !is_in_place(root) || !matches(root, &change.path, change.before.as_ref()) {
            return Err(ApplyError::ChangedSince);
        }
        replace(root, change)
    }

    fn digest(&self) -> Option<Digest> {
        postcard::to_stdvec(&self.changes)
            .ok()
            .map(|bytes| Sha256::digest(bytes).into())
    }
}

/// Whether the root's path still leads to its open directory.
fn is_in_place(root: &Root) -> bool {
    std::fs::symlink_metadata(&root.path).is_ok_and(|found| {
        let now = Identity {
            device: found.dev(),
            inode: found.ino(),
        };
        now == root.identity
    })
}

/// Whether the entry is in this state.
fn matches(root: &Root, path: &[u8], wanted: Option<&State>) -> bool {
    match (observe(&root.fd, path, wanted.map_or(0, State::length)), wanted) {
        (Found::Absent, None) => true,
        (Found::Present(now), Some(wanted)) => now == *wanted,
        (Found::Absent | Found::Present(_) | Found::TooLong { .. } | Found::Unreadable(_), _) => false,
    }
}

/// Puts the change in place of what is there.
fn replace(root: &Root, change: &Change) -> Result<(), ApplyError> {
    let temporary = join(split(&change.path).0, temporary_name().as_bytes());
    let (here, staged) = ((root, change.path.as_slice()), (root, temporary.as_slice()));
    let (from, to, how) = match (&change.before, &change.after) {
        (_, None) => (here, staged, RenameFlags::RENAME_NOREPLACE),
        (None, Some(_)) => (staged, here, RenameFlags::RENAME_NOREPLACE),
        (Some(_), Some(_)) => (staged, here, RenameFlags::RENAME_EXCHANGE),
    };
    let built = change
        .after
        .as_ref()
        .map_or(Ok(()), |copy_tree| build(root, &temporary, copy_tree));
    if let Err(error) = built.and_then(|()| rename(from, to, how)) {
        discard(root, &temporary);
        return Err(error.into());
    }
    // Between the look and the step somebody may have been there, and in what was made for it.
    let is_complete = change.after.as_ref().is_none_or(|after| {
        let mut left = u64::MAX;
        copy_tree(root, &change.path, &mut left).is_ok_and(|made| made == *after)
    });
    if !is_complete || !matches(root, &temporary, change.before.as_ref()) {
        rename(to, from, how)?;
        discard(root, &temporary);
        return Err(ApplyError::ChangedSince);
    }
    discard(root, &temporary);
    Ok(())
}

/// Makes a copy under another path; directories get their modes when they are full.
fn build(root: &Root, path: &[u8], copy_tree: &TreeCopy) -> nix::Result<()> {
    for (below, state) in copy_tree {
        let state = match state {
            State::Directory { .. } => &State::Directory { mode: 0o700 },
            State::File { .. } | State::Symlink { .. } | State::Special { .. } | State::Ignored => state,
        };
        create(root, &join(path, below), state)?;
    }
    for (below, state) in copy_tree.iter().rev() {
        if let State::Directory { mode } = state {
            set_mode(root, &join(path, below), *mode).map_err(|_| Errno::EPERM)?;
        }
    }
    Ok(())
}

/// Removes what lies under our own name; nothing may.
fn discard(root: &Root, temporary: &[u8]) {
    let _gone = subtree::remove(root, temporary);
}
