//! A profile → a forker that is confined to it, in the regime of the session.

use std::sync::Arc;

use super::call::ToolError;
use super::covered_names::CoveredNames;
use super::enforcement::{ChosenRegime, Enforcement};
use super::git::{self, Bounds};
use super::on_record::record_profile;
use super::plan::{self, BackendOptions, Lowered, PlanError, Surroundings};
use super::protected_names;
use super::recorder::Recorder;
use super::replaced_files;
use super::restored::Recovered;
use super::search::UngrantedFiles;
use super::session_directory::{forker_profile, leaves_no_place, may_lie, show};
use super::session_policy::SessionPolicy;
use super::user_paths::UserPaths;
use crate::backend::Regime;
use crate::backend::status::refuse_hosts;
use crate::backend::survey::SurveyError;
use crate::confine::wire::protocol::ProtectSetup;
use crate::confine::{Confinement, ForkerFor, ForkerLocation, Session, SessionName, Setup, SupervisorHandle};
use crate::policy::AbsPath;
use crate::profile::Profile;

/// How often a forker is started until it covers what is there.
const STARTS: usize = 5;

#[derive(Debug)]
pub(super) struct Starter {
    pub(super) session: Arc<SessionPolicy>,
    pub(super) chosen: ChosenRegime,
    pub(super) user_paths: UserPaths,
    pub(super) recorder: Option<Recorder>,
    /// What was put back before a call that has not ended.
    pub(super) recovered: Recovered,
    /// What the mounts of each forker cover of what patterns deny.
    pub(super) covered: CoveredNames,
    /// The directory that commands start in, where no root is around it.
    pub(super) start: Option<AbsPath>,
}

impl Starter {
    pub(super) fn beside(&self) -> Self {
        Self {
            session: Arc::clone(&self.session),
            chosen: self.chosen.clone(),
            user_paths: self.user_paths.clone(),
            recorder: self.recorder.as_ref().map(Recorder::beside),
            recovered: self.recovered.clone(),
            covered: CoveredNames::default(),
            start: self.start.clone(),
        }
    }

    /// A new forker whose mounts cover what patterns name. A name that was moved while the plan was made, from one directory to
    /// another, may be missing in it: so all is looked at again behind the mounts.
    pub(super) async fn start_covering(
        &mut self,
        profile: &Profile,
        forker_for: ForkerFor,
    ) -> Result<Confinement, ToolError> {
        for _ in 0..STARTS {
            let forker = self.start_in_regime(profile, forker_for).await?;
            match self.covered.is_outdated(profile) {
                Ok(false) => return Ok(forker),
                Ok(true) => forker.finish().await,
                Err(error) => {
                    forker.finish().await;
                    return Err(error.into());
                }
            }
        }
        let first = self.session.policy.roots.first();
        let root = first.map_or_else(AbsPath::root, |root| root.path.clone());
        Err(PlanError::Survey(SurveyError::Busy(root)).into())
    }

    /// Starts a forker for this profile in the regime of the session.
    async fn start_in_regime(&mut self, profile: &Profile, forker_for: ForkerFor) -> Result<Confinement, ToolError> {
        let envelope = &self.session.envelope;
        if let Some(why) = leaves_no_place(envelope) {
            return Err(ToolError::Refused(why));
        }
        let place = match &self.chosen.enforcement {
            Enforcement::Confined(options) => options.mechanism.place(&profile.network),
            Enforcement::Unconfined(_) => ForkerLocation::Host,
            Enforcement::Refused(why) => return Err(ToolError::Refused(why.clone())),
        };
        let protect = protected_names::setup(
            &self.session.policy,
            envelope,
            &self.user_paths.state,
            &self.user_paths.person,
        );
        let named = SessionName::choose(|base| may_lie(base, envelope, place))?;
        let mut supervisor = SupervisorHandle::spawn(&named, protect.clone(), place).await?;
        let (session, planned) = match self
            .planned(&mut supervisor, (named, place), profile, protect.as_ref())
            .await
        {
            Ok(ready) => ready,
            Err(error) => {
                let last = supervisor.end().await;
                self.recovered.add(last.recovered);
                return Err(error.because(last.refusal));
            }
        };
        let setup = Setup {
            plan: planned.as_ref().map(|(lowered, _)| lowered.plan.clone()),
            forker_for,
            session,
        };
        let mut forker = Confinement::start(supervisor, setup).await?;
        let begun = async {
            // Whether it can be carried out is known only now.
            forker.ready().await?;
            let statuses = planned.as_ref().map(|(lowered, _)| lowered.statuses.as_slice());
            record_profile(
                self.recorder.as_ref(),
                &mut forker,
                profile,
                self.chosen.regime_name(),
                statuses,
            )
            .await
        }
        .await;
        match begun {
            Ok(()) => {
                self.covered.note(profile, planned.as_ref().map(|(lowered, _)| lowered));
                Ok(forker)
            }
            Err(error) => {
                forker.finish().await;
                Err(error)
            }
        }
    }

    /// The session of a forker, and its plan, which an unconfined session has none of.
    async fn planned(
        &self,
        supervisor: &mut SupervisorHandle,
        (named, place): (SessionName, ForkerLocation),
        profile: &Profile,
        protect: Option<&ProtectSetup>,
    ) -> Result<(Session, Option<(Lowered, BackendOptions)>), ToolError> {
        let session = named.create()?;
        let private = session.private();
        let bounds = Bounds {
            policy: &self.session.policy,
            envelope: &self.session.envelope,
            profile,
        };
        git::carry(&self.user_paths.git, bounds, &private.home)
            .and_then(|()| {
                self.user_paths
                    .caches
                    .link(profile, UngrantedFiles::of(&self.chosen), &private.home)
            })
            .map_err(ToolError::Private)?;
        let planned = match &self.chosen.enforcement {
            Enforcement::Confined(options) => {
                let profile = forker_profile(profile.clone(), &session)?;
                let around = if place.is_behind_mounts() {
                    let mut around = protected_names::covered(supervisor.present().await?, protect)?;
                    show(&session, &self.session.policy, &self.session.envelope, &mut around)?;
                    around.start.clone_from(&self.start);
                    around
                } else {
                    Surroundings::default()
                };
                // What is recorded and approved is the profile that was derived, whatever it was looked at anew for.
                let (lowered, _) =
                    replaced_files::retry_with_current(profile, |profile| plan::lower(profile, *options, &around))?;
                Some((lowered, *options))
            }
            Enforcement::Unconfined(_) => {
                refuse_hosts(&profile.network, Regime::None).map_err(PlanError::Refused)?;
                None
            }
            Enforcement::Refused(why) => return Err(ToolError::Refused(why.clone())),
        };
        self.recovered.add(supervisor.recovered().await?);
        Ok((session, planned))
    }
}
