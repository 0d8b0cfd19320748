//! Where git reads its user's settings.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::config::Context;
use crate::policy::AbsPath;

const SYSTEM: &str = "/etc/gitconfig";

/// The files with settings of all repositories of a user, as git finds them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitFiles {
    /// What `~` stands for in them.
    pub(super) home: Option<PathBuf>,
    pub(super) system: Option<PathBuf>,
    /// The user's own, in the order in which they are read.
    pub(super) own: Vec<PathBuf>,
    /// Where the lists of ignored files and of attributes lie that no setting names.
    pub(super) folder: Option<PathBuf>,
}

impl GitFiles {
    /// Where they are for the user of this context.
    pub fn of_user(context: &Context) -> Self {
        let home = context.path_variable("HOME").or_else(|| context.home.clone());
        let home = home.as_ref().map(AbsPath::as_path);
        let folder = match context.path_variable("XDG_CONFIG_HOME") {
            Some(folder) => Some(folder.as_path().join("git")),
            None => home.map(|home| home.join(".config/git")),
        };
        let is_set = |name: &str| context.variables.contains_key(OsStr::new(name));
        // One that is no absolute path leads to where a command may have written it.
        let named = |name: &str| context.path_variable(name).map(|path| path.as_path().to_owned());
        let own = if is_set("GIT_CONFIG_GLOBAL") {
            named("GIT_CONFIG_GLOBAL").into_iter().collect()
        } else {
            let last = home.map(|home| home.join(".gitconfig"));
            folder.iter().map(|folder| folder.join("config")).chain(last).collect()
        };
        let says_none = context
            .variables
            .get(OsStr::new("GIT_CONFIG_NOSYSTEM"))
            .is_some_and(|value| {
                !["", "0", "false", "no", "off"]
                    .iter()
                    .any(|no| value.eq_ignore_ascii_case(no))
            });
        let system = match (says_none, is_set("GIT_CONFIG_SYSTEM")) {
            (true, _) => None,
            (false, true) => named("GIT_CONFIG_SYSTEM"),
            (false, false) => Some(PathBuf::from(SYSTEM)),
        };
        Self {
            home: home.map(Path::to_owned),
            system,
            own,
            folder,
        }
    }
}
