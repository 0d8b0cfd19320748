//! Protected names in the messages between parent and supervisor.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

use crate::confine::protect::{Names, Person};

/// What the supervisor needs to watch protected names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectSetup {
    /// The writable roots.
    pub roots: Vec<OsString>,
    /// Protected files by path.
    pub extra: Vec<OsString>,
    /// What the config makes of the list of names.
    pub names: Names,
    /// What mounts are to cover.
    pub cover: CoverScope,
    /// The directory, outside every root, that holds journal, quarantine and copies.
    pub store: OsString,
    /// The program of this session, which may lie in a root.
    pub program: Option<OsString>,
    /// Whose git may run or obey what lies in the roots.
    pub person: Person,
}

/// Which protected names mounts cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CoverScope {
    /// Those that programs of the host run or obey while a command is running, by copies.
    RunAtOnce,
    /// All, by making them read-only.
    Everything,
}

/// A protected name that mounts are to cover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    /// The protected path.
    pub path: OsString,
    /// The copy that is shown in its place; without one it is read-only.
    pub copy: Option<OsString>,
}

/// A protected name that a command changed, and what was done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The protected path.
    pub path: OsString,
    /// What the command did to it.
    pub what: String,
    /// Where what the command left there is kept.
    pub quarantined: Option<OsString>,
    /// The settings of a git config that were undone; what else it sets stays.
    pub settings: Vec<Vec<u8>>,
    /// How many more there are.
    pub more_settings: u64,
    /// Whether HEAD has another version than what is there now.
    pub is_other_in_head: bool,
    /// Why it could not be put back, if it could not.
    pub failed: Option<String>,
}
