//! Protected names: recorded before a command, restored after it (`undone`).
//!
//! `guard` is the story. Before a command `tree` walks the writable `roots` and finds what `naming` protects; `referenced` adds the
//! files that git and other tools are made to read or run. Each entry goes into the `record`, which `storage` keeps as a journal
//! outside every root. While the command runs, `live` has covers for mounts and watches what no mount can hold. Afterwards
//! `settling` compares and restores: what is new goes to quarantine, `gitconfig` says which settings may stay, and `tracked` which
//! files may stay because a commit of the person has them. A person can ask for an undone `change` by an `offer`, shown as a
//! `diff`. After a crash [`recover()`] does the same from the journal. `entry` reaches files without ever following a link.
//!
//! What passes without a violation: what version control writes as data in its own directories, so that commits, checkouts,
//! fetches and gc work; what git itself creates (`settling::inspect`); harmless settings (`gitconfig::keys`); a tracked file that
//! equals that of a trusted commit; a protected entry that is removed together with its directory, because nothing is left
//! for the host to trust; and a further work tree or submodule that git moves or empties. Everything else is undone: each
//! file, and each setting of a config, by itself. So is the renaming of a directory above a protected entry. A file that
//! got another hard link is replaced by a copy of its own.
//!
//! Limits: a protected file has at most `MAX_FILE` bytes and all together `MAX_TOTAL`; above that the snapshot fails and the
//! command may not start. Group and access lists are restored, and what is new lets others do no more than the umask
//! permits (`entry::access`). Owner and other extended attributes are not recorded.

mod change;
mod diff;
mod entry;
mod error;
mod gitconfig;
mod guard;
mod live;
mod missing;
mod naming;
mod offer;
mod overlap;
mod program;
mod record;
mod recover;
mod referenced;
mod roots;
mod settling;
mod storage;
#[cfg(test)]
mod tests;
mod tracked;
mod tree;
mod violation;

pub use change::Changes;
pub use error::ProtectError;
pub use gitconfig::list::{GitSetting, git_settings, written};
pub use guard::{Guard, SettledGuard};
pub use live::covers::Covers;
pub(crate) use live::placeholders::create_placeholders;
pub use live::present::present;
pub use live::watch::Watch;
pub use naming::lookup::{default_names, protected_by, protected_name};
pub use naming::markers::{is_git_directory, metadata_if_present};
pub use naming::names::Names;
pub use offer::{ApplyError, Diff, Digest, Offer};
pub use recover::{Recovered, Unrecovered, Waiting, recover, waiting};
pub use referenced::repository::{Person, Repository, read, repository, without_line_end};
pub(crate) use settling::closed::closed_directory;
pub use settling::settlement::SettlementReport;
pub use storage::inventory_cache::CachedInventory;
pub(crate) use storage::quarantine::ASIDE;
pub use tree::appeared::Appeared;
pub use tree::growth::Growth;
pub use violation::{Effect, Keys, Violation};
