//! What a policy comes to, for an auditor: nothing runs, and nothing is made.
//!
//! An [`Inspection`] holds the two profiles that matter: what a command gets that was approved, and what one
//! gets that nobody was asked about. [`show`] lays them out with the line that grants each thing, [`explain`]
//! tells which clause decides about one path and [`host`] about one host, where several have a say (`sources`),
//! [`check`] holds the arrows of the promise, [`document`] writes all of it down and reads it back, [`diff`]
//! compares two, [`export`] says it in the words of other programs. [`backend`] asks this machine which backends it has,
//! and what each makes of a profile.

pub mod backend;
pub mod check;
mod clauses;
pub mod diff;
pub mod document;
pub mod explain;
pub mod export;
pub mod host;
pub mod hosts;
mod inspection;
mod missing_roots;
mod selftest;
pub mod show;
mod sources;

pub use crate::tools::checked_plan::Backend;
pub use inspection::Inspection;
