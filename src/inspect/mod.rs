//! What a policy permits, for an auditor: no command runs, and nothing is created.
//!
//! An [`Inspection`] has two profiles: that of an approved command, and that of one without a question. [`show`] lists
//! them with the line of each grant, [`explain`] names the clause that decides about a path, [`host`] that about a host
//! (from all `sources`), [`check`] verifies the arrows of the promise, [`document`] writes and reads both profiles, [`diff`]
//! compares two, [`export`] converts one for other programs. [`backend`] probes the backends of this machine, and `cautions` says what
//! of a policy may surprise.

pub mod answers;
pub mod backend;
pub(crate) mod cautions;
pub mod check;
mod clauses;
pub mod diff;
pub mod document;
pub mod explain;
pub mod export;
pub mod host;
pub mod hosts;
mod inspection;
mod selftest;
pub mod show;
mod sources;

pub use crate::backend::Regime;
pub use inspection::Inspection;
