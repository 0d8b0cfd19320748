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

mod ask;
mod consent;
mod git;
mod hold;
mod need;
mod proposal;
mod propose;
mod risk;
mod secrets;
mod through;
mod wish;

#[cfg(test)]
mod tests;

pub use ask::{Answer, ConfigQuestion, questions};
pub use consent::{Consent, Include, IncludeError, flag};
pub use hold::{Strayed, hold};
pub use proposal::{AcceptedBy, Proposal, Standing};
pub use propose::{Proposals, Trial, outermost, propose};
pub use risk::{Judged, Risk, Surroundings};
