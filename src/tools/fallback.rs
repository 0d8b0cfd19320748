//! From namespaces to Landlock alone, where the config leaves the choice: when they cannot hold one of its clauses that
//! Landlock can, or cannot be made when it comes to it.
//!
//! The rule for each clause is that of the regime that is taken then. A question that named another regime
//! counts for nothing: such a call is refused, and the next one asks anew.

use nix::errno::Errno;

use super::call::ToolError;
use super::enforcement::{ChosenRegime, Enforcement, short, unavailable};
use super::narrowing::Narrowing;
use super::plan::{self, BackendOptions, Mechanism, PlanError, Surroundings};
use super::probe_cache;
use super::profiles::checked_profile;
use super::session_directory::may_lie;
use super::starter::Starter;
use crate::backend::protected::protected;
use crate::backend::survey::Survey;
use crate::confine::{ConfineError, Confinement, ForkerFor, SessionName, Step};
use crate::policy::{Policy, Right};
use crate::profile::{ApprovedRoots, Call, Profile};

/// Whether protected names may be held as this regime holds them.
pub(super) fn can_protect(policy: &Policy, options: BackendOptions) -> Result<(), PlanError> {
    if policy.roots.iter().any(|root| root.rights.has(Right::Write)) {
        let Policy {
            protect,
            protect_fallback,
            residuals,
            ..
        } = policy;
        protected(protect, *protect_fallback, *residuals, options.mechanism.regime())?;
    }
    Ok(())
}

/// Checks that a backend with these options can enforce a profile.
fn can_enforce(policy: &Policy, profile: &Profile, options: BackendOptions) -> Result<(), PlanError> {
    can_enforce_after(&Survey::default(), policy, profile, options)
}

/// The same, where what was `seen` is not looked at again.
fn can_enforce_after(
    seen: &Survey,
    policy: &Policy,
    profile: &Profile,
    options: BackendOptions,
) -> Result<(), PlanError> {
    can_protect(policy, options)?;
    plan::lower_after(seen, profile, options, &Surroundings::default()).map(drop)
}

/// Checks that a profile can be enforced in the chosen regime, where nothing is started; the regime that a start would take, which is
/// the one below where only that one can.
///
/// # Errors
/// What a start under this profile would be refused with.
pub(super) fn settle(
    chosen: ChosenRegime,
    seen: &Survey,
    policy: &Policy,
    profile: &Profile,
) -> Result<ChosenRegime, ToolError> {
    let Enforcement::Confined(options) = &chosen.enforcement else {
        return Ok(chosen);
    };
    let refused = match can_enforce_after(seen, policy, profile, *options) {
        Ok(()) => return Ok(chosen),
        Err(refused) => refused,
    };
    match (&refused, chosen.fallback) {
        (PlanError::Refused(refusal), Some(fallback)) if can_enforce_after(seen, policy, profile, fallback).is_ok() => {
            Ok(ChosenRegime {
                enforcement: Enforcement::Confined(fallback),
                fallback_reason: Some(cannot_hold(&refusal.to_string())),
                fallback: None,
            })
        }
        (_, _) => Err(advised(&chosen, refused.into())),
    }
}

/// The choice for a policy with this envelope: the regime below where only that one can hold it.
pub(super) fn choose(chosen: ChosenRegime, policy: &Policy, envelope: &Profile) -> ChosenRegime {
    let (Enforcement::Confined(options), Some(fallback)) = (&chosen.enforcement, chosen.fallback) else {
        return chosen;
    };
    if !may_need_more(envelope) {
        return chosen;
    }
    match can_enforce(policy, envelope, *options) {
        Err(PlanError::Refused(refusal)) if can_enforce(policy, envelope, fallback).is_ok() => ChosenRegime {
            enforcement: Enforcement::Confined(fallback),
            fallback_reason: Some(cannot_hold(&refusal.to_string())),
            fallback: None,
        },
        // What both refuse, the stronger one says why.
        Ok(()) | Err(_) => chosen,
    }
}

/// Whether it may well be that mounts cannot hold the profile, so that it is worth a look before anybody is told
/// anything or asked: they cover what is denied, and show one by one what matches. The rest comes out at the start.
fn may_need_more(envelope: &Profile) -> bool {
    const MANY: usize = 1_000;
    let grants = &envelope.grants;
    !envelope.denies.is_empty() || grants.len() > MANY || grants.iter().any(|grant| grant.suffixes.is_some())
}

/// Whether too little of something was left at that moment, which a command can bring about as well and which says
/// nothing of namespaces.
fn is_scarcity(errno: i32) -> bool {
    matches!(
        Errno::from_raw(errno),
        Errno::EAGAIN | Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE | Errno::EINTR | Errno::ESRCH
    )
}

fn cannot_hold(why: &str) -> String {
    format!("namespaces cannot hold this config: {}", short(why))
}

/// Whether what is permitted this call could be held under another policy of the same settings, where this one's is; nothing
/// is started.
///
/// # Errors
/// What cannot be held.
pub(super) fn can_enforce_call(
    chosen: &ChosenRegime,
    narrowing: &Narrowing,
    policy: &Policy,
    call: &Call,
) -> Result<(), ToolError> {
    let Enforcement::Confined(options) = &chosen.enforcement else {
        return Ok(());
    };
    let envelope = checked_profile(policy, narrowing, &Call::of(ApprovedRoots::All))?;
    let profile = checked_profile(policy, narrowing, call)?;
    let on = |options: BackendOptions| -> Result<(), ToolError> {
        let place = options.mechanism.place(&profile.network);
        SessionName::check_available(|base| may_lie(base, &envelope, place))?;
        Ok(can_enforce(policy, &profile, options)?)
    };
    let refused = match on(*options) {
        Ok(()) => return Ok(()),
        Err(refused) => refused,
    };
    match (&refused, chosen.fallback) {
        (ToolError::Plan(PlanError::Refused(_)), Some(fallback)) => on(fallback).map_err(|_| refused),
        (_, _) => Err(refused),
    }
}

/// With what helps where places cannot be mounted and another regime mounts none, and with why it is not the strongest
/// regime that refuses.
fn advised(chosen: &ChosenRegime, error: ToolError) -> ToolError {
    match error {
        ToolError::Plan(PlanError::Refused(refusal)) => match &chosen.fallback_reason {
            Some(why) => ToolError::Refused(format!(
                "{refusal}. Landlock alone was to hold it: {why} (`stockade doctor` says what namespaces need)"
            )),
            None => PlanError::Refused(refusal).into(),
        },
        ToolError::Confine(ConfineError::Step(failure))
            if failure.step == Step::Mounts && chosen.fallback.is_some() =>
        {
            ToolError::Refused(format!(
                "failed to confine: {failure}; nothing was run. What lies there was changed or closed meanwhile; \
                 try again, and if it stays so look there, or say `--backend landlock`"
            ))
        }
        other => other,
    }
}

impl Starter {
    /// Starts a forker for this profile; in the regime below where the one that was chosen does not come about.
    pub(super) async fn start(
        &mut self,
        profile: &Profile,
        forker_for: ForkerFor,
        approved_roots: &ApprovedRoots,
    ) -> Result<Confinement, ToolError> {
        let error = match Box::pin(self.start_covering(profile, forker_for)).await {
            Ok(forker) => return Ok(forker),
            Err(error) => error,
        };
        let Some((fallback, why)) = self.fallback(profile, &error) else {
            return Err(advised(&self.chosen, error));
        };
        self.chosen = ChosenRegime {
            enforcement: Enforcement::Confined(fallback),
            fallback_reason: Some(why.clone()),
            fallback: None,
        };
        match approved_roots {
            ApprovedRoots::None | ApprovedRoots::InAdvance(_) => {
                Box::pin(self.start_covering(profile, forker_for)).await
            }
            ApprovedRoots::All | ApprovedRoots::Named(_) => Err(ToolError::Refused(format!(
                "{why}. What was asked was about the `namespaces` regime, so nothing was run; try again, or say \
                 `--backend landlock` (or `sandbox.backend: landlock`)"
            ))),
        }
    }

    /// What to take in place of namespaces that did not come to be, and why.
    fn fallback(&self, profile: &Profile, error: &ToolError) -> Option<(BackendOptions, String)> {
        let why = match error {
            ToolError::Plan(PlanError::Refused(refusal)) => cannot_hold(&refusal.to_string()),
            // A place that cannot be mounted says nothing of namespaces: a command may have swapped it or closed the way
            // to it at that moment, and nobody is to choose the regime like that.
            ToolError::Confine(ConfineError::Step(failure))
                if failure.step == Step::Namespaces && !is_scarcity(failure.errno) =>
            {
                // Also where nothing is taken in their place: the next start is to look anew.
                probe_cache::remove(&self.user_paths.state);
                unavailable(&failure.to_string())
            }
            _ => return None,
        };
        let fallback = self.chosen.fallback?;
        let stands = match &self.chosen.enforcement {
            Enforcement::Confined(options) => matches!(options.mechanism, Mechanism::Namespaces(_)),
            Enforcement::Unconfined(_) | Enforcement::Refused(_) => false,
        };
        (stands && can_enforce(&self.session.policy, profile, fallback).is_ok()).then_some((fallback, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_up_for_a_moment_says_nothing_of_namespaces() {
        for errno in [Errno::EAGAIN, Errno::ENOMEM, Errno::EMFILE, Errno::ENFILE] {
            assert!(is_scarcity(errno as i32), "{errno}");
        }
        for errno in [Errno::EPERM, Errno::EACCES, Errno::ENOSYS, Errno::EINVAL, Errno::ENOSPC] {
            assert!(!is_scarcity(errno as i32), "{errno}");
        }
    }
}
