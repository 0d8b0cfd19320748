//! A plan that was held against its profile, and the readers that say what it permits.

use serde::Serialize;

use super::plan::PlanError;
use crate::backend::seatbelt::{self, SeatbeltPlan};
use crate::backend::status::{ClauseStatus, Status};
use crate::backend::survey::Survey;
use crate::backend::{Plan, Regime, namespaces};
use crate::policy::{AbsPath, Access, BackendChoice, Operation};
use crate::profile::{FileReach, Reach};

/// One way to hold a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Landlock, seccomp and the attribute broker.
    Landlock,
    /// Namespaces and mounts, with Landlock, seccomp and the broker inside.
    Namespaces,
    /// A profile text for `sandbox-exec`.
    Seatbelt,
}

impl Backend {
    /// All of them, in the order reports print them.
    pub const ALL: [Self; 3] = [Self::Landlock, Self::Namespaces, Self::Seatbelt];

    /// Its name, as `--backend` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Namespaces => "namespaces",
            Self::Seatbelt => "seatbelt",
        }
    }

    /// Those that can be what a policy asks for on this kind of system, in the order reports print them.
    pub fn of(choice: BackendChoice) -> Vec<Self> {
        match choice {
            BackendChoice::Auto if cfg!(target_os = "macos") => vec![Self::Seatbelt],
            BackendChoice::Auto => vec![Self::Landlock, Self::Namespaces],
            BackendChoice::Landlock => vec![Self::Landlock],
            BackendChoice::Namespaces | BackendChoice::Bwrap => vec![Self::Namespaces],
        }
    }

    /// What a reader should know of all that is said of it.
    pub const fn caveat(self) -> Option<&'static str> {
        match self {
            Self::Landlock | Self::Namespaces => None,
            Self::Seatbelt => Some("untested on a Mac: only the text is checked, by reading it back"),
        }
    }

    pub(crate) const fn regime(self) -> Regime {
        match self {
            Self::Landlock => Regime::Landlock,
            Self::Namespaces => Regime::Namespaces,
            Self::Seatbelt => Regime::Seatbelt,
        }
    }
}

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
            BackendPlan::Kernel { plan, survey, shown } => match &plan.world {
                None => Ok(query(&PlanReaders {
                    plan: plan.landlock.prepared(),
                    mounts: None,
                    hides: Box::new(|_| false),
                })),
                Some(world) => {
                    let view = namespaces::Walls {
                        argv: &world.mounts.render(),
                        layer: &plan.landlock,
                        own: &world.own,
                        copies: &[],
                        loader: shown,
                        new_names: namespaces::NewNames::Refused,
                    };
                    let pair = namespaces::Pair::read(&view, survey).map_err(PlanError::WeakPlan)?;
                    Ok(query(&PlanReaders {
                        plan: pair.prepared(),
                        mounts: Some(pair.mounts().prepared()),
                        hides: Box::new(pair.mounts().hiding()),
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
