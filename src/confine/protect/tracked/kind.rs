//! What an object of git is.

/// Longest object, in bytes.
pub(super) const LONGEST: u64 = 16 * 1024 * 1024;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }

    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        let all = [Self::Commit, Self::Tree, Self::Blob, Self::Tag];
        all.into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}
