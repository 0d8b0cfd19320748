//! What a start would come to on this machine, where nothing is started: what `stockade check` says, and what a server refuses at once.

use super::call::ToolError;
use super::enforcement::{ChosenRegime, Enforcement};
use super::fallback;
use super::narrowing::Narrowing;
use super::plan::{self, PlanError};
use super::session::Session;
use super::session_directory::{leaves_no_place, may_lie};
use super::session_policy::SessionPolicy;
use super::user_paths::UserPaths;
use crate::backend::survey::Survey;
use crate::config::ABSENT;
use crate::confine::{ForkerLocation, SessionName};
use crate::policy::{Mode, Policy};
use crate::profile::{ApprovedRoots, Call, Profile, derive};

/// The regime that commands of a policy would run in on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreseen {
    /// `namespaces`, `landlock` or `none`.
    pub regime: &'static str,
    /// Why nothing would confine them, where nothing does.
    pub unconfined: Option<String>,
    /// Why it is not the strongest regime, where that was to be taken.
    pub fallback: Option<String>,
    /// Which calls it refuses all the same: those of a rule or tool with a network of its own.
    pub refused: Vec<String>,
}

/// What commands of this policy would run in.
///
/// # Errors
/// What a start would be refused with: of a command that nobody was asked about, or of one that was approved.
pub fn foresee(policy: &Policy, narrowing: &Narrowing, places: &UserPaths) -> Result<Foreseen, ToolError> {
    let session = SessionPolicy::of(policy.clone(), narrowing.clone());
    let SessionPolicy { policy, envelope, .. } = &session;
    let chosen = Enforcement::choose(policy, &places.state).map_err(ToolError::Refused)?;
    plan::check_against(policy, &Call::of(ApprovedRoots::All), envelope)?;
    chosen.ensure_usable()?;
    let unasked = narrowing.narrow(derive(policy, &Call::of(ApprovedRoots::None)));
    // Roots that a start makes count as there.
    let missing = policy.roots.iter().filter(|root| root.identity == ABSENT);
    let seen = Survey::foreseeing(missing.map(|root| &root.path), ABSENT);
    let chosen = settle(chosen, &seen, &session, envelope)?;
    let chosen = settle(chosen, &seen, &session, &unasked)?;
    let own = policy.own_networks().filter_map(|(whose, own)| {
        let call = Call {
            network: Some(own.network.clone()),
            ..Call::of(ApprovedRoots::All)
        };
        let profile = narrowing.narrow(derive(policy, &call));
        let refused = settle(chosen.clone(), &seen, &session, &profile).err()?;
        Some(format!(
            "the network of {whose} ({}): such a call is refused: {refused}",
            own.origin
        ))
    });
    Ok(Foreseen {
        refused: own.collect(),
        regime: chosen.regime_name(),
        unconfined: match &chosen.enforcement {
            Enforcement::Unconfined(why) => Some(why.clone()),
            Enforcement::Confined(_) | Enforcement::Refused(_) => None,
        },
        fallback: chosen.fallback_reason,
    })
}

/// Checks that a session can run anything. One that refuses every call because the config says `os_sandbox_fallback: refuse_tools`
/// passes.
///
/// # Errors
/// What each of its calls would be refused with.
pub(crate) async fn check_runs(session: &Session) -> Result<(), ToolError> {
    let executor = session.shared().executor.lock().await;
    let profile = match session.mode() {
        Mode::ApproveAll => &executor.session().envelope,
        Mode::Interactive | Mode::Strict => executor.profiles.unasked(),
    };
    let chosen = executor.pool.chosen().clone();
    match settle(chosen, &Survey::default(), executor.session(), profile) {
        Err(error @ (ToolError::Refused(_) | ToolError::Plan(PlanError::Refused(_)))) => Err(error),
        // What is so at this moment may be otherwise when something is called.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The regime in which a profile of the session can be held; nothing is started.
fn settle(
    chosen: ChosenRegime,
    seen: &Survey,
    session: &SessionPolicy,
    profile: &Profile,
) -> Result<ChosenRegime, ToolError> {
    let SessionPolicy { policy, envelope, .. } = session;
    if let Some(why) = leaves_no_place(envelope) {
        return Err(ToolError::Refused(why));
    }
    let chosen = fallback::settle(chosen, seen, policy, profile)?;
    let place = match &chosen.enforcement {
        Enforcement::Confined(options) => options.mechanism.place(&profile.network),
        Enforcement::Unconfined(_) => ForkerLocation::Host,
        Enforcement::Refused(_) => return Ok(chosen),
    };
    SessionName::check_available(|base| may_lie(base, envelope, place))?;
    Ok(chosen)
}
