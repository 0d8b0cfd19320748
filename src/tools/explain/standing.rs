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
use crate::tools::anew;
use crate::tools::call::ToolError;
use crate::tools::footing::Footing;
use crate::tools::held::{Backend, Held, Made};
use crate::tools::plan::{self, Ground, Lowered, PlanError, Surroundings};
use crate::tools::private::{forker_profile, show};
use crate::tools::session_policy::SessionPolicy;
use crate::tools::surroundings::surroundings;

/// The most forkers whose plans are kept: as many as live at once, and some more.
const MOST: usize = 16;

/// What holds the commands of one forker.
#[derive(Debug)]
pub(in crate::tools) struct Standing {
    pub(super) policy: Policy,
    /// What an approved command gets.
    pub(super) approved: Profile,
    /// What this forker gives, as it was derived.
    unasked: Profile,
    /// The same, as the plan was made of it.
    pub(super) profile: Profile,
    pub(super) ground: Ground,
    /// As [`Permissions::answer`] wants it.
    pub(super) held: [(Backend, Result<Held, PlanError>); 1],
}

impl Standing {
    /// The plan for this profile, made again.
    fn of(
        held_to: &SessionPolicy,
        (ground, person): (Ground, &Person),
        profile: &Profile,
        session: &Session,
    ) -> Result<Self, ToolError> {
        let own = forker_profile(profile.clone(), session)?;
        let backend = match ground.walls.regime() {
            Regime::Namespaces => Backend::Namespaces,
            Regime::Landlock | Regime::None | Regime::Seatbelt => Backend::Landlock,
        };
        let approved = forker_profile(held_to.envelope.clone(), session)?;
        let unasked = own.clone();
        let around = match backend {
            Backend::Landlock | Backend::Seatbelt => Surroundings::default(),
            Backend::Namespaces => {
                let mut around = surroundings(&held_to.policy, &approved, person).map_err(PlanError::Surroundings)?;
                show(session, &held_to.policy, &held_to.envelope, &mut around)?;
                around
            }
        };
        let (lowered, own) = anew::made(own, |own| plan::lower(own, ground, &around))?;
        let Lowered { plan, statuses, survey } = lowered;
        let held = Held {
            made: Made::Kernel {
                plan: Box::new(plan),
                survey,
                shown: around.shown,
            },
            clauses: statuses,
            refuses: None,
        };
        Ok(Self {
            policy: held_to.policy.clone(),
            approved,
            unasked,
            profile: own,
            ground,
            held: [(backend, Ok(held))],
        })
    }

    /// The plan and what became of its clauses.
    pub(super) fn held(&self) -> Option<&Held> {
        let [(_, held)] = &self.held;
        held.as_ref().ok()
    }

    /// What decides about each path.
    pub(super) const fn permissions(&self) -> Permissions<'_> {
        Permissions {
            policy: &self.policy,
            approved: &self.approved,
            unasked: &self.unasked,
        }
    }

    pub(super) fn is_in_namespaces(&self) -> bool {
        self.ground.walls.regime() == Regime::Namespaces
    }
}

/// The plans of forkers that are under way, the latest last.
#[derive(Debug, Default)]
pub(in crate::tools) struct Standings(Vec<(PathBuf, Arc<Standing>)>);

impl Standings {
    /// What holds commands of this forker, made before the first of them could change what the plan depends on; none where
    /// nobody looks on.
    ///
    /// # Errors
    /// The plan cannot be made again.
    pub(in crate::tools) fn of(
        &mut self,
        held_by: (&SessionPolicy, &Footing, &Person),
        profile: &Profile,
        session: &Session,
    ) -> Result<Option<Arc<Standing>>, ToolError> {
        let (policy, footing, person) = held_by;
        let ground = match footing {
            Footing::Confined(ground) => *ground,
            Footing::Unconfined(_) | Footing::Refused(_) => return Ok(None),
        };
        match ground.attempts {
            Attempts::Unseen => return Ok(None),
            Attempts::Watched | Attempts::WatchedWithLooks => {}
        }
        let known = self.0.iter().find(|(path, _)| path == session.path());
        if let Some((_, standing)) = known {
            return Ok(Some(Arc::clone(standing)));
        }
        let standing = Arc::new(Standing::of(policy, (ground, person), profile, session)?);
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push((session.path().to_owned(), Arc::clone(&standing)));
        Ok(Some(standing))
    }
}
