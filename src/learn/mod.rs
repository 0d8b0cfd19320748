//! What was denied to a command → what a config would have to grant, by risk; and nothing of it is in force
//! before somebody accepts it.
//!
//! `wish` says of each denial what would permit it, or why nothing is proposed: what a person forbade stays
//! forbidden. `propose` makes as few and as small changes of that as will do (`need`), and tries
//! each: a config that nothing here would hold helps nobody. `risk` judges each, after
//! links, by what it would give away (`secrets` knows names, `through` looks through directories, `swap` at
//! who could put something else there, `git` at what a repository around it would run), because a command
//! chooses what it attempts, and may attempt it only to have it proposed. [`Consent`] says what was accepted
//! beforehand, `ask` puts the rest to a person. [`hold()`] holds the policy of the amended config against the
//! old one and what was accepted, before a command runs under it.

mod consent;
mod git;
mod proposal;
mod propose;
mod question;
mod remedy;
mod risk;
mod root_change;
mod scan;
mod secrets;
mod verify;

#[cfg(test)]
mod tests;

pub use consent::{Consent, Include, IncludeError, flag};
pub use proposal::{AcceptedBy, Proposal, StillDenied};
pub use propose::{Proposals, Trial, outermost, propose};
pub use question::{Answer, ConfigQuestion, questions};
pub use risk::{Rating, Risk, Surroundings};
pub use verify::{Mismatch, verify};
