//! What is protected, as it was before a command.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::entry::access::Access;
use super::entry::nofollow::Identity;
use super::entry::state::{Found, MAX_FILE, MAX_TOTAL, State, observe};
use super::error::ProtectError;
use super::missing::is_missing;
use super::naming::class::Role;
use super::naming::names::Names;
use super::program::Program;
use super::referenced::ways::Ways;
use super::roots::{Root, absolute};
use super::tree::inventory::{Ancestor, Inventory};

/// Everything needed to put protected entries back.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(in crate::confine) struct Record {
    /// The roots: absolute path and identity.
    pub(super) roots: Vec<(Vec<u8>, Identity)>,
    /// The permission bits of each root; they follow the record, and journals of before them have none. So does, behind
    /// them, how many names each entry has, when each root was made, what the config makes of the list of names, the
    /// program of the session, the group and access lists of each entry, the permission bits of each ancestor, the directories of
    /// hooks, and the ways to git directories.
    #[serde(skip)]
    pub(super) modes: Vec<u32>,
    /// When each root was made, as far as that can be known: the number of an inode is used again.
    #[serde(skip)]
    pub(super) created: Vec<Option<(i64, u32)>>,
    /// What the config makes of the list of names.
    #[serde(skip)]
    pub(super) names: Names,
    /// The program of the session, where it lies in a root.
    #[serde(skip)]
    pub(super) program: Option<Program>,
    /// Directories of hooks that are relative to a work tree.
    #[serde(skip)]
    pub(super) hooks: Vec<Vec<u8>>,
    /// The way from each `.git` and each git directory to what git obeys.
    #[serde(skip)]
    pub(super) ways: Ways,
    /// The files protected by path.
    pub(super) extra: Vec<Vec<u8>>,
    /// The protected entries, parents first.
    pub(super) entries: Vec<SavedEntry>,
    /// The directories above them, outer ones first.
    pub(super) ancestors: Vec<Ancestor>,
}

impl Record {
    /// The numbers of the roots that are not where they were.
    pub(super) fn missing(&self) -> Vec<u16> {
        let created = self.created.iter().copied().chain(std::iter::repeat(None));
        let roots = self.roots.iter().zip(created).zip(0_u16..);
        let missing = roots.filter(|(((path, identity), created), _)| {
            is_missing(Path::new(OsStr::from_bytes(path)), *identity, *created)
        });
        missing.map(|(_, number)| number).collect()
    }

    /// Reduces the record to these roots.
    pub(super) fn of_roots(self, wanted: &[u16]) -> Self {
        fn pick<T>(all: Vec<T>, is_wanted: impl Fn(usize) -> bool) -> Vec<T> {
            let numbered = all.into_iter().enumerate();
            numbered.filter(|(at, _)| is_wanted(*at)).map(|(_, one)| one).collect()
        }
        let number = |old: u16| {
            wanted
                .iter()
                .position(|one| *one == old)
                .and_then(|new| u16::try_from(new).ok())
        };
        let is_wanted = |at: usize| u16::try_from(at).is_ok_and(|at| wanted.contains(&at));
        let entries = self.entries.into_iter();
        let ancestors = self.ancestors.into_iter();
        Self {
            roots: pick(self.roots, is_wanted),
            modes: pick(self.modes, is_wanted),
            created: pick(self.created, is_wanted),
            names: self.names,
            program: self.program,
            hooks: self.hooks,
            ways: self.ways,
            extra: self.extra,
            entries: entries
                .filter_map(|kept| {
                    Some(SavedEntry {
                        root: number(kept.root)?,
                        ..kept
                    })
                })
                .collect(),
            ancestors: ancestors
                .filter_map(|ancestor| {
                    Some(Ancestor {
                        root: number(ancestor.root)?,
                        ..ancestor
                    })
                })
                .collect(),
        }
    }
}

/// A protected entry as it was.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct SavedEntry {
    pub(super) root: u16,
    pub(super) path: Vec<u8>,
    pub(super) role: Role,
    pub(super) anchor: Vec<u8>,
    pub(super) state: State,
    /// Its group and access lists; `None` where it has none, and in older journals.
    #[serde(skip)]
    pub(super) access: Option<Access>,
}

/// Longest file that is kept of those that a host's tool has put beside the data of version control.
const MAX_UNLISTED: u64 = 64 * 1024;
/// Bytes of them in all; what is beyond is left alone.
const MAX_ALL_UNLISTED: u64 = 4 * 1024 * 1024;

/// Reads every protected entry.
pub(super) fn save_entries(roots: &[Root], inventory: &Inventory) -> Result<Vec<SavedEntry>, ProtectError> {
    let (mut total_left, mut unlisted_left) = (MAX_TOTAL, MAX_ALL_UNLISTED);
    let mut kept = Vec::new();
    for found in inventory.found() {
        let root = &roots[usize::from(found.root)];
        if found.role == Role::TooDeep {
            return Err(ProtectError::TooDeep(absolute(root, &found.path)));
        }
        let limit = match found.role {
            Role::Unlisted => MAX_UNLISTED.min(unlisted_left),
            _ => MAX_FILE.min(total_left),
        };
        let observed = observe(&root.fd, &found.path, limit);
        let state = match observed {
            // Its content is not recorded, so it cannot be restored.
            Found::Present(State::Directory { .. } | State::Special { .. })
            | Found::TooLong { .. }
            | Found::Unreadable(_)
                if found.role == Role::Unlisted =>
            {
                State::Ignored
            }
            Found::Present(state) => state,
            Found::Absent => continue,
            Found::TooLong { length } => {
                let path = absolute(root, &found.path);
                return Err(ProtectError::TooLarge { path, length, limit });
            }
            Found::Unreadable(error) => {
                let path = absolute(root, &found.path);
                let source = error.into();
                return Err(ProtectError::Unreadable { path, source });
            }
        };
        total_left = total_left.saturating_sub(state.length());
        if found.role == Role::Unlisted {
            unlisted_left = unlisted_left.saturating_sub(state.length());
        }
        let access = match &state {
            State::File { .. } | State::Directory { .. } => Access::of(root, &found.path)?,
            State::Symlink { .. } | State::Special { .. } | State::Ignored => None,
        };
        kept.push(SavedEntry {
            access,
            root: found.root,
            path: found.path,
            role: found.role,
            anchor: found.anchor,
            state,
        });
    }
    Ok(kept)
}
