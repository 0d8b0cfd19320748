//! Names that a pattern denies, where commands may make names.
//!
//! Mounts cover what is there before a command. So it is looked for again before each, and where it is something else than
//! the mounts of a worker cover, another worker takes the command. What is new after one is told.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::call::ToolError;
use super::executor::Executor;
use super::outcome::shown;
use super::plan::{self, Lowered, PlanError, ProfileDigest};
use super::workers::Derived;
use crate::backend::namespaces::Matches;
use crate::backend::survey::SurveyError;
use crate::confine::{Confinement, ForkerFor};
use crate::policy::AbsPath;
use crate::profile::Profile;

/// What the mounts of each worker cover of what patterns name.
#[derive(Debug, Default)]
pub(super) struct CoveredNames(BTreeMap<ProfileDigest, Matches>);

impl CoveredNames {
    /// Notes what a worker for this profile begins with.
    pub(super) fn note(&mut self, profile: &Profile, lowered: Option<&Lowered>) {
        let digest = plan::digest(profile);
        // Where no mounts cover, nothing is looked for.
        let matches = lowered.and_then(|lowered| lowered.matches(profile));
        match matches {
            Some(matches) => self.0.insert(digest, matches),
            None => self.0.remove(&digest),
        };
    }
}

impl Executor {
    /// Ends the worker of this profile if its mounts cover something else than what patterns name now.
    ///
    /// # Errors
    /// Not all could be looked at, so nothing may start.
    pub(super) async fn end_outdated(&mut self, derived: &Derived) -> Result<(), ToolError> {
        if self.is_outdated(&derived.profile)?
            && let Some(worker) = self.workers.take_out(&derived.digest())
        {
            worker.finish().await;
        }
        Ok(())
    }

    /// Whether the mounts of the worker that was started last for this profile cover something else than what patterns name now.
    fn is_outdated(&self, profile: &Profile) -> Result<bool, ToolError> {
        let Some(covered) = self.workers.covered.0.get(&plan::digest(profile)) else {
            return Ok(false);
        };
        Ok(Matches::look(profile).map_err(PlanError::Survey)? != *covered)
    }

    /// A new worker whose mounts cover what patterns name. A name that was moved while the plan was made, from one directory to
    /// another, may be missing in it: so all is looked at again behind the mounts.
    pub(super) async fn start_covering(
        &mut self,
        profile: &Profile,
        worker_for: ForkerFor,
    ) -> Result<Confinement, ToolError> {
        for _ in 0..STARTS {
            let worker = self.start_in_regime(profile, worker_for).await?;
            match self.is_outdated(profile) {
                Ok(false) => return Ok(worker),
                Ok(true) => worker.finish().await,
                Err(error) => {
                    worker.finish().await;
                    return Err(error);
                }
            }
        }
        let root = self
            .policy
            .roots
            .first()
            .map_or_else(AbsPath::root, |root| root.path.clone());
        Err(PlanError::Survey(SurveyError::Busy(root)).into())
    }

    /// What patterns name now that was not there when the worker of this profile began.
    pub(super) fn new_denied_names(&self, derived: &Derived) -> DeniedNames {
        let Some(covered) = self.workers.covered.0.get(&derived.digest()) else {
            return DeniedNames::default();
        };
        match Matches::look(&derived.profile) {
            Ok(now) => DeniedNames::of(now.new_since(covered)),
            // The next command says why, and does not start.
            Err(_) => DeniedNames {
                is_cut: true,
                ..DeniedNames::default()
            },
        }
    }
}

/// Names that appeared while a command ran and that a pattern denies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeniedNames {
    /// The first of them, escaped; absent where there are none.
    #[serde(rename = "new_denied_names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub names: Vec<String>,
    /// How many more there are; absent where there are none.
    #[serde(rename = "more_new_denied_names", skip_serializing_if = "is_none")]
    #[schemars(default)]
    pub more: u64,
    /// Whether not all could be looked at; absent where all was.
    #[serde(rename = "new_denied_names_cut", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub is_cut: bool,
}

/// How often a worker is started until it covers what is there.
const STARTS: usize = 5;
/// The most names that are kept.
const KEPT: usize = 50;
/// How many a line names.
const NAMED: usize = 5;

impl DeniedNames {
    fn of<'a>(mut new: impl Iterator<Item = &'a AbsPath>) -> Self {
        let names: Vec<String> = new.by_ref().take(KEPT).map(|path| shown(path.as_bytes())).collect();
        Self {
            names,
            more: new.count() as u64,
            is_cut: false,
        }
    }

    /// What is to be said of them, in one line; nothing where there are none.
    pub fn told(&self) -> Option<String> {
        let named: Vec<&str> = self.names.iter().take(NAMED).map(String::as_str).collect();
        if named.is_empty() {
            let told =
                "new denied names: not everything could be looked at; the next command does not start before it can be";
            return self.is_cut.then(|| told.to_owned());
        }
        let more = match self.more + (self.names.len() - named.len()) as u64 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "new denied names: {}{more}; they appeared while the command ran and were open to it, and are covered from the \
             next one on",
            named.join(", ")
        ))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_five_and_counts_the_rest() {
        let paths: Vec<AbsPath> = (0..60)
            .map(|number| AbsPath::new(format!("/w/{number}/.env")).unwrap())
            .collect();
        assert_eq!(DeniedNames::of(std::iter::empty()).told(), None);
        let told = DeniedNames::of(paths.iter()).told().unwrap();
        assert!(
            told.starts_with("new denied names: /w/0/.env, ") && told.contains("/w/4/.env and 55 more; "),
            "{told}"
        );
        let one = DeniedNames::of(paths.iter().take(1)).told().unwrap();
        assert!(one.starts_with("new denied names: /w/0/.env; "), "{one}");
    }
}
