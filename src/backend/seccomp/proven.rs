//! Filters that were held against their table once in this process, so that the next start of the same settings need
//! not do it again, and the first one can have it done on another thread meanwhile.
//!
//! Known by what they are: what differs from them by an instruction is held against the table like any other.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::lower::{SeccompError, lower};
use super::validate::{SeccompWitness, validate};
use super::{Role, SeccompPlan, Settings, Stack};

/// What came of the filters of some settings; nothing where they could not be made or proven.
type Outcome = Arc<OnceLock<Option<SeccompPlan>>>;

/// One entry per settings that were asked for; there are few.
static OUTCOMES: Mutex<Vec<(Settings, Outcome)>> = Mutex::new(Vec::new());

/// Has the filters of these settings made and proven on a thread of its own.
///
/// For settings that will be needed soon. Where no thread can be had, it is done when they are needed.
pub fn prepare(all: impl IntoIterator<Item = Settings>) {
    let outcomes: Vec<_> = {
        let mut known = lock();
        // What is known already is made, or somebody is about to make it.
        let fresh = all.into_iter().filter_map(|settings| begin(&mut known, settings));
        fresh.collect()
    };
    if outcomes.is_empty() {
        return;
    }
    let work = move || {
        for (settings, outcome) in outcomes {
            outcome.get_or_init(|| make(settings));
        }
    };
    // Whoever needs what it makes waits for that, or makes it.
    let _started = std::thread::Builder::new().name("filters".to_owned()).spawn(work);
}

/// The filters of these settings; those that are being prepared are waited for.
pub fn made(settings: Settings) -> Result<SeccompPlan, SeccompError> {
    match prepared(settings) {
        Some(plan) => Ok(plan),
        None => lower(settings),
    }
}

/// Checks that the filters are at least as strict as the table of their settings, as [`validate()`] does: at once where they
/// are just what was proven before.
pub fn hold(stack: Stack<'_>, settings: Settings) -> Result<(), SeccompWitness> {
    let worker = Settings {
        role: Role::Worker,
        ..settings
    };
    let behind_known = stack
        .behind()
        .is_none_or(|behind| prepared(worker).as_ref() == Some(behind));
    if behind_known && stack.role() == settings.role && prepared(settings).as_ref() == Some(stack.own()) {
        return Ok(());
    }
    validate(stack, settings)?;
    // What is proven of a command's filters is proven behind those of the worker, and behind no others.
    if behind_known {
        // Of two plans that are proven, the first one is known again.
        let _known = outcome(settings).set(Some(stack.own().clone()));
    }
    Ok(())
}

fn make(settings: Settings) -> Option<SeccompPlan> {
    let plan = lower(settings).ok()?;
    match settings.role {
        Role::Worker => validate(Stack::of_worker(&plan), settings).ok()?,
        Role::Command => {
            let worker = Settings {
                role: Role::Worker,
                ..settings
            };
            let worker = outcome(worker).get_or_init(|| make(worker)).clone()?;
            validate(Stack::of_command(&worker, &plan), settings).ok()?;
        }
    }
    Some(plan)
}

/// What is proven of these settings, where somebody began with it.
fn prepared(settings: Settings) -> Option<SeccompPlan> {
    let begun = of(&lock(), settings)?;
    begun.get_or_init(|| make(settings)).clone()
}

fn outcome(settings: Settings) -> Outcome {
    let mut all = lock();
    of(&all, settings).unwrap_or_else(|| enter(&mut all, settings))
}

/// Enters settings that are not known yet.
fn begin(all: &mut Vec<(Settings, Outcome)>, settings: Settings) -> Option<(Settings, Outcome)> {
    of(all, settings).is_none().then(|| (settings, enter(all, settings)))
}

fn enter(all: &mut Vec<(Settings, Outcome)>, settings: Settings) -> Outcome {
    let outcome = Outcome::default();
    all.push((settings, outcome.clone()));
    outcome
}

fn of(all: &[(Settings, Outcome)], settings: Settings) -> Option<Outcome> {
    all.iter()
        .find(|(known, _)| *known == settings)
        .map(|(_, outcome)| outcome.clone())
}

fn lock() -> MutexGuard<'static, Vec<(Settings, Outcome)>> {
    OUTCOMES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::seccomp::tests::{Lowered, strict as settings};

    #[test]
    fn what_was_prepared_is_what_lowering_makes() {
        let settings = settings(Role::Command);
        prepare([settings]);
        assert_eq!(made(settings), lower(settings));
    }

    #[test]
    fn filters_that_were_proven_hold_again() {
        for role in [Role::Worker, Role::Command] {
            let settings = settings(role);
            let whole = Lowered::under(settings);
            assert_eq!(hold(whole.stack(), settings), Ok(()));
            assert_eq!(hold(whole.stack(), settings), Ok(()));
        }
    }

    /// Every refusal, as permission.
    fn weakened(plan: &SeccompPlan) -> SeccompPlan {
        let mut plan = plan.clone();
        for instruction in plan.programs.iter_mut().flatten() {
            if instruction.code == 0x06 {
                instruction.k = 0x7FFF_0000;
            }
        }
        plan
    }

    #[test]
    fn a_filter_that_was_weakened_after_its_like_was_proven_is_caught() {
        let (worker, command) = (settings(Role::Worker), settings(Role::Command));
        let (behind, own) = (made(worker).unwrap(), made(command).unwrap());
        hold(Stack::of_command(&behind, &own), command).unwrap();
        let (weak_behind, weak_own) = (weakened(&behind), weakened(&own));
        for stack in [
            Stack::of_command(&behind, &weak_own),
            Stack::of_command(&weak_behind, &own),
            Stack::of_command(&weak_behind, &weak_own),
        ] {
            for _ in 0..2 {
                assert!(matches!(hold(stack, command), Err(SeccompWitness::Weaker { .. })));
            }
        }
    }

    #[test]
    fn filters_proven_for_other_settings_are_held_against_their_own_table() {
        let (worker, command) = (settings(Role::Worker), settings(Role::Command));
        let plan = lower(worker).unwrap();
        hold(Stack::of_worker(&plan), worker).unwrap();
        assert_eq!(
            hold(Stack::of_worker(&plan), command),
            Err(SeccompWitness::Listener(Role::Command))
        );
    }
}
