//! The arrows of the promise, each with its proof or a witness, and what becomes of every clause.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::thread;

use serde::Serialize;

use super::backend::{HostBackend, HostBackends};
use super::hosts::{NetworkStatus, network_status};
use super::inspection::Inspection;
use super::show::limits;
use crate::backend::Regime;
use crate::backend::host::{LimitEnforcement, TreeLimit};
use crate::backend::status::{ClauseStatus, Status};
use crate::backend::survey::Survey;
use crate::policy::path::escape;
use crate::policy::{BackendChoice, NamePattern, Policy};
use crate::profile::{ApprovedRoots, Call, Profile, derive};
use crate::tools::checked_plan::CheckedPlan;
use crate::tools::plan::{PlanError, check_against};

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Each arrow.
    pub arrows: Vec<Arrow>,
    /// Each backend.
    pub backends: Vec<BackendCheck>,
    /// Which names are protected.
    pub protect: ProtectedNames,
}

/// Which names are protected: a list, and what the config makes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProtectedNames {
    /// The setting in the config.
    #[serde(rename = "word")]
    pub setting: &'static str,
    /// Those besides the list.
    pub add: Vec<String>,
    /// Those of the list that are not.
    pub except: Vec<String>,
}

impl ProtectedNames {
    fn of(policy: &Policy) -> Self {
        let each =
            |names: &BTreeSet<NamePattern>| names.iter().map(|name| escape(name.to_string().as_bytes())).collect();
        Self {
            setting: policy.protect.keyword(),
            add: each(&policy.names.add),
            except: each(&policy.names.except),
        }
    }
}

/// One claim: what the right side permits, the left side permits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Arrow {
    /// The claim.
    pub claim: String,
    /// The result.
    pub result: Proof,
    /// The witness, or why it was not tried.
    pub detail: Option<String>,
}

/// The result of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// It is proved, or was observed.
    Holds,
    /// It is refuted.
    Fails,
    /// It was not tried.
    Untried,
}

/// What a backend makes of the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackendCheck {
    /// The backend.
    pub backend: Regime,
    /// Whether commands run in it here.
    pub used: bool,
    /// What a reader should know of all that is said of it.
    pub caveat: Option<&'static str>,
    /// Why this machine cannot use it.
    pub unavailable: Option<String>,
    /// Why it would start nothing under this policy.
    pub refuses: Option<String>,
    /// What becomes of each clause.
    pub clauses: Vec<ClauseRow>,
}

/// What becomes of one clause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClauseRow {
    /// The clause.
    pub clause: String,
    /// Its line.
    pub origin: String,
    /// `enforced`, `stricter`, `undone`, `residual`, or `refused` where it is the reach of some calls only and those are not made.
    pub status: &'static str,
    /// What exactly.
    pub detail: Option<String>,
}

impl Arrow {
    /// The arrow of a self-test.
    pub fn observed(result: Result<(), String>) -> Self {
        Self::new("plan ⊒ observed (self-test)".to_owned(), result)
    }

    /// The arrow of a self-test that did not run.
    pub fn untried(why: &str) -> Self {
        Self {
            result: Proof::Untried,
            detail: Some(why.to_owned()),
            ..Self::observed(Ok(()))
        }
    }

    fn new(claim: String, result: Result<(), String>) -> Self {
        Self {
            claim,
            result: if result.is_ok() { Proof::Holds } else { Proof::Fails },
            detail: result.err(),
        }
    }
}

impl Check {
    /// Whether no arrow fails, and the backend that commands run in here would run them.
    pub fn holds(&self) -> bool {
        let usable = |check: &BackendCheck| check.used && check.unavailable.is_none() && check.refuses.is_none();
        self.arrows.iter().all(|arrow| arrow.result != Proof::Fails) && self.backends.iter().any(usable)
    }
}

impl Inspection {
    /// Checks the two arrows that need no process, for what was approved and for what nobody was asked about.
    pub fn check(&self) -> Check {
        // Without questions the two are equal.
        let unasked = (self.unasked != self.approved).then_some(("unasked", &self.unasked));
        let profiles: Vec<(&str, &Profile)> = [("approved", &self.approved)].into_iter().chain(unasked).collect();
        // Profiles are verified in parallel with probing the machine.
        let (mut arrows, on_host, plans) = thread::scope(|scope| {
            let derivation = scope.spawn(|| self.check_derivation(&profiles));
            let on_host = HostBackends::probe(self, &self.backends);
            // Several backends share a survey.
            let survey = |(_, profile): &(&str, &Profile)| match on_host.all.as_slice() {
                [first, _, ..] => first.survey(profile),
                [only] => only.missing_roots.clone(),
                [] => Survey::default(),
            };
            let surveys: Vec<Survey> = profiles.iter().map(survey).collect();
            let lower_all = |candidate: &HostBackend<'_>| {
                let each = profiles.iter().zip(&surveys);
                each.map(|((_, profile), surveys)| candidate.lower_after(surveys, profile))
                    .collect::<Vec<_>>()
            };
            let plans: Vec<_> = thread::scope(|scope| {
                // The first runs on this thread.
                let (first, others) = (on_host.all.first(), on_host.all.iter().skip(1));
                let threads: Vec<_> = others.map(|candidate| scope.spawn(|| lower_all(candidate))).collect();
                let first = first.map(lower_all);
                first.into_iter().chain(threads.into_iter().map(join)).collect()
            });
            (join(derivation), on_host, plans)
        });
        let used = self.used_backend(&on_host, &plans);
        let mut backends = Vec::new();
        for (candidate, plans) in on_host.all.iter().zip(plans) {
            let backend = candidate.backend;
            let mut check = BackendCheck {
                backend,
                used: used == Some(backend),
                caveat: backend.caveat(),
                unavailable: candidate.unavailable.clone(),
                refuses: None,
                clauses: Vec::new(),
            };
            for ((name, profile), held) in profiles.iter().zip(plans) {
                let claim = format!("profile ⊒ plan ({name}, {})", backend.name());
                match held {
                    Ok(held) => {
                        arrows.push(Arrow::new(claim, Ok(())));
                        check.refuses = check.refuses.take().or(held.refuses);
                        if *name == "approved" {
                            check.clauses = held.clauses.into_iter().map(row).collect();
                            check.clauses.extend(limit_rows(backend, profile));
                            check.clauses.extend(self.own_networks(backend));
                        }
                    }
                    Err(error) if is_witness(&error) => arrows.push(Arrow::new(claim, Err(error.to_string()))),
                    Err(error) => {
                        arrows.push(Arrow {
                            claim,
                            result: Proof::Untried,
                            detail: Some("there is no plan".to_owned()),
                        });
                        check.refuses.get_or_insert(error.to_string());
                    }
                }
            }
            backends.push(check);
        }
        Check {
            arrows,
            backends,
            protect: ProtectedNames::of(&self.policy),
        }
    }

    /// The backend that commands run in, as a session settles it: where the config leaves the choice, Landlock holds
    /// what namespaces cannot.
    fn used_backend(
        &self,
        on_host: &HostBackends<'_>,
        plans: &[Vec<Result<CheckedPlan, PlanError>>],
    ) -> Option<Regime> {
        let holds = |wanted: Regime| {
            let of = on_host
                .all
                .iter()
                .zip(plans)
                .find(|(candidate, _)| candidate.backend == wanted);
            of.filter(|(candidate, _)| candidate.unavailable.is_none())
                .and_then(|(_, plans)| plans.first())
        };
        match (self.policy.backend, on_host.used) {
            (BackendChoice::Auto, Some(Regime::Namespaces)) => {
                let refused = matches!(holds(Regime::Namespaces), Some(Err(PlanError::Refused(_))));
                let below = matches!(holds(Regime::Landlock), Some(Ok(_)));
                Some(if refused && below {
                    Regime::Landlock
                } else {
                    Regime::Namespaces
                })
            }
            (
                BackendChoice::Auto | BackendChoice::Landlock | BackendChoice::Namespaces | BackendChoice::Bwrap,
                used,
            ) => used,
        }
    }

    /// What a backend makes of the networks that rules and tools have of their own.
    fn own_networks(&self, backend: Regime) -> Vec<ClauseRow> {
        let rows = self.policy.own_networks().map(|(whose, own)| {
            let network = self.narrowing.narrow_network(&own.network);
            let NetworkStatus { status, detail, .. } = network_status(&network, backend);
            ClauseRow {
                clause: format!("network of {whose}: {network}"),
                origin: own.origin.to_string(),
                status,
                detail: detail.map(str::to_owned),
            }
        });
        rows.collect()
    }

    /// The first arrow, of these profiles and of what rules narrow them to.
    fn check_derivation(&self, profiles: &[(&str, &Profile)]) -> Vec<Arrow> {
        let mut arrows = Vec::new();
        for (name, profile) in profiles {
            let approved_roots = if *name == "unasked" {
                ApprovedRoots::None
            } else {
                ApprovedRoots::All
            };
            let held = check_against(&self.policy, &Call::of(approved_roots), profile);
            arrows.push(Arrow::new(format!("config ⊒ profile ({name})"), message(held)));
        }
        let narrowed_rules: BTreeSet<&Vec<String>> = self
            .policy
            .rules
            .iter()
            .filter_map(|r| r.sandbox_paths.as_ref())
            .collect();
        for narrow in narrowed_rules {
            let call = Call {
                narrow: Some(narrow.clone()),
                ..Call::of(ApprovedRoots::All)
            };
            let profile = self.narrowing.narrow(derive(&self.policy, &call));
            let held = check_against(&self.policy, &call, &profile);
            let claim = format!("config ⊒ profile (writes in {} only)", narrow.join(", "));
            arrows.push(Arrow::new(claim, message(held)));
        }
        for (whose, own) in self.policy.own_networks() {
            let each = [ApprovedRoots::All, ApprovedRoots::None].map(|approved_roots| {
                let (call, profile) = self.derived_with(&own.network, approved_roots);
                check_against(&self.policy, &call, &profile)
            });
            let claim = format!("config ⊒ profile (network of {whose})");
            arrows.push(Arrow::new(claim, message(each.into_iter().collect())));
        }
        arrows
    }
}

/// Joins a thread.
fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Whether an error is a witness that a plan permits more than its profile; else there is no plan.
fn is_witness(error: &PlanError) -> bool {
    match error {
        PlanError::WeakProfile(_) | PlanError::Unasked(_) | PlanError::WeakPlan(_) | PlanError::WeakFilter(_) => true,
        PlanError::Refused(_) | PlanError::Survey(_) | PlanError::Seccomp(_) | PlanError::Surroundings(_) => false,
    }
}

fn message(result: Result<(), PlanError>) -> Result<(), String> {
    result.map_err(|error| error.to_string())
}

/// The status of limits; those of the whole tree are exact or sampled.
fn limit_rows(regime: Regime, profile: &Profile) -> impl Iterator<Item = ClauseRow> {
    limits(&profile.limits).into_iter().map(move |(name, value)| {
        let of_the_tree = match name {
            "memory" => Some(TreeLimit::memory(regime)),
            "processes" => Some(TreeLimit::processes(regime)),
            _ => None,
        };
        let (status, detail) = match regime {
            Regime::Landlock | Regime::Namespaces => (
                "enforced",
                of_the_tree.map(|TreeLimit { hold, why, .. }| match hold {
                    LimitEnforcement::Exact => format!("exact: {why}"),
                    LimitEnforcement::Sampled => format!("sampled: the tree is killed when it is seen above it; {why}"),
                }),
            ),
            Regime::None => ("residual", Some("nothing confines a command there".to_owned())),
            Regime::Seatbelt => (
                "residual",
                Some("a text says nothing of limits, and nothing else holds them yet".to_owned()),
            ),
        };
        ClauseRow {
            clause: format!("limit {name} {value}"),
            origin: format!("shell.limits.{name}"),
            status,
            detail,
        }
    })
}

fn row(clause: ClauseStatus) -> ClauseRow {
    let ClauseStatus { clause, origin, status } = clause;
    let (status, detail) = match status {
        Status::Enforced => ("enforced", None),
        Status::Stricter(what) => ("stricter", Some(what)),
        Status::Undone => ("undone", Some("restored after the command".to_owned())),
        Status::Residual(residual) => ("residual", Some(residual.what)),
    };
    ClauseRow {
        clause,
        origin,
        status,
        detail,
    }
}
