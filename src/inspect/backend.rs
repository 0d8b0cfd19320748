//! The backends on this machine, and what each makes of a profile.

use super::clauses::{network, private_directories, protected_names};
use super::inspection::Inspection;
use super::missing_roots::survey_with_missing_roots;
use crate::backend::host::{Host, Maker};
use crate::backend::landlock::rights::{OLDEST_ABI, RESOLVE_UNIX_ABI};
use crate::backend::protected;
use crate::backend::seccomp::Attempts;
use crate::backend::status::{ClauseStatus, Refusal};
use crate::backend::survey::Survey;
use crate::policy::{BackendChoice, Policy, Right, Root, Scope, Target};
use crate::profile::Profile;
use crate::tools::checked_plan::{Backend, BackendPlan, CheckedPlan};
use crate::tools::enforcement::Enforcement;
use crate::tools::plan::{self, BackendOptions, Lowered, Mechanism, PlanError, Surroundings};
use crate::tools::surroundings::surroundings;

/// The backends of an inspection on this machine.
#[derive(Debug)]
pub struct HostBackends<'a> {
    /// Each of them.
    pub all: Vec<HostBackend<'a>>,
    /// The one that commands of the policy run in here.
    pub used: Option<Backend>,
}

/// A backend on this machine.
#[derive(Debug)]
pub struct HostBackend<'a> {
    /// Which.
    pub backend: Backend,
    /// Why this machine cannot use it, if it cannot. Then the oldest one that could is looked at instead.
    pub unavailable: Option<String>,
    policy: &'a Policy,
    /// What will be there when anything starts.
    missing_roots: Survey,
    lowering: Lowering,
}

#[derive(Debug)]
enum Lowering {
    Kernel {
        options: BackendOptions,
        surroundings: Result<Surroundings, String>,
    },
    Mac,
}

impl<'a> HostBackends<'a> {
    /// Asks this machine, once for all of them.
    pub fn probe(inspection: &'a Inspection, backends: &[Backend]) -> Self {
        let host = probe_host(inspection, backends);
        let used = match Enforcement::on(&host, &inspection.policy) {
            Ok(Enforcement::Confined(options)) => Some(match options.mechanism {
                Mechanism::Landlock => Backend::Landlock,
                Mechanism::Namespaces(_) => Backend::Namespaces,
            }),
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

/// This machine, as far as the backends, and the choice among them, depend on it.
fn probe_host(inspection: &Inspection, backends: &[Backend]) -> Host {
    match (backends.contains(&Backend::Namespaces), inspection.policy.backend) {
        (true, BackendChoice::Auto | BackendChoice::Landlock | BackendChoice::Namespaces) => {
            Host::with_acting_namespaces(None)
        }
        (true, BackendChoice::Bwrap) => Host::with_bwrap(),
        (false, _) => Host::quick(),
    }
}

impl<'a> HostBackend<'a> {
    /// One backend by itself.
    pub fn single(backend: Backend, inspection: &'a Inspection) -> Self {
        Self::probe(backend, inspection, &probe_host(inspection, &[backend]))
    }

    fn probe(backend: Backend, inspection: &'a Inspection, host: &Host) -> Self {
        let policy = &inspection.policy;
        let (lacks, mechanism, surroundings) = match backend {
            Backend::Landlock => (host.landlock_lacks(), Mechanism::Landlock, Ok(Surroundings::default())),
            Backend::Namespaces => (
                host.namespaces_lacks(),
                // What is permitted does not depend on who makes it.
                Mechanism::Namespaces(host.maker().unwrap_or(Maker::Stockade)),
                surroundings(&inspection.policy, &inspection.approved, &inspection.person),
            ),
            Backend::Seatbelt => {
                let mac = cfg!(target_os = "macos");
                return Self {
                    backend,
                    unavailable: (!mac).then(|| "this is not macOS".to_owned()),
                    policy,
                    missing_roots: Survey::default(),
                    lowering: Lowering::Mac,
                };
            }
        };
        let unavailable = (!lacks.is_empty()).then(|| lacks.join("; "));
        let abi = host.landlock_abi.filter(|_| unavailable.is_none());
        Self {
            backend,
            unavailable,
            policy,
            missing_roots: survey_with_missing_roots(policy),
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

    /// Why the backends that the config leaves the choice of can hold it on no machine, where that is known without trying it.
    pub fn refusal_on_any_machine(inspection: &'a Inspection) -> Option<Refusal> {
        let held = match inspection.policy.backend {
            // What one does not hold another may.
            BackendChoice::Auto => {
                let each = [Backend::Landlock, Backend::Namespaces];
                let [landlock, namespaces] = each.map(|backend| protected_in(&inspection.policy, backend).map(|_| ()));
                landlock.or(namespaces).map_err(PlanError::Refused)
            }
            BackendChoice::Landlock => HostBackend::single(Backend::Landlock, inspection)
                .lower(&inspection.approved)
                .map(|_| ()),
            // What mounts hold is known where they can be made.
            BackendChoice::Namespaces | BackendChoice::Bwrap => {
                let names = protected_in(&inspection.policy, Backend::Namespaces);
                names.map(|_| ()).map_err(PlanError::Refused)
            }
        };
        match held {
            Err(PlanError::Refused(refusal)) if refusal.is_of_config() => Some(refusal),
            Ok(()) | Err(_) => None,
        }
    }

    /// Lowers a profile of the policy and holds the plan against it.
    pub fn lower(&self, profile: &Profile) -> Result<CheckedPlan, PlanError> {
        self.lower_after(&self.missing_roots, profile)
    }

    /// What is not there yet, and will be when anything starts.
    pub const fn missing_roots(&self) -> &Survey {
        &self.missing_roots
    }

    /// What of the disk any backend looks at. Whoever holds says what cannot be looked at.
    pub fn survey(&self, profile: &Profile) -> Survey {
        let looked = match &self.lowering {
            Lowering::Kernel { options, .. } => plan::look_after(&self.missing_roots, profile, *options).ok(),
            Lowering::Mac => None,
        };
        looked.unwrap_or_else(|| self.missing_roots.clone())
    }

    /// The same as [`lower`](Self::lower), where what was `seen` a moment before is not looked at again.
    pub fn lower_after(&self, seen: &Survey, profile: &Profile) -> Result<CheckedPlan, PlanError> {
        match &self.lowering {
            Lowering::Kernel { options, surroundings } => {
                let mut clauses = self.protected()?;
                let surroundings = surroundings
                    .as_ref()
                    .map_err(|why| PlanError::Surroundings(why.clone()))?;
                let Lowered { plan, statuses, survey } = plan::lower_after(seen, profile, *options, surroundings)?;
                clauses.extend(protected_names(&plan, surroundings, &clauses));
                clauses.extend(statuses);
                clauses.extend(private_directories(self.backend.regime()));
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
            // There is a text to be checked even where nothing would start with it.
            Lowering::Mac => {
                let (plan, statuses) = plan::lower_seatbelt(profile, self.policy.residuals)?;
                let (mut clauses, refuses) = match self.protected() {
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

    fn protected(&self) -> Result<Vec<ClauseStatus>, Refusal> {
        protected_in(self.policy, self.backend)
    }
}

/// A deny of names that keeps from starting, in any backend, what may write around it.
pub fn refusal_of_writers(policy: &Policy) -> Option<Refusal> {
    let is_plain_tree =
        |root: &&Root| root.scope == Scope::Tree && root.suffixes.is_none() && root.max_file_bytes.is_none();
    let writes = |root: &&Root| root.rights.has(Right::Write) && !policy.may_hold_patterns();
    let roots = policy.roots.iter().filter(is_plain_tree).filter(writes);
    let mut denies = roots.flat_map(|root| root.denies.iter().map(move |deny| (root, deny)));
    let (root, deny) = denies.find(|(_, deny)| matches!(deny.target, Target::Pattern { .. }))?;
    Some(Refusal::DenyBelowGrant {
        clause: deny.to_string(),
        origin: deny.origin.to_string(),
        granted: root.path.clone(),
    })
}

/// What becomes of protected names in a backend.
fn protected_in(policy: &Policy, backend: Backend) -> Result<Vec<ClauseStatus>, Refusal> {
    if !policy.roots.iter().any(|root| root.rights.has(Right::Write)) {
        return Ok(Vec::new());
    }
    let Policy {
        protect,
        protect_fallback,
        residuals,
        ..
    } = policy;
    protected::protected(protect, *protect_fallback, *residuals, backend.regime())
}
