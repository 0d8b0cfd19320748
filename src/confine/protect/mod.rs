//! Protected names: before a command they are written down, after it they are put back (`undone`).
//!
//! The story, file by file: `names` and `place` say what is protected; `walk` finds it below the writable
//! `roots`, as a `inventory` with change `stamp`s, reading again what is not `unchanged`; `state` reads it;
//! `snapshot` writes it to the `journal`, outside every root, before the command may start; `settle` walks
//! again when the command's tree is dead, has its `work` done by `compare`, which lets `restore` put back what was there,
//! and by `intruders`, which has `inspect` judge what is new and moves it to the `quarantine`. Of a git config, new or
//! changed, `gitconfig` says what may stay: `gittext` reads it, `gitkeys` is the list, `gitscope` what of it each
//! config has, `gitlist` tells others of it; of everything else in a directory of version control, `vcs`; of work trees that go or move, `worktrees`; of `hooks` in such that are new,
//! `new_work_trees`. What both walks saw is `known` to the next. After a
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
mod change;
mod class;
mod closed;
mod compare;
mod cover_changes;
mod covers;
mod diff;
mod error;
mod git_paths;
mod gitconfig;
mod gitkeys;
mod gitlist;
mod gitscope;
mod gittext;
mod growth;
mod guard;
mod hooks;
mod inspect;
mod inventory;
mod inventory_cache;
mod journal;
mod links;
mod listing;
mod lookup;
mod markers;
mod missing;
mod names;
mod new_entries;
mod new_work_trees;
mod nofollow;
mod offer;
mod other_sessions;
mod overlap;
mod patterns;
mod placeholders;
mod present;
mod program;
mod quarantine;
mod quota;
mod record;
mod recover;
mod references;
mod reported;
mod repository;
mod resolve;
mod restore;
mod roots;
mod search;
mod settings;
mod settle;
mod settlement;
mod stamp;
mod state;
mod store;
mod subtree;
mod targets;
#[cfg(test)]
mod tests;
mod touched;
mod tracked;
mod unchanged;
mod vcs;
mod violation;
mod walk;
mod watch;
mod watched_paths;
mod worktrees;

pub use appeared::Appeared;
pub use change::Changes;
pub(crate) use closed::closed_directory;
pub use covers::Covers;
pub use error::ProtectError;
pub use gitlist::{GitSetting, git_settings, written};
pub use growth::Growth;
pub use guard::{Guard, SettledGuard};
pub use inventory_cache::CachedInventory;
pub use lookup::{default_names, protected_by, protected_name};
pub use markers::{is_git_directory, metadata_if_present};
pub use names::Names;
pub use offer::{ApplyError, Diff, Digest, Offer};
pub(crate) use placeholders::create_placeholders;
pub use present::present;
pub use recover::{Recovered, Unrecovered, Waiting, recover, waiting};
pub use repository::{Person, Repository, read, repository};
pub use settlement::Outcome;
pub use violation::{SettingNames, Violation, ViolationKind};
pub use watch::Watch;
