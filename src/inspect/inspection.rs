//! A policy and the profiles derived from it.

use crate::backend::Regime;
use crate::backend::survey::Survey;
use crate::config::ABSENT;
use crate::confine::protect::Person;
use crate::policy::{Policy, Root};
use crate::profile::{ApprovedRoots, Call, Profile, derive};
use crate::tools::Narrowing;
use crate::tools::explain::Permissions;

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
    /// The backends to check.
    pub backends: Vec<Regime>,
    /// The person whose git could run or obey files that a command wrote.
    pub person: Person,
}

impl Inspection {
    /// Derives the profiles.
    pub fn of(policy: Policy, narrowing: Narrowing) -> Self {
        let profile = |approved_roots| narrowing.narrow(derive(&policy, &Call::of(approved_roots)));
        let (approved, unasked) = (profile(ApprovedRoots::All), profile(ApprovedRoots::None));
        Self {
            backends: Regime::for_choice(policy.backend),
            person: Person::default(),
            policy,
            narrowing,
            approved,
            unasked,
        }
    }

    /// Roots with `create: true` whose directory does not exist yet.
    pub fn missing_roots(&self) -> impl Iterator<Item = &Root> {
        self.policy.roots.iter().filter(|root| root.identity == ABSENT)
    }

    /// A survey with their directories, as if created.
    pub(super) fn survey_with_missing_roots(&self) -> Survey {
        Survey::foreseeing(self.missing_roots().map(|root| &root.path), ABSENT)
    }

    /// Restricts the inspection to this backend.
    #[must_use]
    pub fn only(self, backend: Regime) -> Self {
        Self {
            backends: vec![backend],
            ..self
        }
    }

    /// The permissions of each path.
    pub(crate) const fn permissions(&self) -> Permissions<'_> {
        Permissions {
            policy: &self.policy,
            approved: &self.approved,
            unasked: &self.unasked,
        }
    }
}
