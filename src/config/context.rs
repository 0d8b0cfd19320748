//! What a config is resolved against: the user's home, the environment, the presets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::presets::Preset;
use crate::policy::AbsPath;

/// The ceiling of the whole machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemCeiling {
    /// Its path; there may be no file.
    pub path: PathBuf,
    /// The only user, beside root, who may have written it.
    pub owner: u32,
}

/// Everything outside a config that its meaning depends on: the user, the environment, the ceilings.
#[derive(Debug, Clone)]
pub struct Context {
    /// The home directory of this user in the passwd database (getpwuid(3)); `None` where the user has no entry. It is
    /// never taken from `HOME`, because whoever sets the environment must not choose the place of the trust store.
    pub home: Option<AbsPath>,
    /// The path of the passwd database (passwd(5)), for the homes of other users.
    pub passwd: PathBuf,
    /// The directory Stockade was started in, without links: `$CWD` in a config. No variable names it.
    pub start: Option<AbsPath>,
    /// The environment. Presets expand variables of it, and `HOME` is refused as a workspace.
    pub variables: BTreeMap<OsString, OsString>,
    /// The ceiling of the whole machine: `/etc/stockade/ceiling.yaml`. It need not exist.
    pub system_ceiling: SystemCeiling,
    /// Further ceilings, as `--ceiling` names them. These must exist.
    pub ceilings: Vec<PathBuf>,
    /// The presets, by name.
    pub(crate) presets: fn(&str) -> Option<Preset>,
}

impl Context {
    /// The context of this process: its user, its environment and the ceiling of this machine.
    pub fn host() -> Self {
        // A uid without a passwd entry has no home: paths that need one are refused or skipped.
        let user = nix::unistd::User::from_uid(nix::unistd::Uid::effective())
            .ok()
            .flatten();
        Self {
            home: user.and_then(|user| AbsPath::new(user.dir).ok()),
            passwd: PathBuf::from("/etc/passwd"),
            start: std::env::current_dir().ok().and_then(|start| AbsPath::new(start).ok()),
            variables: std::env::vars_os().collect(),
            system_ceiling: SystemCeiling {
                path: PathBuf::from("/etc/stockade/ceiling.yaml"),
                owner: 0,
            },
            ceilings: Vec::new(),
            presets: super::presets::preset,
        }
    }

    /// The same context for what is started in `directory`.
    pub(crate) fn started_in(&self, directory: &AbsPath) -> Self {
        Self {
            start: Some(directory.clone()),
            ..self.clone()
        }
    }

    /// The user's home directories: that of the passwd entry, and the variable's.
    pub(crate) fn own_homes(&self) -> Vec<AbsPath> {
        let mut homes: Vec<AbsPath> = self.home.iter().cloned().chain(self.path_variable("HOME")).collect();
        homes.sort();
        homes.dedup();
        homes
    }

    /// An absolute path in a variable of the environment.
    pub(crate) fn path_variable(&self, name: &str) -> Option<AbsPath> {
        self.variables
            .get(OsStr::new(name))
            .and_then(|value| AbsPath::new(value).ok())
    }
}
