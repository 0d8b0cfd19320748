//! What was denied to a command → what a config would have to grant, by risk. Nothing is in force before somebody accepts it.
//!
//! `remedy` finds what would permit a denial, or why nothing is proposed: what a person forbade stays forbidden.
//! `propose` merges that into the fewest and smallest changes (`root_change`), and tries each. `risk` rates each by
//! what it would give away, after links (`secrets` knows names, `scan` looks into directories, `git` at what a
//! repository around it would run), because a command chooses what it attempts. [`Consent`] is what was accepted in
//! advance, `question` asks a person about the rest. [`verify()`] verifies the policy of the amended config before a
//! command runs under it.

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
