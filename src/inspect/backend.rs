//! The backends on this machine, and what each makes of a profile.

use super::clauses::{network, private_directories, protected_names};
use super::inspection::Inspection;
use crate::backend::Regime;
use crate::backend::host::{Host, Maker};
use crate::backend::landlock::rights::{OLDEST_ABI, RESOLVE_UNIX_ABI};
use crate::backend::protected;
use crate::backend::seccomp::Attempts;
use crate::backend::status::{ClauseStatus, Refusal};
use crate::backend::survey::Survey;
use crate::policy::{BackendChoice, Policy, Right};
use crate::profile::Profile;
use crate::tools::checked_plan::{BackendPlan, CheckedPlan};
use crate::tools::enforcement::Enforcement;
use crate::tools::plan::{self, BackendOptions, Lowered, Mechanism, PlanError, Surroundings};
use crate::tools::surroundings::surroundings;

/// The backends of an inspection on this machine.
#[derive(Debug)]
pub struct HostBackends<'a> {
    /// Each of them.
    pub all: Vec<HostBackend<'a>>,
    /// The one that commands of the policy run in here.
    pub used: Option<Regime>,
}

/// A backend on this machine.
#[derive(Debug)]
pub struct HostBackend<'a> {
    pub backend: Regime,
    /// Why this machine cannot use it, if it cannot. Plans are then for the oldest version that could.
    pub unavailable: Option<String>,
    policy: &'a Policy,
    /// A survey with the directories that a start creates.
    pub(super) missing_roots: Survey,
    lowering: Lowering,
}

#[derive(Debug)]
enum Lowering {
    Kernel {
        options: BackendOptions,
        surroundings: Result<Surroundings, String>,
    },
    Mac,
    /// Nothing confines: there is no plan.
    Unconfined,
}

impl<'a> HostBackends<'a> {
    /// Probes this machine, once for all backends.
    pub fn probe(inspection: &'a Inspection, backends: &[Regime]) -> Self {
        let host = probe_host(inspection, backends);
        let used = match Enforcement::on(&host, &inspection.policy) {
            Ok(Enforcement::Confined(options)) => Some(options.mechanism.regime()),
            Ok(Enforcement::Unconfined(_) | Enforcement::Refused(_)) | Err(_) => None,
        };
        let all = backends
            .iter()
            .map(|backend| HostBackend::probe(*backend, inspection, &host));
        Self {
            all: all.collect(),
            used: used.filter(|used| backends.contains(used)),
        }
    }
}

/// Probes this machine, as far as these backends depend on it.
fn probe_host(inspection: &Inspection, backends: &[Regime]) -> Host {
    match (backends.contains(&Regime::Namespaces), inspection.policy.backend) {
        (true, BackendChoice::Auto | BackendChoice::Landlock | BackendChoice::Namespaces) => {
            Host::with_acting_namespaces(None)
        }
        (true, BackendChoice::Bwrap) => Host::with_bwrap(),
        (false, _) => Host::quick(),
    }
}

impl<'a> HostBackend<'a> {
    /// A single backend.
    pub fn single(backend: Regime, inspection: &'a Inspection) -> Self {
        Self::probe(backend, inspection, &probe_host(inspection, &[backend]))
    }

    fn probe(backend: Regime, inspection: &'a Inspection, host: &Host) -> Self {
        let policy = &inspection.policy;
        let (lacks, mechanism, surroundings) = match backend {
            Regime::Landlock => (host.landlock_lacks(), Mechanism::Landlock, Ok(Surroundings::default())),
            Regime::Namespaces => (
                host.namespaces_lacks(),
                // The plan does not depend on who makes the namespaces.
                Mechanism::Namespaces(host.maker().unwrap_or(Maker::Stockade)),
                surroundings(&inspection.policy, &inspection.approved, &inspection.person),
            ),
            Regime::Seatbelt => {
                let mac = cfg!(target_os = "macos");
                let unavailable = (!mac).then(|| "this is not macOS".to_owned());
                return Self::without_kernel(backend, policy, unavailable, Lowering::Mac);
            }
            Regime::None => {
                let unavailable = Some(Refusal::Unconfined.to_string());
                return Self::without_kernel(backend, policy, unavailable, Lowering::Unconfined);
            }
        };
        let unavailable = (!lacks.is_empty()).then(|| lacks.join("; "));
        let abi = host.landlock_abi.filter(|_| unavailable.is_none());
        Self {
            backend,
            unavailable,
            policy,
            missing_roots: inspection.survey_with_missing_roots(),
            lowering: Lowering::Kernel {
                options: BackendOptions {
                    mechanism,
                    landlock_abi: abi.unwrap_or(OLDEST_ABI).min(RESOLVE_UNIX_ABI),
                    deny_fallback: policy.deny_fallback,
                    residuals: policy.residuals,
                    attempts: Attempts::Unseen,
                },
                surroundings,
            },
        }
    }

    /// A backend whose plan does not depend on the kernel of this machine.
    fn without_kernel(backend: Regime, policy: &'a Policy, unavailable: Option<String>, lowering: Lowering) -> Self {
        Self {
            backend,
            unavailable,
            policy,
            missing_roots: Survey::default(),
            lowering,
        }
    }

    /// Lowers a profile of the policy and verifies the plan.
    pub fn lower(&self, profile: &Profile) -> Result<CheckedPlan, PlanError> {
        self.lower_after(&self.missing_roots, profile)
    }

    /// Surveys the disk; errors are reported when the profile is lowered.
    pub fn survey(&self, profile: &Profile) -> Survey {
        let looked = match &self.lowering {
            Lowering::Kernel { options, .. } => plan::look_after(&self.missing_roots, profile, *options).ok(),
            Lowering::Mac | Lowering::Unconfined => None,
        };
        looked.unwrap_or_else(|| self.missing_roots.clone())
    }

    /// The same as [`lower`](Self::lower), from an existing survey.
    pub fn lower_after(&self, seen: &Survey, profile: &Profile) -> Result<CheckedPlan, PlanError> {
        match &self.lowering {
            Lowering::Kernel { options, surroundings } => {
                let mut clauses = protected_in(self.policy, self.backend)?;
                let surroundings = surroundings
                    .as_ref()
                    .map_err(|why| PlanError::Surroundings(why.clone()))?;
                let Lowered { plan, statuses, survey } = plan::lower_after(seen, profile, *options, surroundings)?;
                clauses.extend(protected_names(&plan, surroundings, &clauses));
                clauses.extend(statuses);
                clauses.extend(private_directories(self.backend));
                clauses.extend(network(profile, self.backend));
                let plan = BackendPlan::Kernel {
                    plan: Box::new(plan),
                    survey,
                    shown: surroundings.shown.clone(),
                };
                Ok(CheckedPlan {
                    plan,
                    clauses,
                    refuses: None,
                })
            }
            Lowering::Unconfined => Err(Refusal::Unconfined.into()),
            // The text can be checked even where nothing would start.
            Lowering::Mac => {
                let (plan, statuses) = plan::lower_seatbelt(profile, self.policy.residuals)?;
                let (mut clauses, refuses) = match protected_in(self.policy, self.backend) {
                    Ok(clauses) => (clauses, None),
                    Err(refusal) => (Vec::new(), Some(refusal.to_string())),
                };
                clauses.extend(statuses);
                Ok(CheckedPlan {
                    plan: BackendPlan::Seatbelt(plan),
                    clauses,
                    refuses,
                })
            }
        }
    }
}

/// The status of protected names in a backend.
fn protected_in(policy: &Policy, backend: Regime) -> Result<Vec<ClauseStatus>, Refusal> {
    if !policy.roots.iter().any(|root| root.rights.has(Right::Write)) {
        return Ok(Vec::new());
    }
    let Policy {
        protect,
        protect_fallback,
        residuals,
        ..
    } = policy;
    protected::protected(protect, *protect_fallback, *residuals, backend)
}
