//! The plan that holds the commands of a worker, kept so that denials can be explained by it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::backend::Regime;
use crate::backend::seccomp::Attempts;
use crate::confine::Session;
use crate::profile::Profile;
use crate::tools::anew;
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;
use crate::tools::footing::Footing;
use crate::tools::inspect::around::surroundings;
use crate::tools::inspect::backend::{Held, Made};
use crate::tools::inspect::{Backend, Inspection};
use crate::tools::plan::{self, Ground, Lowered, PlanError, Surroundings};
use crate::tools::private::{show, worker_profile};

/// The most workers whose plans are kept: as many as live at once, and some more.
const MOST: usize = 16;

/// What holds the commands of one worker.
#[derive(Debug)]
pub(in crate::tools) struct Standing {
    /// What was approved, and what this worker gives.
    pub(super) inspection: Inspection,
    pub(super) profile: Profile,
    pub(super) ground: Ground,
    /// As [`Inspection`] wants it.
    pub(super) held: [(Backend, Result<Held, PlanError>); 1],
}

impl Standing {
    /// The plan and what became of its clauses.
    pub(super) fn held(&self) -> Option<&Held> {
        let [(_, held)] = &self.held;
        held.as_ref().ok()
    }

    pub(super) fn is_in_namespaces(&self) -> bool {
        self.ground.walls.regime() == Regime::Namespaces
    }
}

/// The plans of workers that are under way, the latest last.
#[derive(Debug, Default)]
pub(in crate::tools) struct Standings(Vec<(PathBuf, Arc<Standing>)>);

impl Executor {
    /// What holds commands of this worker, made before the first of them could change what the plan depends on; none where
    /// nobody looks on.
    ///
    /// # Errors
    /// The plan cannot be made again.
    pub(in crate::tools) fn standing(
        &mut self,
        profile: &Profile,
        session: &Session,
    ) -> Result<Option<Arc<Standing>>, ToolError> {
        let ground = match &self.chosen.footing {
            Footing::Confined(ground) => *ground,
            Footing::Unconfined(_) | Footing::Refused(_) => return Ok(None),
        };
        match ground.attempts {
            Attempts::Unseen => return Ok(None),
            Attempts::Watched | Attempts::WatchedWithLooks => {}
        }
        let known = self.standings.0.iter().find(|(path, _)| path == session.path());
        if let Some((_, standing)) = known {
            return Ok(Some(Arc::clone(standing)));
        }
        let standing = Arc::new(self.stands(profile, session, ground)?);
        if self.standings.0.len() >= MOST {
            self.standings.0.remove(0);
        }
        self.standings
            .0
            .push((session.path().to_owned(), Arc::clone(&standing)));
        Ok(Some(standing))
    }

    fn stands(&self, profile: &Profile, session: &Session, ground: Ground) -> Result<Standing, ToolError> {
        let own = worker_profile(profile.clone(), session)?;
        let backend = match ground.walls.regime() {
            Regime::Namespaces => Backend::Namespaces,
            Regime::Landlock | Regime::None | Regime::Seatbelt => Backend::Landlock,
        };
        let inspection = Inspection {
            policy: self.policy.clone(),
            narrowing: self.narrowing.clone(),
            approved: worker_profile(self.envelope.clone(), session)?,
            unasked: own.clone(),
            backends: vec![backend],
            person: self.places.person.clone(),
        };
        let around = match backend {
            Backend::Landlock | Backend::Seatbelt => Surroundings::default(),
            Backend::Namespaces => {
                let mut around = surroundings(&inspection).map_err(PlanError::Surroundings)?;
                show(session, &self.policy, &self.envelope, &mut around)?;
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
        Ok(Standing {
            inspection,
            profile: own,
            ground,
            held: [(backend, Ok(held))],
        })
    }
}
