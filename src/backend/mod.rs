//! Profile → plan: the exact rules for the kernel as data, and a reader of that data.
//!
//! Lowering is pure: it takes a profile, what the [`host`] can do and a [`survey`] of the
//! directories that must be ruled entry by entry, and gives plan data. Each backend file has the
//! same two halves: `lower`, and a reader that answers from the plan alone what it permits. At every
//! start the reader's view is checked against the profile; a plan that permits more is not applied.

pub mod attributes;

mod clauses;
pub mod host;
pub mod landlock;
pub mod namespaces;
mod plan;
pub(crate) mod protected;
mod regime;
pub mod seatbelt;
pub mod seccomp;
pub mod status;
pub mod survey;

pub use clauses::obstacles::in_the_way;
pub use plan::{MadeBy, NamespacePlan, NetworkExit, Plan};
pub use regime::Regime;
