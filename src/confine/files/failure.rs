//! The system's errors in the words of the protocol.

use std::ffi::OsStr;
use std::io;

use nix::errno::Errno;

use super::protocol::{Failure, Why};

/// What an operation on a path comes to.
pub(super) type Answer<T> = Result<T, Failure>;

impl From<Errno> for Why {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::EACCES | Errno::EPERM | Errno::EROFS => Self::NotPermitted,
            Errno::ENOENT => Self::Missing,
            // Paths that are opened were without symlinks when they were looked at.
            Errno::ELOOP => Self::Changed,
            Errno::EEXIST => Self::Exists,
            Errno::ENOTEMPTY => Self::NotEmpty,
            Errno::EISDIR => Self::IsDirectory,
            Errno::ENOTDIR => Self::NotDirectory,
            Errno::EXDEV => Self::OtherFileSystem,
            other => Self::System(other as i32),
        }
    }
}

impl From<io::Error> for Why {
    fn from(error: io::Error) -> Self {
        Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)).into()
    }
}

/// Says which path an error is about.
pub(super) trait About<T> {
    /// The result, with the path.
    fn about(self, path: impl AsRef<OsStr>) -> Answer<T>;
}

impl<T, E: Into<Why>> About<T> for Result<T, E> {
    fn about(self, path: impl AsRef<OsStr>) -> Answer<T> {
        self.map_err(|error| failure(path, error.into()))
    }
}

/// A failure about `path`.
pub(super) fn failure(path: impl AsRef<OsStr>, why: Why) -> Failure {
    Failure {
        path: path.as_ref().to_owned(),
        why,
    }
}
