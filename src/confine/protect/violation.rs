//! What a command did to protected names, as it is reported.

use std::path::PathBuf;

/// A protected name that a command changed, and that has been put back where that could be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The protected entry, or the moved directory that held some.
    pub path: PathBuf,
    /// What the command did to it.
    pub kind: Effect,
    /// Where the intruder is kept, if there was one.
    pub quarantined: Option<PathBuf>,
    /// The settings of a git config that were undone; what else it sets stays.
    pub settings: Keys,
    /// Whether HEAD has another version than what is there now, which a commit of everything would revert.
    pub is_other_in_head: bool,
    /// Why it, or something below it, could not be put back, if so.
    pub failed: Option<String>,
}

/// Names of settings, as many as are reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    /// Some.
    pub names: Vec<Vec<u8>>,
    /// How many more there are.
    pub more: usize,
}

impl Keys {
    /// Limits on the bytes and the number of names after the first: a command chooses both.
    const MAX_KEYS: (usize, usize) = (8 * 1024, 32);

    /// Adds a name, once.
    pub(super) fn add(&mut self, name: Vec<u8>) {
        if self.names.contains(&name) {
            return;
        }
        let (bytes, names) = Self::MAX_KEYS;
        let bytes_listed: usize = self.names.iter().map(Vec::len).sum();
        if bytes_listed == 0 || (self.names.len() < names && bytes_listed + name.len() <= bytes) {
            self.names.push(name);
        } else {
            self.more += 1;
        }
    }
}

/// What a command did to a protected name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It was changed.
    Changed,
    /// It was created.
    Created,
    /// It was there before and was none of git's. Git would run it as a hook of a work tree that the command made.
    Adopted,
    /// It was deleted, or moved with a directory above it.
    Removed,
    /// It was removed and cannot be created again, as a socket.
    Lost,
    /// It got another hard link, through which another command could have written to it. It is a file of its own again.
    Linked,
    /// A directory above protected names was closed to its owner.
    Closed,
    /// Its mode, group or access lists changed; the content may stay.
    Access,
}

impl Effect {
    /// The word for people and manifests.
    pub fn label(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Created => "created",
            Self::Adopted => "adopted",
            Self::Removed => "removed",
            Self::Lost => "gone",
            Self::Linked => "linked",
            Self::Closed => "shut",
            Self::Access => "access",
        }
    }
}
