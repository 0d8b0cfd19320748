//! A plan that was held against its profile, and the readers that say what it permits.

use super::plan::PlanError;
use crate::backend::seatbelt::{self, SeatbeltPlan};
use crate::backend::status::{ClauseStatus, Status};
use crate::backend::survey::Survey;
use crate::backend::{Plan, namespaces};
use crate::policy::{AbsPath, Access, Operation};
use crate::profile::{FileReach, Reach};

/// What a backend makes of a profile, checked against it.
#[derive(Debug)]
pub struct CheckedPlan {
    /// The plan.
    pub plan: BackendPlan,
    /// What becomes of each clause.
    pub clauses: Vec<ClauseStatus>,
    /// Why nothing would start with it all the same.
    pub refuses: Option<String>,
}

/// A plan.
#[derive(Debug)]
pub enum BackendPlan {
    /// For Linux.
    Kernel {
        /// What the kernel is told.
        plan: Box<Plan>,
        /// The disk that it was made for.
        survey: Survey,
        /// What mounts show though nobody is granted it.
        shown: Vec<AbsPath>,
    },
    /// For macOS.
    Seatbelt(SeatbeltPlan),
}

/// What a reader says of a path.
pub type PathReader<'a> = Box<dyn Fn(&AbsPath) -> Reach + 'a>;

/// The readers of a plan, prepared for many questions.
#[expect(missing_debug_implementations, reason = "they are functions")]
pub struct PlanReaders<'a> {
    /// What it permits: for mounts with a layer inside, what both do.
    pub plan: PathReader<'a>,
    /// What its mounts alone permit; none where it makes none.
    pub mounts: Option<PathReader<'a>>,
    /// Whether its mounts hide what the host has there.
    pub hides: Box<dyn Fn(&AbsPath) -> bool + 'a>,
}

impl CheckedPlan {
    /// What the plan itself permits, answered by its readers.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn access(&self, operation: Operation, path: &AbsPath) -> Result<Access, PlanError> {
        self.with_readers(|readers| (readers.plan)(path).get(operation))
    }

    /// Puts many questions to the readers of the plan.
    ///
    /// # Errors
    /// The plan cannot be read.
    pub fn with_readers<T>(&self, query: impl FnOnce(&PlanReaders<'_>) -> T) -> Result<T, PlanError> {
        match &self.plan {
            BackendPlan::Kernel { plan, survey, shown } => match &plan.namespaces {
                None => Ok(query(&PlanReaders {
                    plan: plan.landlock.prepared(),
                    mounts: None,
                    hides: Box::new(|_| false),
                })),
                Some(namespace_plan) => {
                    let view = namespaces::LayeredPlan {
                        argv: &namespace_plan.mounts.render(),
                        layer: &plan.landlock,
                        own: &namespace_plan.own,
                        copies: &[],
                        loader: shown,
                        new_names: namespaces::NewNames::Refused,
                    };
                    let layered_reach = namespaces::LayeredReach::read(&view, survey).map_err(PlanError::WeakPlan)?;
                    Ok(query(&PlanReaders {
                        plan: layered_reach.prepared(),
                        mounts: Some(layered_reach.mounts().prepared()),
                        hides: Box::new(layered_reach.mounts().hiding()),
                    }))
                }
            },
            BackendPlan::Seatbelt(plan) => {
                let script = seatbelt::parse(plan)
                    .map_err(|error| PlanError::Refused(seatbelt::SeatbeltError::from(error).into()))?;
                Ok(query(&PlanReaders {
                    plan: Box::new(|path| Reach::of(|operation| seatbelt::view::widest(&script, operation, path))),
                    mounts: None,
                    hides: Box::new(|_| false),
                }))
            }
        }
    }

    /// What stays open of metadata, in words.
    pub fn left_open(&self) -> Option<String> {
        self.clauses.iter().find_map(|clause| match &clause.status {
            Status::Residual(residual) => Some(residual.what.clone()),
            Status::Enforced | Status::Stricter(_) | Status::Undone => None,
        })
    }
}
