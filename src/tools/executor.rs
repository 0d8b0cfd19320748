//! The executor: one policy, one footing, any number of calls.
//!
//! It derives the profile of each call, holds it against the config, and starts the confined worker of a profile
//! when the first call needs it. [`super::shell`] uses it.

use std::sync::{Arc, OnceLock};

use super::anew;
use super::call::ToolError;
use super::deciding::{Another, Deciding};
use super::explain::standing::Standings;
use super::fall;
use super::footing::{Chosen, Footing};
use super::git::{self, Bounds};
use super::narrowing::Narrowing;
use super::on_record::end;
use super::places::Places;
use super::plan::{self, Ground, Lowered, PlanError, Surroundings};
use super::private::{leaves_no_place, may_lie, show, worker_profile};
use super::recorder::Recorder;
use super::regime::RegimeLine;
use super::restored::Recovered;
use super::watched;
use super::workers::{Derived, Workers};
use crate::approval::{Approver, CancelHandle, Controller};
use crate::backend::Regime;
use crate::backend::status::refuse_hosts;
use crate::confine::wire::protocol::ProtectSetup;
use crate::confine::{Confinement, ForkerFor, Named, Place, Session, Setup, Supervising};
use crate::policy::{Mode, Policy};
use crate::profile::{Asked, Call, Profile, derive};

/// How many profiles are kept; a session seldom asks about more sets of roots.
pub(super) const MOST_PROFILES: usize = 32;

/// Runs calls of one session under one policy.
#[derive(Debug)]
pub struct Executor {
    pub(super) policy: Policy,
    pub(super) narrowing: Narrowing,
    pub(super) envelope: Profile,
    pub(super) chosen: Chosen,
    pub(super) deciding: Deciding,
    pub(super) places: Places,
    pub(super) workers: Workers,
    pub(super) file_profiles: Vec<(Asked, Derived)>,
    profiles: Vec<(Call, Derived)>,
    /// The profile of a call that nobody was asked about, once somebody needs it.
    unasked: OnceLock<Profile>,
    pub(super) standings: Standings,
    /// What was put back before a call that has not ended.
    pub(super) recovered: Recovered,
    /// How often something was to be changed that cannot be told from another.
    pub(super) unknown: u64,
}

impl Executor {
    /// An executor for this policy; where the policy wants a log, one that records. On a machine that cannot confine this fails, or gives an executor
    /// that refuses every call, as the policy says.
    pub fn new(
        policy: Policy,
        narrowing: Narrowing,
        mode: Mode,
        approver: Box<dyn Approver + Send>,
        places: Places,
    ) -> Result<Self, ToolError> {
        let everything = Call::of(Asked::Everything);
        let envelope = narrowing.narrow(derive(&policy, &everything));
        let chosen = Footing::choose(&policy, &places.state).map_err(ToolError::Refused)?;
        let chosen = fall::settle(chosen, &policy, &envelope);
        plan::hold_against(&policy, &everything, &envelope)?;
        if let Footing::Confined(ground) = &chosen.footing {
            fall::protects(&policy, *ground)?;
        }
        let mode = mode.min(policy.loosest_mode());
        let recorder = Recorder::open(&policy, mode, &places)?;
        let mut controller = Controller::new(mode, approver);
        if let Some(recorder) = recorder.clone() {
            controller = controller.witnessed_by(Box::new(move |record| recorder.decided(record)));
        }
        let deciding = Deciding {
            recorder,
            ..Deciding::by(Arc::new(controller))
        };
        Ok(Self {
            policy,
            narrowing,
            envelope,
            chosen,
            deciding,
            places,
            workers: Workers::default(),
            file_profiles: Vec::new(),
            profiles: Vec::new(),
            unasked: OnceLock::new(),
            standings: Standings::default(),
            recovered: Recovered::default(),
            unknown: 0,
        })
    }

    /// An executor beside this one, with workers of its own: both run calls at once. They share who decides.
    pub(super) fn beside(&self) -> Self {
        Self {
            policy: self.policy.clone(),
            narrowing: self.narrowing.clone(),
            envelope: self.envelope.clone(),
            chosen: self.chosen.clone(),
            deciding: Deciding {
                recorder: self.deciding.recorder.as_ref().map(Recorder::beside),
                ..self.deciding.clone()
            },
            places: self.places.clone(),
            workers: Workers::default(),
            file_profiles: Vec::new(),
            profiles: Vec::new(),
            unasked: OnceLock::new(),
            standings: Standings::default(),
            recovered: self.recovered.clone(),
            unknown: 0,
        }
    }

    /// Withdraws an open question through this handle of the approver when the call is stopped.
    #[must_use]
    pub fn withdrawing_with(mut self, handle: CancelHandle) -> Self {
        self.deciding.withdraw = Some(handle);
        self
    }

    /// Asks one of these for each question that comes up while a command runs.
    #[must_use]
    pub fn asking_meanwhile(mut self, another: Another) -> Self {
        self.deciding.another = Some(another);
        self
    }

    /// Whether commands of this session run unconfined.
    pub fn is_unconfined(&self) -> bool {
        matches!(self.chosen.footing, Footing::Unconfined(_))
    }

    /// Whether commands run in namespaces.
    pub(super) fn is_in_namespaces(&self) -> bool {
        match &self.chosen.footing {
            Footing::Confined(ground) => ground.walls.regime() == Regime::Namespaces,
            Footing::Unconfined(_) | Footing::Refused(_) => false,
        }
    }

    /// What holds, in one line.
    pub fn regime_line(&self) -> Result<RegimeLine, ToolError> {
        let line = self.regime_line_of(&self.envelope)?;
        let own = self.policy.own_networks();
        let own = own.map(|(whose, own)| (whose, self.narrowing.narrow_network(&own.network)));
        Ok(if self.is_unconfined() {
            line
        } else {
            line.with_own_networks(&self.envelope.network, own)
                .with_unasked(&self.policy, self.unasked())
        })
    }

    /// The same for what runs under this profile.
    pub(super) fn regime_line_of(&self, profile: &Profile) -> Result<RegimeLine, ToolError> {
        match &self.chosen.footing {
            Footing::Confined(ground) => Ok(RegimeLine::confined(
                *ground,
                profile,
                &self.policy,
                self.chosen.fallen.as_deref(),
            )),
            Footing::Unconfined(why) => Ok(RegimeLine::unconfined(why)),
            Footing::Refused(why) => Err(ToolError::Refused(why.clone())),
        }
    }

    /// Ends every worker and waits until nothing of them is left; an error says that the end is not on record.
    pub async fn finish(self) -> Result<(), ToolError> {
        let untold = self.record_untold().await;
        self.workers.finish().await;
        untold.and(end(self.deciding.recorder.as_ref()).await)
    }

    /// The profile of a call that nobody was asked about.
    fn unasked(&self) -> &Profile {
        let derived = || self.narrowing.narrow(derive(&self.policy, &Call::of(Asked::Nobody)));
        self.unasked.get_or_init(derived)
    }

    /// The profile of a call, held against the config as [`held`] does.
    fn held(&self, call: &Call) -> Result<Profile, ToolError> {
        let profile = if *call == Call::of(Asked::Nobody) {
            self.unasked().clone()
        } else {
            self.narrowing.narrow(derive(&self.policy, call))
        };
        // The same clauses about files are held against the same config for the envelope.
        if profile.grants == self.envelope.grants && profile.denies == self.envelope.denies {
            plan::hold_network_against(&self.policy, call, &profile)?;
        } else {
            plan::hold_against(&self.policy, call, &profile)?;
        }
        Ok(profile)
    }

    /// The profile of a call; everything that any call of the session may do is in the envelope. The policy of an
    /// executor stays what it is, so a profile that was held against it is not derived again.
    pub(super) fn profile(&mut self, call: &Call) -> Result<Derived, ToolError> {
        if let Some((_, known)) = self.profiles.iter().find(|(key, _)| key == call) {
            return Ok(known.clone());
        }
        let derived = Derived::of(if *call == Call::of(Asked::Everything) {
            self.envelope.clone()
        } else {
            self.held(call)?
        });
        if self.profiles.len() >= MOST_PROFILES {
            self.profiles.remove(0);
        }
        self.profiles.push((call.clone(), derived.clone()));
        Ok(derived)
    }

    /// Starts a worker for this profile in the regime of the session.
    pub(super) async fn start_in_regime(
        &mut self,
        profile: &Profile,
        worker_for: ForkerFor,
    ) -> Result<Confinement, ToolError> {
        let envelope = &self.envelope;
        if let Some(why) = leaves_no_place(envelope) {
            return Err(ToolError::Refused(why));
        }
        let place = match &self.chosen.footing {
            Footing::Confined(ground) => ground.walls.place(&profile.network),
            Footing::Unconfined(_) => Place::Host,
            Footing::Refused(why) => return Err(ToolError::Refused(why.clone())),
        };
        let protect = watched::setup(&self.policy, envelope, &self.places.state, &self.places.person);
        let named = Named::choose(|base| may_lie(base, envelope, place))?;
        let mut stage = Supervising::spawn(&named, protect.clone(), place).await?;
        let (session, planned) = match self
            .planned(&mut stage, (named, place), profile, protect.as_ref())
            .await
        {
            Ok(ready) => ready,
            Err(error) => {
                let last = stage.end().await;
                self.recovered.add(last.recovered);
                return Err(error.because(last.refusal));
            }
        };
        let setup = Setup {
            plan: planned.as_ref().map(|(lowered, _)| lowered.plan.clone()),
            forker_for: worker_for,
            session,
        };
        let mut worker = Confinement::start(stage, setup).await?;
        let begun = async {
            // Whether it can be carried out is known only now.
            worker.ready().await?;
            let statuses = planned.as_ref().map(|(lowered, _)| lowered.statuses.as_slice());
            self.record_profile(&mut worker, profile, statuses).await
        }
        .await;
        match begun {
            Ok(()) => {
                self.workers
                    .covered
                    .note(profile, planned.as_ref().map(|(lowered, _)| lowered));
                Ok(worker)
            }
            Err(error) => {
                worker.finish().await;
                Err(error)
            }
        }
    }

    /// The session of a worker, and its plan, which a footing without confinement has none of.
    async fn planned(
        &self,
        stage: &mut Supervising,
        (named, place): (Named, Place),
        profile: &Profile,
        protect: Option<&ProtectSetup>,
    ) -> Result<(Session, Option<(Lowered, Ground)>), ToolError> {
        let session = named.create()?;
        let private = session.private();
        let bounds = Bounds {
            policy: &self.policy,
            envelope: &self.envelope,
            profile,
        };
        git::carry(&self.places.git, bounds, &private.home)
            .and_then(|()| self.places.caches.link(profile, self.others(), &private.home))
            .map_err(ToolError::Private)?;
        let planned = match &self.chosen.footing {
            Footing::Confined(ground) => {
                let profile = worker_profile(profile.clone(), &session)?;
                let around = if place.is_behind_mounts() {
                    let mut around = watched::covered(stage.present().await?, protect)?;
                    show(&session, &self.policy, &self.envelope, &mut around)?;
                    around
                } else {
                    Surroundings::default()
                };
                // What is recorded and approved is the profile that was derived, whatever it was looked at anew for.
                let (lowered, _) = anew::made(profile, |profile| plan::lower(profile, *ground, &around))?;
                Some((lowered, *ground))
            }
            Footing::Unconfined(_) => {
                refuse_hosts(&profile.network, Regime::None).map_err(PlanError::Refused)?;
                None
            }
            Footing::Refused(why) => return Err(ToolError::Refused(why.clone())),
        };
        self.recovered.add(stage.recovered().await?);
        Ok((session, planned))
    }
}

/// The profile of a call, held against the config's own words, flags applied and held again.
pub(super) fn held(policy: &Policy, narrowing: &Narrowing, call: &Call) -> Result<Profile, ToolError> {
    let profile = narrowing.narrow(derive(policy, call));
    plan::hold_against(policy, call, &profile)?;
    Ok(profile)
}
