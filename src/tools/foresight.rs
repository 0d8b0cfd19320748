//! What is known before anybody is asked anything: what a policy stands on here, and what its calls may do at most.
//!
//! The first command of a program that runs only one waits longest for the look at its roots and for namespaces. Where
//! nobody is to be asked, what the stage must know for these follows from the config and the machine alone; so it is told
//! at once, and begins while the rest is made ready and held against the config. It is told that again, or it is
//! ended, and nothing comes of it but what it put back of protected names.

use std::sync::OnceLock;

use super::call::{ShellCall, ToolError};
use super::fall;
use super::filters;
use super::footing::{Chosen, Footing};
use super::narrowing::Narrowing;
use super::permission::{judged, needs_answer};
use super::places::Places;
use super::plan;
use super::private::{leaves_no_place, may_lie};
use super::search::is_in_reach;
use super::shell::NAME;
use super::{remembered, watched};
use crate::backend::namespaces::NetworkNamespace;
use crate::config::{Context, trust};
use crate::confine::{Afterwards, Named, Place, ahead};
use crate::policy::{AbsPath, BackendChoice, Policy, Requirement};
use crate::profile::{Asked, Call, Profile, derive};

/// Begins with what most commands get, for a program that has not read its config yet: `backend` is what it was told, if
/// it was. What the config wants instead is made when that is known.
pub fn prepare_usual(backend: Option<BackendChoice>, context: &Context) {
    let worked = || trust::state_dir(context).is_some_and(|state| remembered::is_kept(state.as_path()));
    filters::prepare_usual_filters(match backend {
        Some(BackendChoice::Namespaces | BackendChoice::Bwrap) => NetworkNamespace::Own,
        Some(BackendChoice::Auto) | None if worked() => NetworkNamespace::Own,
        Some(BackendChoice::Landlock | BackendChoice::Auto) | None => NetworkNamespace::Host,
    });
}

/// A policy on this machine, before there is anybody who answers for it; an [`Executor`](super::Executor) is made of it.
#[derive(Debug)]
pub struct Prospect {
    pub(super) policy: Policy,
    pub(super) narrowing: Narrowing,
    pub(super) places: Places,
    pub(super) envelope: Profile,
    pub(super) chosen: Chosen,
    /// Set once the envelope was held against the policy.
    pub(super) envelope_held: OnceLock<()>,
    /// What a worker does after a command.
    pub(super) afterwards: Afterwards,
}

impl Prospect {
    /// What holds commands under this policy, and what they may do at most, held against it.
    pub fn of(policy: Policy, narrowing: Narrowing, places: Places) -> Result<Self, ToolError> {
        Self::made(policy, narrowing, places, None)
    }

    /// The same for a program that makes one call: the stage that was started ahead is told what it will need to know for
    /// it.
    ///
    /// While a question is open nobody may have looked: what a person changes meanwhile is theirs. What the call may do at most
    /// is held against the policy while the worker confines itself, which is asked for nothing before; what holds may have been told by then.
    ///
    /// For that call alone: its HOME and TMPDIR go soon after it, also while the executor lives, and a further command gets others. Make no
    /// calls of file tools with it: one may meet a worker that is about to leave, and fail.
    pub fn foreseeing(
        policy: Policy,
        narrowing: Narrowing,
        places: Places,
        call: &ShellCall,
    ) -> Result<Self, ToolError> {
        Self::made(policy, narrowing, places, Some(call))
    }

    fn made(policy: Policy, narrowing: Narrowing, places: Places, only: Option<&ShellCall>) -> Result<Self, ToolError> {
        let everything = Call::of(Asked::Everything);
        let envelope = narrowing.narrow(derive(&policy, &everything));
        if let Some(why) = only.and_then(|_| leaves_no_place(&envelope)) {
            return Err(ToolError::Refused(why));
        }
        let is_foreseen = only.is_some_and(|call| asks_nobody(&policy, &envelope, call));
        let tell = |place| {
            if is_foreseen {
                announce(&policy, &envelope, &places, place);
            }
        };
        // Here nothing else is to be had, so nobody waits for what the machine can do.
        let is_certain = match policy.backend {
            BackendChoice::Landlock => true,
            BackendChoice::Auto | BackendChoice::Namespaces | BackendChoice::Bwrap => false,
        };
        if is_certain {
            tell(Place::Host);
        }
        let chosen = Footing::choose(&policy, &places.state).map_err(ToolError::Refused)?;
        let chosen = fall::settle(chosen, &policy, &envelope);
        if let (Footing::Confined(ground), false) = (&chosen.footing, is_certain) {
            tell(ground.walls.place(&envelope.network));
        }
        let envelope_held = OnceLock::new();
        if !is_foreseen {
            plan::hold_against(&policy, &everything, &envelope)?;
            envelope_held.get_or_init(|| ());
        }
        if let Footing::Confined(ground) = &chosen.footing {
            fall::protects(&policy, *ground)?;
            filters::prepare_filters(&envelope, *ground);
        }
        Ok(Self {
            policy,
            narrowing,
            places,
            envelope,
            chosen,
            envelope_held,
            afterwards: only.map_or(Afterwards::Waits, |_| Afterwards::Leaves),
        })
    }
}

/// Whether it is certain that nobody will be asked about the call.
fn asks_nobody(policy: &Policy, envelope: &Profile, call: &ShellCall) -> bool {
    let Ok(directory) = AbsPath::new(&call.directory) else {
        return false;
    };
    let judgement = judged(policy, &call.command, (&directory, &directory));
    // Which file a name is may make it a question.
    if needs_answer(policy, &judgement) && is_in_reach(&call.environment, envelope) {
        return false;
    }
    match judgement.requirement {
        // What is said of the tool may ask all the same.
        Requirement::PreApproved => !policy.tools.contains_key(NAME),
        Requirement::Blocked | Requirement::NeedsApproval => false,
    }
}

/// Tells the stage that was started ahead for which session it is, and where its worker will stand.
fn announce(policy: &Policy, envelope: &Profile, places: &Places, place: Place) {
    let protect = watched::setup(policy, envelope, &places.state, &places.person);
    if protect.is_none() && !place.is_behind_mounts() {
        return;
    }
    // Where there is no place for a session, that is complained about when it is needed.
    if let Ok(named) = Named::choose(|base| may_lie(base, envelope, place)) {
        ahead::announce(named, protect, place);
    }
}
