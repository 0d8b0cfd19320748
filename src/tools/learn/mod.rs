//! What was denied to a command → what a config would have to grant, by risk; and nothing of it is in force
//! before somebody accepts it.
//!
//! `wish` says of each denial what would permit it, or why nothing is proposed: what a person forbade stays
//! forbidden. `gathered` has that place by place, and leaves what a config can grant and a plan would not deny all the same (`trial`
//! tries it, `batch` as many at once as stand together). `propose` makes as few and as small changes of that as will do (`merge`, `need`). `risk` judges each, after
//! links, by what it would give away (`secrets` knows names, `alike` those that look like others, `through` looks through directories, `swap` at
//! who could put something else there, `git` at what a repository around it would run), because a command
//! chooses what it attempts, and may attempt it only to have it proposed. [`Consent`] says what was accepted
//! beforehand, `ask` puts the rest to a person. [`hold()`] holds the policy of the amended config against the
//! old one and what was accepted, before a command runs under it; [`outermost`] leaves out what something larger that was accepted gives by now.

mod alike;
mod ask;
mod batch;
mod consent;
mod gathered;
mod git;
mod hold;
mod inner;
mod merge;
mod need;
mod propose;
mod risk;
mod secrets;
pub(in crate::tools) mod swap;
mod through;
mod trial;
mod wish;

#[cfg(test)]
mod tests;

pub use ask::{Answer, ConfigQuestion, questions};
pub use consent::{Consent, Include, IncludeError, flag};
pub use hold::{Strayed, hold};
pub use inner::outermost;
pub use propose::{Looks, Proposals, propose};
pub use risk::{Judged, Risk, Surroundings};
pub use trial::Trial;

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
    /// What else has to be accepted for it.
    pub needs: Needs,
}

/// What a change needs to be in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    /// Nothing else.
    Nothing,
    /// [`Change::Undo`].
    Undo,
}

impl Proposal {
    /// A change of this policy, judged.
    pub fn of(change: Change, denied: Vec<String>, needs: Needs, around: &Surroundings, policy: &Policy) -> Self {
        let adds = match &change {
            Change::Root(root) => root.rights.without(wish::given(policy, &root.path, root.scope)),
            Change::Widen(root) => root.rights,
            Change::List(_) => Rights::READ,
            Change::Host(_) | Change::Sockets(_) | Change::Undo => Rights::NONE,
        };
        let after = match &change {
            Change::Root(root) => root.rights,
            Change::Widen(widened) => {
                let root = policy.roots.iter().find(|root| root.name == widened.name);
                root.map_or(Rights::NONE, |root| root.rights) | widened.rights
            }
            Change::List(_) | Change::Host(_) | Change::Sockets(_) | Change::Undo => Rights::NONE,
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
            needs,
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
