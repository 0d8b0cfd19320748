//! What a call removes, as a person is shown it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::json_bytes;

/// A file or directory that a call removes.
///
/// Part of a [`Presentation`](crate::Presentation). Stockade makes it for deletions; an [`Approver`](crate::Approver) reads it.
///
/// ```
/// use stockade::{Presentation, RemovalView, Removed};
///
/// /// Whether a call removes at most an empty file.
/// fn is_harmless(shown: &Presentation) -> bool {
///     matches!(shown, Presentation::Removal(RemovalView { size: 0, what: Removed::Text { .. }, .. }))
/// }
/// # assert!(!is_harmless(&Presentation::Text(String::new())));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovalView {
    /// The absolute path.
    #[serde(with = "json_bytes::path")]
    pub path: PathBuf,
    /// Bytes; of a directory, of all files in it.
    pub size: u64,
    /// What is there.
    pub what: Removed,
}

/// What a call removes.
///
/// Part of a [`RemovalView`]; the example there matches one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Removed {
    /// A file of text.
    Text {
        /// Its first lines.
        begins: String,
        /// How many lines it has.
        lines: u64,
    },
    /// A file that is no text, or that cannot be looked into; in a few words.
    Binary(String),
    /// A symlink, and where it points. What is there stays.
    Symlink(#[serde(with = "json_bytes::path")] PathBuf),
    /// A directory with everything in it.
    Tree {
        /// Directories in it, at any depth.
        directories: u64,
        /// Everything else in it.
        files: u64,
        /// Whether that is all of it; if not, there is more, and it is not compared with what is removed.
        complete: bool,
        /// The first paths in it, relative to it; a directory ends in `/`.
        #[serde(with = "json_bytes::paths")]
        entries: Vec<PathBuf>,
    },
}
