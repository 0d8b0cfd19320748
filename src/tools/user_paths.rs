//! Where a user's things are that a session works with.

use std::path::PathBuf;

use super::environment::Caches;
use super::git::{self, GitFiles};
use crate::config::{Context, trust};
use crate::confine::protect::Person;

/// Where the journal and the quarantine of protected names lie, and the user's settings.
#[derive(Debug, Clone)]
pub struct UserPaths {
    /// `~/.local/state/stockade`.
    pub state: PathBuf,
    /// Where git reads the user's settings.
    pub git: GitFiles,
    /// The user as git knows them.
    pub person: Person,
    /// Where the user's tools keep what they downloaded.
    pub caches: Caches,
}

impl UserPaths {
    /// Where they are for the user of this context; `None` without a home in the passwd database.
    pub fn of_user(context: &Context) -> Option<Self> {
        Some(Self {
            state: trust::state_dir(context)?.as_path().to_owned(),
            git: GitFiles::of_user(context),
            person: git::person(context),
            caches: Caches::of_user(context),
        })
    }
}
