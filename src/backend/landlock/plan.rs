//! One Landlock layer, as data.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// What one Landlock rule ties rights to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Beneath {
    /// A directory and everything below it.
    Directory,
    /// Anything that is not a directory.
    File,
}

/// One `landlock_add_rule(LANDLOCK_RULE_PATH_BENEATH)`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rule {
    /// The path to open with `O_PATH | O_NOFOLLOW`; bytes, never text.
    pub path: OsString,
    /// `st_dev` the opened path must have.
    pub device: u64,
    /// `st_ino` the opened path must have.
    pub inode: u64,
    /// What the opened path must be.
    pub beneath: Beneath,
    /// `LANDLOCK_ACCESS_FS_*` bits.
    pub access: u64,
}

/// One Landlock layer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LandlockPlan {
    /// The ABI whose rights are all handled; the kernel must have at least this one.
    pub abi: u32,
    /// Whether TCP bind and connect are handled (with no rule: none is allowed).
    pub handle_tcp: bool,
    /// The rules, sorted by path.
    pub rules: Vec<Rule>,
}
