//! Changes that were undone, kept in memory so that a person can still ask for them.
//!
//! The copy is made before the thing leaves the tree and nothing but the copy is ever shown or put back: the
//! thing itself may have other names that a command writes to. What is too large, cannot be read, or was
//! more than a change to one entry is not kept: it stays undone.

use nix::errno::Errno;

use super::entry::nofollow::{self, join};
use super::entry::state::{Found, State, observe};
use super::record::SavedEntry;
use super::roots::Root;
use crate::confine::sys;

/// Most bytes that all copies of one settling hold.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// Most entries of one copy.
const MAX_ENTRIES: usize = 1_000;
/// Most changes offered of one settling: more than these nobody reads with care.
const MAX_OFFERED: usize = 8;

/// An entry with everything below it, parents first. Paths are relative to the entry, whose own path is empty.
pub(super) type TreeCopy = Vec<(Vec<u8>, State)>;

/// One entry that was changed.
#[derive(Debug, serde::Serialize)]
pub(super) struct Change {
    /// The number of its root.
    pub(super) root: u16,
    /// Its path in the root.
    pub(super) path: Vec<u8>,
    /// The restored state; of a config, what was left of it.
    pub(super) before: Option<State>,
    /// What the command left there.
    pub(super) after: Option<TreeCopy>,
}

impl Change {
    /// The same change, with this as the restored state.
    pub(super) fn with_result(self, before: State) -> Self {
        Self {
            before: Some(before),
            ..self
        }
    }
}

/// The changes of one settling.
#[derive(Debug)]
pub struct Changes {
    changes: Vec<Change>,
    budget: u64,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            changes: Vec::new(),
            budget: MAX_BYTES,
        }
    }
}

impl Changes {
    /// Copies what a command made of a saved entry, before that is restored.
    pub(super) fn record_change(&mut self, root: &Root, saved: &SavedEntry, observed: &Found) -> Option<Change> {
        match &saved.state {
            State::File { .. } | State::Symlink { .. } => {}
            // What is in a directory was put back entry by entry; a device or socket cannot be made again.
            State::Directory { .. } | State::Special { .. } | State::Ignored => return None,
        }
        let after = match observed {
            Found::Absent => None,
            Found::Present(_) | Found::TooLong { .. } => Some(self.copy_tree(root, &saved.path)?),
            Found::Unreadable(_) => return None,
        };
        Some(Change {
            root: saved.root,
            path: saved.path.clone(),
            before: Some(saved.state.clone()),
            after,
        })
    }

    /// Copies a new entry, before that is removed.
    pub(super) fn record_new(&mut self, root: &Root, number: u16, path: &[u8]) -> Option<Change> {
        Some(Change {
            root: number,
            path: path.to_vec(),
            before: None,
            after: Some(self.copy_tree(root, path)?),
        })
    }

    /// Keeps a change to a private copy; the host's file never changed.
    pub(super) fn keep_copied(&mut self, root: u16, path: &[u8], before: Option<&State>, after: Option<&State>) {
        let length = after.map_or(0, State::length);
        if self.changes.len() >= MAX_OFFERED * 4 || length > self.budget {
            return;
        }
        self.budget -= length;
        self.changes.push(Change {
            root,
            path: path.to_vec(),
            before: before.cloned(),
            after: after.map(|state| vec![(Vec::new(), state.clone())]),
        });
    }

    /// Keeps a change that was undone.
    pub(super) fn keep(&mut self, change: Option<Change>) {
        self.changes.extend(change);
    }

    /// The changes to entries that changed once, as many as are offered.
    pub(super) fn single(self) -> Vec<Change> {
        let mut changes = self.changes;
        changes.sort_by(|a, b| (a.root, &a.path).cmp(&(b.root, &b.path)));
        let mut single: Vec<Change> = Vec::new();
        for run in changes.chunk_by_mut(|a, b| (a.root, &a.path) == (b.root, &b.path)) {
            if let [change] = run
                && single.len() < MAX_OFFERED
            {
                single.push(Change {
                    root: change.root,
                    path: std::mem::take(&mut change.path),
                    before: change.before.take(),
                    after: change.after.take(),
                });
            }
        }
        single
    }

    fn copy_tree(&mut self, root: &Root, path: &[u8]) -> Option<TreeCopy> {
        if self.changes.len() >= MAX_OFFERED * 4 {
            return None;
        }
        let mut budget = self.budget;
        let copy = copy_tree(root, path, &mut budget).ok()?;
        self.budget = budget;
        Some(copy)
    }
}

/// Copies what is there now; fails where it cannot be shown to a person.
pub(super) fn copy_tree(root: &Root, path: &[u8], budget: &mut u64) -> nix::Result<TreeCopy> {
    let mut all: TreeCopy = Vec::new();
    let mut todo = vec![Vec::new()];
    let mut buffer = vec![0; 64 * 1024];
    while let Some(below) = todo.pop() {
        let here = join(path, &below);
        let state = match observe(&root.fd, &here, *budget) {
            Found::Present(state) => state,
            Found::TooLong { .. } => return Err(Errno::EFBIG),
            Found::Unreadable(error) => return Err(error),
            Found::Absent => return Err(Errno::ENOENT),
        };
        *budget = budget.saturating_sub(state.length() + here.len() as u64);
        match &state {
            State::File { .. } => {}
            State::Special { mode, .. } if mode & libc::S_IFMT == libc::S_IFIFO => {}
            // The target of a symlink is not shown, and any later command may replace it.
            State::Symlink { .. } | State::Special { .. } | State::Ignored => return Err(Errno::EOPNOTSUPP),
            State::Directory { .. } => {
                let directory = nofollow::open_directory(&root.fd, &here)?;
                loop {
                    let read = sys::getdents(&directory, &mut buffer)?;
                    if read == 0 {
                        break;
                    }
                    todo.extend(sys::names(&buffer[..read]).map(|name| join(&below, name)));
                    if all.len() + todo.len() > MAX_ENTRIES {
                        return Err(Errno::E2BIG);
                    }
                }
            }
        }
        all.push((below, state));
    }
    // By bytes, an entry comes before what it holds.
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(all)
}
