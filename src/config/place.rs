//! Where a path that a person asks about leads.

use std::io;
use std::path::Path;

use super::paths::{self, PathError};
use crate::policy::AbsPath;

/// The path with every link resolved, as far as anything is there; what is missing may be missing.
///
/// Behind a directory that this user cannot look into, the path is taken as it stands: no command of
/// this user gets there either.
pub fn leads_to(path: &Path) -> io::Result<AbsPath> {
    match paths::walk(path) {
        Ok(walked) => Ok(walked.path),
        Err(PathError::Look { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            AbsPath::new(path).map_err(io::Error::other)
        }
        Err(error) => Err(io::Error::other(error)),
    }
}
