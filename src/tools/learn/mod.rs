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
mod propose;
mod risk;
mod secrets;
pub(in crate::tools) mod swap;
mod through;
mod wish;

#[cfg(test)]
mod tests;

pub use ask::{Answer, ConfigQuestion, questions};
pub use consent::{Consent, Include, IncludeError, flag};
pub use hold::{Strayed, hold};
pub use propose::{Proposals, Trial, outermost, propose};
pub use risk::{Judged, Risk, Surroundings};

use serde::Serialize;

use crate::config::amend::Change;
use crate::policy::{Policy, Right, Rights};

/// A change that would permit what was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The change.
    pub change: Change,
    /// The rights that it gives and the config does not. Where only now what can be written can be executed, that is both,
    /// whichever was there before.
    pub adds: Rights,
    /// How much it could give away, and why.
    pub judged: Judged,
    /// What was denied, in words.
    pub denied: Vec<String>,
}

impl Proposal {
    /// A change of this policy, judged.
    pub fn of(change: Change, denied: Vec<String>, around: &Surroundings, policy: &Policy) -> Self {
        let adds = match &change {
            Change::Root(root) => root.rights.without(wish::given(policy, &root.path, root.scope)),
            Change::Widen(root) => root.rights,
            Change::List(_) => Rights::READ,
            Change::Host(_) => Rights::NONE,
        };
        let after = match &change {
            Change::Root(root) => root.rights,
            Change::Widen(widened) => {
                let root = policy.roots.iter().find(|root| root.name == widened.name);
                root.map_or(Rights::NONE, |root| root.rights) | widened.rights
            }
            Change::List(_) | Change::Host(_) => Rights::NONE,
        };
        let both = Rights::WRITE | Rights::EXECUTE;
        let adds = if after.contains(both) && (adds.has(Right::Write) || adds.has(Right::Execute)) {
            adds | both
        } else {
            adds
        };
        Self {
            judged: around.judge(&change, policy),
            change,
            adds,
            denied,
        }
    }
}

/// A denial for which nothing is proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// What was denied, in words.
    pub denied: String,
    /// Why it stays denied.
    pub why: String,
}

/// Who accepted a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AcceptedBy {
    /// `--yes`.
    Yes,
    /// `--include`.
    Include,
    /// Whoever was asked.
    Person,
}
