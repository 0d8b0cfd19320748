//! The plan that holds the commands of a forker, kept so that denials can be explained by it.

use std::path::PathBuf;
use std::sync::Arc;

use super::answer::Permissions;
use crate::backend::Regime;
use crate::backend::seccomp::Attempts;
use crate::confine::Session;
use crate::confine::protect::Person;
use crate::policy::Policy;
use crate::profile::Profile;
use crate::tools::call::ToolError;
use crate::tools::checked_plan::{BackendPlan, CheckedPlan};
use crate::tools::enforcement::Enforcement;
use crate::tools::plan::{self, BackendOptions, Lowered, Mechanism, PlanError, Surroundings};
use crate::tools::replaced_files;
use crate::tools::session_directory::{forker_profile, show};
use crate::tools::session_policy::SessionPolicy;
use crate::tools::surroundings::surroundings;

/// The most forkers whose plans are kept: as many as live at once, and some more.
const MAX_PLANS: usize = 16;

#[derive(Debug)]
pub(in crate::tools) struct ForkerPlan {
    pub(super) policy: Policy,
    /// What an approved command gets.
    pub(super) approved: Profile,
    /// What this forker gives, as it was derived.
    unasked: Profile,
    /// The same, as the plan was made of it.
    pub(super) profile: Profile,
    pub(super) options: BackendOptions,
    /// The plan, in the form that [`Permissions::answer`] takes.
    pub(super) plan: [(Regime, Result<CheckedPlan, PlanError>); 1],
}

impl ForkerPlan {
    /// The plan for this profile, made again.
    fn of(
        session_policy: &SessionPolicy,
        (options, person): (BackendOptions, &Person),
        profile: &Profile,
        session: &Session,
    ) -> Result<Self, ToolError> {
        let own = forker_profile(profile.clone(), session)?;
        let approved = forker_profile(session_policy.envelope.clone(), session)?;
        let unasked = own.clone();
        let around = match options.mechanism {
            Mechanism::Landlock => Surroundings::default(),
            Mechanism::Namespaces(_) => {
                let mut around =
                    surroundings(&session_policy.policy, &approved, person).map_err(PlanError::Surroundings)?;
                show(session, &session_policy.policy, &session_policy.envelope, &mut around)?;
                around
            }
        };
        let (lowered, own) = replaced_files::retry_with_current(own, |own| plan::lower(own, options, &around))?;
        let Lowered { plan, statuses, survey } = lowered;
        let plan = CheckedPlan {
            plan: BackendPlan::Kernel {
                plan: Box::new(plan),
                survey,
                shown: around.shown,
            },
            clauses: statuses,
            refuses: None,
        };
        Ok(Self {
            policy: session_policy.policy.clone(),
            approved,
            unasked,
            profile: own,
            options,
            plan: [(options.mechanism.regime(), Ok(plan))],
        })
    }

    pub(super) fn plan(&self) -> Option<&CheckedPlan> {
        let [(_, plan)] = &self.plan;
        plan.as_ref().ok()
    }

    pub(super) const fn permissions(&self) -> Permissions<'_> {
        Permissions {
            policy: &self.policy,
            approved: &self.approved,
            unasked: &self.unasked,
        }
    }

    pub(super) fn is_in_namespaces(&self) -> bool {
        self.options.mechanism.regime() == Regime::Namespaces
    }
}

/// The plans of forkers that are under way, the latest last.
#[derive(Debug, Default)]
pub(in crate::tools) struct ForkerPlans(Vec<(PathBuf, Arc<ForkerPlan>)>);

impl ForkerPlans {
    /// What holds commands of this forker, made before the first of them could change what the plan depends on; none where
    /// nobody looks on.
    ///
    /// # Errors
    /// The plan cannot be made again.
    pub(in crate::tools) fn of(
        &mut self,
        session_state: (&SessionPolicy, &Enforcement, &Person),
        profile: &Profile,
        session: &Session,
    ) -> Result<Option<Arc<ForkerPlan>>, ToolError> {
        let (policy, enforcement, person) = session_state;
        let options = match enforcement {
            Enforcement::Confined(options) => *options,
            Enforcement::Unconfined(_) | Enforcement::Refused(_) => return Ok(None),
        };
        match options.attempts {
            Attempts::Unseen => return Ok(None),
            Attempts::Watched | Attempts::WatchedWithLooks => {}
        }
        let known = self.0.iter().find(|(path, _)| path == session.path());
        if let Some((_, forker_plan)) = known {
            return Ok(Some(Arc::clone(forker_plan)));
        }
        let forker_plan = Arc::new(ForkerPlan::of(policy, (options, person), profile, session)?);
        if self.0.len() >= MAX_PLANS {
            self.0.remove(0);
        }
        self.0.push((session.path().to_owned(), Arc::clone(&forker_plan)));
        Ok(Some(forker_plan))
    }
}
