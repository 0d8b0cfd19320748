//! What a policy comes to, for an auditor: nothing runs, and nothing is made.
//!
//! An [`Inspection`] holds the two profiles that matter: what a command gets that was approved, and what one
//! gets that nobody was asked about. [`show`] lays them out with the line that grants each thing, [`explain`]
//! tells which clause decides about one path and [`host`] about one host, where several have a say (`says`),
//! [`check`] holds the arrows of the promise, [`document`] writes all of it down and reads it back, [`diff`]
//! compares two, [`export`] says it in the words of other programs. [`backend`] is the one list of backends
//! that all of it goes through.

pub(super) mod around;
pub mod backend;
pub mod check;
mod clauses;
pub mod diff;
pub mod document;
pub mod explain;
pub mod export;
pub mod host;
pub mod hosts;
mod says;
mod selftest;
pub mod show;

use super::narrowing::Narrowing;
use crate::confine::protect::Person;
use crate::policy::{Policy, Root};
use crate::profile::{Asked, Call, Profile, derive};

pub use backend::Backend;

/// A policy with the profiles it comes to.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The policy.
    pub policy: Policy,
    /// What flags take away from it.
    pub narrowing: Narrowing,
    /// What a command gets when all that needs asking was approved.
    pub approved: Profile,
    /// What a command gets that nobody was asked about.
    pub unasked: Profile,
    /// Which backends are looked at.
    pub backends: Vec<Backend>,
    /// Whose git may run or obey what a command leaves.
    pub person: Person,
}

impl Inspection {
    /// Derives the profiles.
    pub fn of(policy: Policy, narrowing: Narrowing) -> Self {
        let profile = |asked| narrowing.narrow(derive(&policy, &Call::of(asked)));
        let (approved, unasked) = (profile(Asked::Everything), profile(Asked::Nobody));
        Self {
            backends: Backend::of(policy.backend),
            person: Person::default(),
            policy,
            narrowing,
            approved,
            unasked,
        }
    }

    /// Roots whose directory is made when something starts (`create: true`), and is not there yet.
    pub fn to_be_made(&self) -> impl Iterator<Item = &Root> {
        around::to_be_made(&self.policy)
    }

    /// Looks at this backend alone.
    #[must_use]
    pub fn only(self, backend: Backend) -> Self {
        Self {
            backends: vec![backend],
            ..self
        }
    }
}
