//! The backends, and what each makes of a profile.

use serde::Serialize;

use crate::backend::landlock::rights::OLDEST_ABI;
use crate::backend::status::{ClauseStatus, Status, protected};
use crate::backend::{Plan, Regime};
use crate::policy::{AbsPath, Access, BackendChoice, Operation, Policy, Right};
use crate::profile::{FileReach, Profile};
use crate::tools::footing::Footing;
use crate::tools::plan::{self, Ground, PlanError, Surroundings, Walls};

/// One way to hold a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Landlock, seccomp and the attribute broker.
    Landlock,
}

/// What a backend makes of a profile.
#[derive(Debug)]
pub struct Held {
    /// The plan, checked against the profile.
    pub plan: Plan,
    /// What becomes of each clause.
    pub clauses: Vec<ClauseStatus>,
}

impl Held {
    /// What the plan itself permits, answered by its reader.
    pub fn access(&self, operation: Operation, path: &AbsPath) -> Access {
        self.plan.landlock.access(operation, path)
    }

    /// What stays open of metadata, in words.
    pub fn left_open(&self) -> Option<String> {
        self.clauses.iter().find_map(|clause| match &clause.status {
            Status::Residual(residual) => Some(residual.what.clone()),
            Status::Enforced | Status::Stricter(_) | Status::Undone => None,
        })
    }
}

impl Backend {
    /// All of them, in the order reports print them.
    pub const ALL: [Self; 1] = [Self::Landlock];

    /// Its name, as `--backend` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
        }
    }

    /// What it stands on for this policy, and why this machine cannot use it, if it cannot.
    ///
    /// Where it cannot be used, the oldest kernel that could is looked at instead.
    pub fn ground(self, policy: &Policy) -> (Ground, Option<String>) {
        let assumed = Ground {
            walls: Walls::Landlock,
            landlock_abi: OLDEST_ABI,
            deny_fallback: policy.deny_fallback,
            residuals: policy.residuals,
        };
        match self {
            Self::Landlock => match Footing::find(&asking(policy, BackendChoice::Landlock)) {
                Ok(Footing::Confined(ground)) => (ground, None),
                Ok(Footing::Unconfined(why) | Footing::Refused(why)) | Err(why) => (assumed, Some(why)),
            },
        }
    }

    /// Lowers a profile of the policy and holds the plan against it.
    pub fn hold(self, policy: &Policy, profile: &Profile, ground: Ground) -> Result<Held, PlanError> {
        let mut clauses = Vec::new();
        if policy.roots.iter().any(|root| root.rights.has(Right::Write)) {
            let Policy {
                protect,
                protect_fallback,
                residuals,
                ..
            } = policy;
            clauses = protected(protect, *protect_fallback, *residuals, self.regime())?;
        }
        let lowered = match self {
            Self::Landlock => plan::lower(profile, ground, &Surroundings::default())?,
        };
        clauses.extend(lowered.statuses);
        clauses.push(network(profile));
        Ok(Held {
            plan: lowered.plan,
            clauses,
        })
    }

    /// The regime it makes.
    pub(super) const fn regime(self) -> Regime {
        match self {
            Self::Landlock => Regime::Landlock,
        }
    }
}

/// The policy, standing on this backend whatever it asks for itself.
fn asking(policy: &Policy, backend: BackendChoice) -> Policy {
    Policy {
        backend,
        ..policy.clone()
    }
}

/// Off or on, the filters hold it exactly.
fn network(profile: &Profile) -> ClauseStatus {
    ClauseStatus {
        clause: format!("network {}", profile.network),
        origin: "shell.network".to_owned(),
        status: Status::Enforced,
    }
}
