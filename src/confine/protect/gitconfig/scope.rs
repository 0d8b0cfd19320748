//! The configs of git, and which settings each of them has.

use super::keys::{self, Change, KnownSetting};
use super::text::Header;

/// Which of a repository's configs it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The one.
    Repository,
    /// `config.worktree`, which has the last word: it may not say where a remote is.
    WorkTree,
    /// `.gitmodules`, which is tracked: it says what submodules there are, and a person who asks for one sees from where.
    Modules,
}

impl Scope {
    /// That of the file with this name.
    pub(crate) fn of(name: &[u8]) -> Self {
        if name == b"config.worktree" {
            Self::WorkTree
        } else {
            Self::Repository
        }
    }

    /// What the list says of a setting.
    pub(crate) fn known(self, header: &Header, key: &[u8]) -> Option<KnownSetting> {
        match self {
            Self::Modules => keys::known_of_modules(&header.section, header.subsection.as_deref(), key),
            Self::Repository | Self::WorkTree => keys::known(&header.section, header.subsection.as_deref(), key),
        }
    }

    /// Whether a setting of the list is one of this config.
    pub(crate) fn takes(self, header: &Header, known: KnownSetting) -> bool {
        let leads = matches!(header.section.as_slice(), b"branch" | b"remote" | b"submodule");
        match self {
            Self::Repository | Self::Modules => true,
            Self::WorkTree => !leads && matches!(known.change, Change::Free | Change::Stays),
        }
    }
}
