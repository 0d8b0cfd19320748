//! What the mounts of each forker cover of what patterns name.
//!
//! It is looked for again before each command, and where it is something else than the mounts of a forker cover, another forker takes
//! the command.

use std::collections::BTreeMap;

use super::denied_names::DeniedNames;
use super::plan::{self, Lowered, PlanError, ProfileDigest};
use super::profiles::Derived;
use crate::backend::namespaces::Matches;
use crate::profile::Profile;

#[derive(Debug, Default)]
pub(super) struct CoveredNames(BTreeMap<ProfileDigest, Matches>);

impl CoveredNames {
    /// Notes what a forker for this profile begins with.
    pub(super) fn note(&mut self, profile: &Profile, lowered: Option<&Lowered>) {
        let digest = plan::digest(profile);
        // Where no mounts cover, nothing is looked for.
        let matches = lowered.and_then(|lowered| lowered.matches(profile));
        match matches {
            Some(matches) => self.0.insert(digest, matches),
            None => self.0.remove(&digest),
        };
    }

    /// Whether the mounts of the forker that was started last for this profile cover something else than what patterns name now.
    ///
    /// # Errors
    /// Not all could be looked at, so nothing may start.
    pub(super) fn is_outdated(&self, profile: &Profile) -> Result<bool, PlanError> {
        let Some(covered) = self.0.get(&plan::digest(profile)) else {
            return Ok(false);
        };
        Ok(Matches::scan(profile).map_err(PlanError::Survey)? != *covered)
    }

    /// What patterns name now that was not there when the forker of this profile began.
    pub(super) fn new_since(&self, derived: &Derived) -> DeniedNames {
        let covered = self.0.get(&derived.digest());
        covered.map_or_else(DeniedNames::default, |covered| {
            DeniedNames::since(covered, &derived.profile)
        })
    }
}
