//! Filters that were held against their table once in this process, so that the next start of the same settings need
//! not do it again.
//!
//! Known by what they are: what differs from them by an instruction is held against the table like any other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::lower::{SeccompError, lower};
use super::validate::{SeccompWitness, validate};
use super::{Role, SeccompPlan, Settings, Stack};

/// One entry for all settings whose filters were proven; there are few.
static PROVEN: Mutex<Vec<(Settings, SeccompPlan)>> = Mutex::new(Vec::new());

/// The filters of these settings.
pub fn made(settings: Settings) -> Result<SeccompPlan, SeccompError> {
    match proven(settings) {
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
        .is_none_or(|behind| proven(worker).as_ref() == Some(behind));
    if behind_known && stack.role() == settings.role && proven(settings).as_ref() == Some(stack.own()) {
        return Ok(());
    }
    validate(stack, settings)?;
    // What is proven of a command's filters is proven behind those of the worker, and behind no others.
    if behind_known {
        note(settings, stack.own());
    }
    Ok(())
}

/// What is proven of these settings.
fn proven(settings: Settings) -> Option<SeccompPlan> {
    let all = lock();
    all.iter()
        .find(|(known, _)| *known == settings)
        .map(|(_, plan)| plan.clone())
}

/// Of two plans that are proven, the first one is known again.
fn note(settings: Settings, plan: &SeccompPlan) {
    let mut all = lock();
    if all.iter().all(|(known, _)| *known != settings) {
        all.push((settings, plan.clone()));
    }
}

fn lock() -> MutexGuard<'static, Vec<(Settings, SeccompPlan)>> {
    PROVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::seccomp::tests::{Lowered, strict as settings};

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
