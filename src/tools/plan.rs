//! Profile → checked plan. Each arrow of the promise is held here, at every start:
//! `config ⊒ profile`, then `profile ⊒ plan` by re-reading the plan. The third, `plan ⊒ observed`, is
//! the self-test in the child.

pub use super::backend_options::{BackendOptions, Mechanism, Surroundings};
use super::filters::{copies_in, mounted, settings};
pub use super::profile_digest::{ProfileDigest, digest};
use crate::backend::host::Maker;
use crate::backend::landlock::{self, LandlockPlan};
use crate::backend::namespaces::{Matches, NewNames, PrivateCopy};
use crate::backend::seatbelt::{self, SeatbeltPlan};
use crate::backend::seccomp::{self, Attempts, Filters, Role, SeccompError, SeccompWitness};
use crate::backend::status::{ClauseStatus, Refusal};
use crate::backend::survey::{Survey, SurveyError};
use crate::backend::{NamespacePlan, NetworkExit, Plan, attributes, namespaces};
use crate::policy::{AbsPath, Network, Policy, Residuals};
use crate::profile::order::Permission;
use crate::profile::{ApprovedRoots, Call, Profile, Witness, files_within};

/// Why there is no plan, so nothing starts.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A backend cannot hold a clause, and may not leave it open.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The directories that must be ruled entry by entry could not be looked at.
    #[error("failed to look at what a deny or a suffix narrows: {0}")]
    Survey(#[from] SurveyError),
    /// A derived profile permits what the config does not. This is a defect of Stockade.
    #[error("internal check failed: the derived profile is weaker than the config: {0}")]
    WeakProfile(#[source] Witness),
    /// The profile of a command that nobody was asked about would ask about hosts. This is a defect of Stockade.
    #[error("internal check failed: the profile of what nobody was asked about asks about hosts: {0}")]
    Unasked(String),
    /// A plan permits what the profile does not. This is a defect of Stockade.
    #[error("internal check failed: the plan is weaker than the profile: {0}")]
    WeakPlan(#[source] Witness),
    /// A filter permits what the table forbids. This is a defect of Stockade.
    #[error("internal check failed: the seccomp filters are weaker than their table: {0}")]
    WeakFilter(#[source] SeccompWitness),
    /// The filters could not be made.
    #[error("failed to make the seccomp filters: {0}")]
    Seccomp(#[from] SeccompError),
    /// What namespaces must show or cover could not be found out.
    #[error("{0}")]
    Surroundings(String),
}

/// A profile in the form the kernel takes, and what became of each clause.
#[derive(Debug)]
pub struct Lowered {
    /// What the forker is told.
    pub plan: Plan,
    /// What became of each clause.
    pub statuses: Vec<ClauseStatus>,
    /// What was seen of the disk.
    pub survey: Survey,
}

/// The most that the private directory in memory holds.
const MOST_TMP: u64 = 512 * 1024 * 1024;

/// How much the private directory in memory holds: no more than a command may use.
pub fn tmp_bytes(profile: &Profile) -> u64 {
    profile.limits.memory.map_or(MOST_TMP, |memory| memory.min(MOST_TMP))
}

/// Lowers a profile for a forker and its commands, and proves that the plan permits no more than the profile.
pub fn lower(profile: &Profile, options: BackendOptions, around: &Surroundings) -> Result<Lowered, PlanError> {
    lower_after(&Survey::default(), profile, options, around)
}

/// The same, where what was `seen` a moment before is not looked at again.
pub fn lower_after(
    seen: &Survey,
    profile: &Profile,
    options: BackendOptions,
    around: &Surroundings,
) -> Result<Lowered, PlanError> {
    let draft = draft(seen, profile, options, around)?;
    draft.prove(profile)?;
    Ok(draft.lowered)
}

/// What of the disk any backend looks at beside what was `seen`, for [`lower_after`].
pub fn look_after(seen: &Survey, profile: &Profile, options: BackendOptions) -> Result<Survey, SurveyError> {
    landlock::survey_after(seen, profile, &landlock_options(options))
}

/// What is not proven yet.
#[derive(Debug)]
#[must_use = "nothing is known of a plan that is not proven"]
struct Draft {
    lowered: Lowered,
    options: BackendOptions,
    /// Files that mounts may show though no clause speaks of them.
    shown: Vec<AbsPath>,
    /// Private copies that mounts may show.
    copies: Vec<PrivateCopy>,
}

/// Lowers a profile for a forker and its commands; [`Draft::prove`] is still to come.
fn draft(seen: &Survey, profile: &Profile, options: BackendOptions, around: &Surroundings) -> Result<Draft, PlanError> {
    let lowered = match options.mechanism {
        Mechanism::Landlock => lower_landlock(seen, profile, options),
        Mechanism::Namespaces(maker) => lower_namespaces(seen, profile, options, maker, around),
    }?;
    Ok(Draft {
        lowered,
        options,
        shown: around.shown.clone(),
        copies: around.copies.clone(),
    })
}

impl Lowered {
    /// What mounts cover of what patterns name; none where there are no mounts, or no patterns to look for.
    pub(super) fn matches(&self, profile: &Profile) -> Option<Matches> {
        self.plan.namespaces.as_ref()?;
        Matches::seen(profile, &self.survey)
    }
}

impl Draft {
    /// Proves that the plan permits no more than the profile that it was drafted from.
    fn prove(&self, profile: &Profile) -> Result<(), PlanError> {
        let plan = &self.lowered.plan;
        match &plan.namespaces {
            None => landlock::validate(&plan.landlock, profile).and_then(|()| files_within(&plan.attributes, profile)),
            Some(namespace_plan) => {
                let view = namespaces::LayeredPlan {
                    argv: &namespace_plan.mounts.render(),
                    layer: &plan.landlock,
                    own: &namespace_plan.own,
                    copies: &self.copies,
                    loader: &self.shown,
                    new_names: NewNames::under(self.options.deny_fallback, self.options.residuals),
                };
                namespaces::validate(&view, &plan.attributes, profile, &self.lowered.survey)
            }
        }
        .map_err(PlanError::WeakPlan)?;
        let watched = plan.watched.iter().map(|filters| (Attempts::Watched, filters));
        let copies = copies_in(plan.namespaces.as_ref());
        for (attempts, filters) in std::iter::once((Attempts::Unseen, &plan.filters)).chain(watched) {
            let settings_for = |role| settings(profile, role, attempts, copies, self.options);
            for role in [Role::Forker, Role::Command] {
                seccomp::validate(filters.of(role), settings_for(role)).map_err(PlanError::WeakFilter)?;
            }
            // That mounts keep the attributes was proven when the plan was made: only then does it have these.
            let Some(stack) = filters.of_mounted() else { continue };
            seccomp::validate(stack, mounted(settings_for(Role::Command))).map_err(PlanError::WeakFilter)?;
        }
        Ok(())
    }
}

fn lower_namespaces(
    seen: &Survey,
    profile: &Profile,
    options: BackendOptions,
    maker: Maker,
    around: &Surroundings,
) -> Result<Lowered, PlanError> {
    let lowering = namespaces::Options {
        abi: options.landlock_abi,
        deny_fallback: options.deny_fallback,
        residuals: options.residuals,
        tmp_bytes: tmp_bytes(profile),
        protect: around.protect.clone(),
        copies: around.copies.clone(),
        loader: around.shown.clone(),
        veiled: around.veiled.clone(),
        start: around.start.clone(),
    };
    let survey = namespaces::survey_after(seen, profile, &lowering)?;
    let namespaces::Lowered {
        plan: mounts,
        layer,
        own,
        statuses,
        protected,
        matched,
    } = namespaces::lower(profile, &survey, &lowering)?;
    let as_paths = |paths: Vec<AbsPath>| {
        paths
            .into_iter()
            .map(|path| path.as_path().as_os_str().to_owned())
            .collect()
    };
    let namespace_plan = NamespacePlan {
        made_by: maker.made_by(),
        mounts,
        own,
        protected: as_paths(protected),
        matched: as_paths(matched),
        exit: NetworkExit::of(&profile.network),
    };
    let mut plan = complete(layer, Some(namespace_plan), profile, options)?;
    if mounts_keep_attributes(&plan, profile, &around.copies, &survey).is_ok() {
        let settings = settings(
            profile,
            Role::Command,
            Attempts::Unseen,
            copies_in(plan.namespaces.as_ref()),
            options,
        );
        plan.filters.mounted = Some(seccomp::lower(mounted(settings))?);
    }
    Ok(Lowered { plan, statuses, survey })
}

fn landlock_options(options: BackendOptions) -> landlock::Options {
    landlock::Options {
        abi: options.landlock_abi,
        deny_fallback: options.deny_fallback,
        residuals: options.residuals,
    }
}

fn lower_landlock(seen: &Survey, profile: &Profile, options: BackendOptions) -> Result<Lowered, PlanError> {
    let lowering = landlock_options(options);
    let survey = landlock::survey_after(seen, profile, &lowering)?;
    let landlock::Lowered { plan: layer, statuses } = landlock::lower(profile, &survey, &lowering)?;
    let plan = complete(layer, None, profile, options)?;
    Ok(Lowered { plan, statuses, survey })
}

/// Whether mounts keep commands from changing attributes where the plan does not permit it.
fn mounts_keep_attributes(
    plan: &Plan,
    profile: &Profile,
    copies: &[PrivateCopy],
    survey: &Survey,
) -> Result<(), Witness> {
    namespaces::attributes_within(
        plan.namespaces.as_ref(),
        profile.unix_sockets,
        copies,
        &plan.attributes,
        survey,
    )
}

fn complete(
    landlock: LandlockPlan,
    namespace_plan: Option<NamespacePlan>,
    profile: &Profile,
    options: BackendOptions,
) -> Result<Plan, PlanError> {
    let copies = copies_in(namespace_plan.as_ref());
    let made = |role, attempts| seccomp::lower(settings(profile, role, attempts, copies, options));
    let filters = |attempts| -> Result<Filters, SeccompError> {
        Ok(Filters {
            forker: made(Role::Forker, attempts)?,
            command: made(Role::Command, attempts)?,
            mounted: None,
        })
    };
    let watched = match options.attempts {
        Attempts::Unseen => None,
        Attempts::Watched | Attempts::WatchedWithLooks => Some(filters(Attempts::Watched)?),
    };
    let private = namespace_plan
        .as_ref()
        .and_then(|namespace_plan| namespace_plan.mounts.private_directory());
    let private = private.and_then(|at| AbsPath::new(at).ok());
    Ok(Plan {
        landlock,
        filters: filters(Attempts::Unseen)?,
        watched,
        attributes: attributes::lower(&profile.grants, &profile.denies, private.as_ref()),
        namespaces: namespace_plan,
    })
}

/// Lowers a profile to a Seatbelt text, and proves that the text permits no more than the profile.
pub fn lower_seatbelt(profile: &Profile, residuals: Residuals) -> Result<(SeatbeltPlan, Vec<ClauseStatus>), PlanError> {
    let survey = seatbelt::survey(profile)?;
    let seatbelt::Lowered { plan, statuses } = seatbelt::lower(profile, &survey, &seatbelt::Options { residuals })?;
    seatbelt::validate(&plan, profile).map_err(PlanError::WeakPlan)?;
    Ok((plan, statuses))
}

/// Checks that a profile derived for a call permits no more than the config's own words, nor than any ceiling over them.
pub fn check_against(config: &Policy, call: &Call, profile: &Profile) -> Result<(), PlanError> {
    files_within(profile, config).map_err(PlanError::WeakProfile)?;
    check_network_against(config, call, profile)
}

/// The part of [`check_against`] that is not about files.
pub(super) fn check_network_against(config: &Policy, call: &Call, profile: &Profile) -> Result<(), PlanError> {
    let own = call.network.as_ref().unwrap_or(&config.network);
    let ceilings = config.ceilings.all.iter();
    let ceilings = ceilings.map(|ceiling| (&ceiling.policy.network, "the ceiling"));
    for (words, tight) in std::iter::once((own, "the config")).chain(ceilings) {
        let witness = |what| Witness {
            what: Permission::Network(what),
            wide: "the profile",
            tight,
        };
        let within = profile.network.within(words);
        within.map_err(|what| PlanError::WeakProfile(witness(what)))?;
    }
    match (&call.approved_roots, &profile.network) {
        // Whoever is not asked about a command is not asked about its hosts either.
        (ApprovedRoots::None | ApprovedRoots::InAdvance(_), Network::Hosts(list)) if list.asks() => {
            Err(PlanError::Unasked(list.to_string()))
        }
        (
            ApprovedRoots::None | ApprovedRoots::InAdvance(_) | ApprovedRoots::Named(_) | ApprovedRoots::All,
            Network::Off | Network::Hosts(_) | Network::Full,
        ) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::backend::landlock::Beneath;
    use crate::backend::namespaces::{BindAccess, Step};
    use crate::config::Context;
    use crate::config::amend::load_amended;
    use crate::policy::DenyFallback;
    use crate::policy::{Grant, Origin, Rights, UnixSockets};
    use crate::profile::derive;

    /// A profile that reads one directory.
    fn derived() -> Profile {
        let context = Context::host();
        let text = "extends: []\nsandbox: {paths: {a: {root: /usr/bin, mode: ro}}}\n";
        let loaded = load_amended(Path::new("/agent.yaml"), text, &context).unwrap();
        derive(&loaded.policy, &Call::of(ApprovedRoots::None))
    }

    const fn options(mechanism: Mechanism) -> BackendOptions {
        BackendOptions {
            mechanism,
            landlock_abi: 6,
            deny_fallback: DenyFallback::Refuse,
            residuals: Residuals::Report,
            attempts: Attempts::Unseen,
        }
    }

    #[test]
    fn mounts_keep_the_attributes_of_a_profile_whose_roots_are_written_whole() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap();
        let mut profile = derived();
        profile
            .grants
            .push(Grant::tree(workspace, Rights::ALL, Origin::Builtin("test")));
        let lowered =
            |profile: &Profile, mechanism| lower(profile, options(mechanism), &Surroundings::default()).unwrap();
        let kept = |profile: &Profile, mechanism| lowered(profile, mechanism).plan.filters.mounted.is_some();
        let namespaces = Mechanism::Namespaces(Maker::Stockade);
        assert!(kept(&profile, namespaces));
        assert!(!kept(&profile, Mechanism::Landlock));
        profile.unix_sockets = UnixSockets::All;
        assert!(!kept(&profile, namespaces));
    }

    /// A draft for that profile, which shows a file beside it, and the profile.
    fn drafted(mechanism: Mechanism) -> (Draft, Profile) {
        let (profile, options) = (derived(), options(mechanism));
        let around = Surroundings {
            shown: vec![AbsPath::new("/etc/passwd").unwrap()],
            ..Surroundings::default()
        };
        (draft(&Survey::default(), &profile, options, &around).unwrap(), profile)
    }

    #[test]
    fn a_mount_that_no_clause_grants_is_not_proven() {
        let (mut draft, profile) = drafted(Mechanism::Namespaces(Maker::Stockade));
        draft.prove(&profile).unwrap();
        let steps = &mut draft.lowered.plan.namespaces.as_mut().unwrap().mounts.steps;
        steps.push(Step::Bind {
            path: "/usr/bin".into(),
            access: BindAccess::Writable,
            device: 0,
            inode: 0,
            beneath: Beneath::Directory,
        });
        let refused = draft.prove(&profile);
        assert!(matches!(refused, Err(PlanError::WeakPlan(_))), "{refused:?}");
    }

    #[test]
    fn what_mounts_show_for_the_forker_alone_is_excused_by_the_draft_that_shows_it() {
        let (mut draft, profile) = drafted(Mechanism::Namespaces(Maker::Stockade));
        draft.prove(&profile).unwrap();
        draft.shown.clear();
        let refused = draft.prove(&profile);
        assert!(matches!(refused, Err(PlanError::WeakPlan(_))), "{refused:?}");
    }

    #[test]
    fn a_rule_that_no_clause_grants_is_not_proven() {
        let (mut draft, profile) = drafted(Mechanism::Landlock);
        draft.prove(&profile).unwrap();
        for rule in &mut draft.lowered.plan.landlock.rules {
            rule.path = "/etc".into();
        }
        let refused = draft.prove(&profile);
        assert!(matches!(refused, Err(PlanError::WeakPlan(_))), "{refused:?}");
    }
}
