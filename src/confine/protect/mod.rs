//! Protected names: before a command they are written down, after it they are put back (`undone`).
//!
//! The story, file by file: `names` and `place` say what is protected; `walk` finds it below the writable
//! `roots`, as a `sight` with change `stamp`s, reading again what is not `unchanged`; `state` reads it;
//! `snapshot` writes it to the `journal`, outside every root, before the command may start; `settle` walks
//! again when the command's tree is dead, has its `work` done by `compare`, which lets `restore` put back what was there,
//! and by `intruders`, which has `inspect` judge what is new and moves it to the `quarantine`. Of a git config, new or
//! changed, `gitconfig` says what may stay: `gittext` reads it, `gitkeys` is the list, `gitscope` what of it each
//! config has, `gitlist` tells others of it; of everything else in a directory of version control, `vcs`; of work trees that go or move, `worktrees`. What both walks saw is `known` to the next. After a
//! crash [`recover()`] does the same from the journal. `targets` adds the files that git is led to by its
//! `settings`, in a repository of a root, around one (`repository`) or a person's own, where the kernel would
//! come to on the way (`leads`). `others` keeps sessions that run at the same time from taking each other's
//! intruders for what was there. A `change` that was undone may be put back when a person wants it: `diff` is
//! what they are shown, `offer` does it. [`present()`] finds what is there for mounts to cover, `stand_ins` makes what is not; `watch` tells of what
//! they cannot cover. `at` and `evict` reach files without ever following a link.
//!
//! What passes without a violation: what version control writes as data in its own directories
//! (so commits, checkouts, fetches and gc do); what `inspect` recognises as git's own making; settings
//! that `gitkeys` knows as harmless; a tracked file that is as a commit of the host's has it (`tracked`);
//! the removal of a protected entry together with the
//! directory that held it, because nothing is then left for the host to trust; and a further work tree or submodule that
//! git moves or empties. Everything else is undone:
//! each file, and of a git config each setting, by itself, never a repository for one of them;
//! also the renaming of a directory above a protected entry, which a read-only bind would have refused. A file that
//! was given another name (a hard link) is written anew, as what it holds: the other name then leads elsewhere.
//!
//! Bounds: a protected file has at most `MAX_FILE` bytes and all together `MAX_TOTAL`; above that the
//! snapshot fails and the command may not start. Group and access lists are put back, and what is new lets others do no more than the umask permits (`access`); owner and other extended attributes are not kept.
//! What a protected symlink points to in a root is protected too (`links`), and what a file of a tool names to be run (`named`);
//! `search` looks until nothing new is found. Directories that a command `shut` are opened again: mounts cover what is in them. Names are `patterns`, compared without regard to ASCII case. The `program` of the
//! session itself is put back from a copy where it lies in a root.

mod access;
mod appeared;
mod at;
mod change;
mod compare;
mod copied;
mod covers;
mod diff;
mod evict;
mod gitconfig;
mod gitkeys;
mod gitlist;
mod gitscope;
mod gittext;
mod growth;
mod held;
mod inspect;
mod intruders;
mod journal;
mod known;
mod leads;
mod links;
mod listing;
mod lookup;
mod missing;
mod named;
mod names;
mod offer;
mod others;
mod overlap;
mod patterns;
mod place;
mod present;
mod program;
mod quarantine;
mod recover;
mod repository;
mod restore;
mod room;
mod roots;
mod said;
mod search;
mod settings;
mod settle;
mod shut;
mod sight;
mod snapshot;
mod stamp;
mod stand_ins;
mod state;
mod targets;
#[cfg(test)]
mod tests;
mod touched;
mod tracked;
mod unchanged;
mod vcs;
mod walk;
mod watch;
mod ways;
mod work;
mod worktrees;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

pub use appeared::Appeared;
pub use change::Changes;
pub use covers::Covers;
pub use gitlist::{GitSetting, git_settings, written};
pub use growth::Growth;
pub use lookup::{default_names, protected_by, protected_name};
pub use names::Names;
pub use offer::{Diff, Digest, NotPutBack, Offer};
pub use present::present;
pub use recover::{Recovered, Unrecovered, Waiting, recover, waiting};
pub use repository::{Person, Repository, is_git_directory, read, repository, there};
pub(crate) use shut::shut;
pub use snapshot::{After, Guard, Known};
pub use watch::Watch;
pub use work::Settled;

use crate::policy::path::display;

/// Longest protected file that can be restored, in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Bytes of protected files in all.
const MAX_TOTAL: u64 = 64 * 1024 * 1024;

/// A protected name that a command changed, and that has been put back where that could be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The protected entry, or the moved directory that held some.
    pub path: PathBuf,
    /// What the command did to it.
    pub what: What,
    /// Where the intruder is kept, if there was one.
    pub quarantined: Option<PathBuf>,
    /// The settings of a git config that were undone; what else it sets stays.
    pub named: Named,
    /// Whether HEAD has another version than what is there now, which a commit of everything would revert.
    pub is_other_in_head: bool,
    /// Why it, or something below it, could not be put back, if so.
    pub failed: Option<String>,
}

/// Settings as git names them, as many as are told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// Some.
    pub settings: Vec<Vec<u8>>,
    /// How many more there are.
    pub more: usize,
}

impl Named {
    /// How many bytes of names are told behind the first, and how many names: a command chooses both.
    const MOST: (usize, usize) = (8 * 1024, 32);

    /// Adds a name, once.
    fn add(&mut self, name: Vec<u8>) {
        if self.settings.contains(&name) {
            return;
        }
        let (bytes, names) = Self::MOST;
        let told: usize = self.settings.iter().map(Vec::len).sum();
        if told == 0 || (self.settings.len() < names && told + name.len() <= bytes) {
            self.settings.push(name);
        } else {
            self.more += 1;
        }
    }
}

/// What a command did to a protected name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// It was there and became something else.
    Changed,
    /// It was not there.
    Created,
    /// It was there and went: deleted, or moved with a directory that held it.
    Removed,
    /// It was there and went, and is of a kind that only who made it can make again.
    Gone,
    /// It was given another name, through which another command could have written to it. It is a file of its own again.
    Linked,
    /// A directory on the way to protected names, whose owner it let in no longer.
    Shut,
    /// It holds what it may hold, and its mode, group or access lists said something else of who may use it.
    Access,
}

impl What {
    /// The word for people and manifests.
    pub fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Created => "created",
            Self::Removed => "removed",
            Self::Gone => "gone",
            Self::Linked => "linked",
            Self::Shut => "shut",
            Self::Access => "access",
        }
    }
}

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
    /// A directory that lets its owner not in, with something in it that is to be covered.
    #[error(
        "{} is closed to you, so what has a protected name in it cannot be covered while a command runs; open it (`chmod u+rwx \
         {}`), remove it, or take roots that it does not lie in",
        display(.0), display(.0)
    )]
    Shut(PathBuf),
    /// A directory lies too deep to be looked into.
    #[error("{} lies too deep below a writable root for the names in it to be protected; move it or remove it", display(.0))]
    TooDeep(PathBuf),
    /// What may lead git to something in a root, and cannot be known not to.
    #[error(
        "{} {}, and git may be led by it to what it runs in a writable root; move it, make it readable, or take a root \
         that it has nothing to do with",
        display(.0), .1
    )]
    Unclear(PathBuf, &'static str),
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
    /// Whether a disk or a quota is full.
    fn is_for_want_of_room(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Self::TooLarge { .. }
            | Self::TooDeep(_)
            | Self::Unlisted(_)
            | Self::Shut(_)
            | Self::Unclear(..)
            | Self::TooMany
            | Self::Full { .. }
            | Self::Journal(_)
            | Self::Restless(_) => false,
        }
    }

    fn io(step: &'static str, path: PathBuf, error: nix::errno::Errno) -> Self {
        Self::Io {
            step,
            path,
            source: error.into(),
        }
    }
}

/// The absolute path of an entry of a root.
fn shown(root: &roots::Root, path: &[u8]) -> PathBuf {
    if path.is_empty() {
        root.path.clone()
    } else {
        root.path.join(OsStr::from_bytes(path))
    }
}

/// A name that sorts by time and is this process's own.
fn stamp() -> String {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!(
        "{:012}{:09}-{}",
        since.as_secs(),
        since.subsec_nanos(),
        std::process::id()
    )
}
