//! Why protected names could not be recorded or put back.

use std::io;
use std::path::{Path, PathBuf};

use crate::policy::path::display;

/// Why protected names could not be written down or put back.
#[derive(Debug, thiserror::Error)]
pub enum ProtectError {
    /// A step on one file failed.
    #[error("failed to {step} {}: {source}", display(.path))]
    Io {
        /// The step, as a verb.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A protected file cannot be read.
    #[error(
        "failed to read {}: {source}. It has a protected name and could not be put back; let yourself read it (root may be kept \
         from it, too, on a network file system), remove it, or take roots that it does not lie in",
        display(.path)
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// What a command left could not be moved anywhere.
    #[error(
        "{} could not be moved away ({source}): it is still there, and programs of yours may run or obey it; look at it, and remove it",
        display(.path)
    )]
    Active {
        /// What it is.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// What a command wrote into the copy of a covered file could not be moved to quarantine.
    #[error(
        "what a command made of {} could not be kept in quarantine ({source}); it stays in {}: look at it, and remove it",
        display(.path), display(.place)
    )]
    NotKept {
        /// The file that was covered.
        path: PathBuf,
        /// Where it stays.
        place: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A protected file is too large to be restored.
    #[error("{} has a protected name and {length} bytes; at most {limit} can be kept to restore it", display(.path))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        length: u64,
        /// The limit it exceeds: of one file, or what the others left of all.
        limit: u64,
    },
    /// A directory cannot be listed, and a command could reach what lies in it.
    #[error(
        "{} cannot be listed, so what has a protected name in it could not be put back; make it readable, close it for you (`chmod \
         o-x` by its owner), or take roots that it does not lie in",
        display(.0)
    )]
    Unlisted(PathBuf),
    /// A directory that its owner cannot enter, with something in it to be covered.
    #[error(
        "{} is closed to you, so what has a protected name in it cannot be covered while a command runs; open it (`chmod u+rwx \
         {}`), remove it, or take roots that it does not lie in",
        display(.0), display(.0)
    )]
    Closed(PathBuf),
    /// A directory lies too deep to be looked into.
    #[error("{} lies too deep below a writable root for the names in it to be protected; move it or remove it", display(.0))]
    TooDeep(PathBuf),
    /// A file that may make git read or run something in a root.
    #[error(
        "{} {}, and git may be led by it to what it runs in a writable root; move it, make it readable, or take a root \
         that it has nothing to do with",
        display(.0), .1
    )]
    Unclear(PathBuf, &'static str),
    /// A path of a setting that leaves a directory of a root by `..`.
    #[error(
        "{} leads git through {} and out of it again by `..`, and commands may put a link in its place; write the path without `..`",
        display(.written), display(.left)
    )]
    Detour {
        /// What is written, or holds what is written.
        written: PathBuf,
        /// The directory.
        left: PathBuf,
    },
    /// A variable that names settings of git by a relative path.
    #[error(
        "HOME, XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL or GIT_CONFIG_SYSTEM leads git to {}, a relative path, so git obeys what a command puts there \
         in any directory; set the variable to an absolute path, or unset it",
        display(.0)
    )]
    Relative(PathBuf),
    /// More hooks and settings than can be protected.
    #[error(
        "`.git` files and settings lead git to more than 10,000 places in the writable roots ({} is one); remove the `.git` files that \
         are not yours",
        display(.0)
    )]
    TooManyTargets(PathBuf),
    /// More directories than can be watched.
    #[error("the writable roots hold too many directories to protect names in them")]
    TooMany,
    /// More in quarantine than it may hold.
    #[error(
        "the quarantine {} is full: {entries} entries with {bytes} bytes, and it may hold {most_entries} and {most_bytes}. \
         Nothing is ever dropped from it: look at what is there and remove what you do not need, then start again",
        display(.path)
    )]
    Full {
        /// Where it is.
        path: PathBuf,
        /// What it holds.
        entries: u64,
        /// Bytes of that.
        bytes: u64,
        /// What it may hold.
        most_entries: u64,
        /// Bytes of that.
        most_bytes: u64,
    },
    /// A journal that is not one.
    #[error(
        "{} cannot be read as a journal of protected names; look at it, then remove it (git hooks and the like may be changed \
         where a command was running when it was written)",
        display(.0)
    )]
    Journal(PathBuf),
    /// The tree would not come to rest.
    #[error("{} could not be restored: it changes as fast as it is put back", display(.0))]
    Restless(PathBuf),
}

impl ProtectError {
    /// What makes the error of a failed step from its cause.
    pub(super) fn failed(step: &'static str, path: impl AsRef<Path>) -> impl Fn(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io {
            step,
            path: path.clone(),
            source,
        }
    }

    pub(super) fn io(step: &'static str, path: PathBuf, error: nix::errno::Errno) -> Self {
        Self::Io {
            step,
            path,
            source: error.into(),
        }
    }
}
