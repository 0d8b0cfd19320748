//! Which entries of a tree count.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use super::protocol::Why;

/// The longest glob that is compiled.
const MAX_GLOB: usize = 4096;

/// A glob, and what of a path it is held against.
#[derive(Debug)]
pub(super) enum Pattern {
    /// There is none: all match.
    All,
    /// The last name.
    Name(GlobMatcher),
    /// The path below the directory where it began.
    Below(GlobMatcher),
}

impl Pattern {
    /// Reads a glob.
    pub(super) fn read(glob: Option<&str>) -> Result<Self, Why> {
        let Some(glob) = glob else { return Ok(Self::All) };
        if glob.len() > MAX_GLOB {
            return Err(Why::Malformed(format!("a glob of more than {MAX_GLOB} bytes")));
        }
        let below = glob.strip_prefix("./").or_else(|| glob.strip_prefix('/'));
        let compiled = GlobBuilder::new(below.unwrap_or(glob))
            .literal_separator(true)
            .build()
            .map_err(|error| Why::Malformed(error.to_string()))?
            .compile_matcher();
        Ok(if glob.contains('/') {
            Self::Below(compiled)
        } else {
            Self::Name(compiled)
        })
    }

    /// Whether a path below `start` matches.
    pub(super) fn matches(&self, start: &Path, path: &Path) -> bool {
        match self {
            Self::All => true,
            Self::Name(glob) => path.file_name().is_some_and(|name| glob.is_match(name)),
            Self::Below(glob) => path.strip_prefix(start).is_ok_and(|below| glob.is_match(below)),
        }
    }
}

/// Whether a name is hidden.
pub(super) fn is_hidden(name: &std::ffi::OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}
