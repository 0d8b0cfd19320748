//! A change that would permit what was denied, and who accepted it.

use serde::Serialize;

use super::remedy;
use super::risk::{Rating, Surroundings};
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
    /// Its risk, and why.
    pub rating: Rating,
    /// What was denied, in words.
    pub denied: Vec<String>,
}

impl Proposal {
    /// A change of this policy, with its rating.
    pub fn of(change: Change, denied: Vec<String>, surroundings: &Surroundings, policy: &Policy) -> Self {
        let adds = match &change {
            Change::Root(root) => root.rights.without(remedy::granted(policy, &root.path, root.scope)),
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
            rating: surroundings.rate(&change, policy),
            change,
            adds,
            denied,
        }
    }
}

/// A denial for which no change is proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StillDenied {
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
