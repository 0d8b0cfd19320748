//! Profile → the mounts and namespaces of the `namespaces` regime, and the reader of what that plan is as bytes.
//!
//! The story, file by file: [`plan`] is the data, and its rendering as arguments of bwrap; `covers` says which
//! denies mounts can enforce, and where; `matches` what patterns name on the disk; `mounting` turns grants and held denies into steps, parents first;
//! `own` knows the mounts that the regime brings along (/proc, /dev, /tmp); [`lower()`] joins them with the
//! Landlock layer for inside, and `statuses` says what becomes of each clause. [`reader`] interprets the rendered bytes, never the typed plan, and
//! [`validate()`] holds what bytes and layer permit together against the profile; `mounts_only` does so for the
//! bytes by themselves; `new_names` is what a config leaves open; `attributes` says whether mounts alone keep attributes from changing outside.
//!
//! **One plan, two that carry it out.** Stockade itself does (`confine/namespaces`), or bwrap, which takes
//! the bytes. One step of the plan is one option of bwrap, so what is read of the bytes holds for both.
//!
//! **Two walls.** A mount tells "nothing", "read" and "change" apart; Landlock inside tells reading, listing
//! and executing apart. What neither can say is refused, or decomposed by the layer, as in the `landlock`
//! regime.
//!
//! **Nothing is made on the host.** The new root is a tmpfs. A mount point is made only on a tmpfs of
//! the plan; a destination below a bind exists there already, as the survey has seen. (bwrap 0.8 to 0.11
//! follow a link at a missing destination out of the new root, CVE-2026-87766.)
//!
//! **Denies are resolved before each command.** A name that does not exist when the command starts cannot
//! come to be where the command may not write; where it may, nothing could keep it from being made
//! without leaving something on the host, so such a deny is refused or decomposed. Of a pattern the config may admit it
//! (`deny_fallback: cover_existing`): [`Matches`] tells then what is new after a command.

mod attributes;
mod copies;
mod covers;
pub mod lower;
mod matches;
mod mount_reach;
mod mounting;
mod mounts_only;
mod new_names;
pub mod own;
pub mod plan;
pub mod reader;
mod root_tmpfs;
mod statuses;
#[cfg(test)]
mod tests;
mod validate;
mod visibility;

pub use attributes::attributes_within;
pub use copies::PrivateCopy;
pub use lower::{Lowered, OLDEST_ABI, Options, lower, survey, survey_after};
pub use matches::{Matches, NewNames};
pub use mounts_only::mounts_within;
pub use own::{OwnFileSystem, OwnRule};
pub use plan::{BindAccess, MOST_PROTECTED, MountPlan, NetworkNamespace, Step};
pub use validate::{LayeredPlan, LayeredReach, validate};
