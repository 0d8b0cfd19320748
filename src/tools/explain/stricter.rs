//! What the config gives and the plan does not: for which line it is held back.

use super::answer::without;
use super::explained::Wanted;
use super::forker_plan::ForkerPlan;
use crate::backend::{self, Regime};
use crate::policy::path::display;
use crate::policy::{AbsPath, Deny, Operation, Target};
use crate::profile::Profile;
use crate::tools::checked_plan::BackendPlan;

const PROTECT: &str = "sandbox.protect";

/// The line for which more is blocked than the profile says.
pub(in crate::tools) struct Stricter {
    pub(super) clause: String,
    pub(super) origin: String,
    pub(in crate::tools) change: Vec<String>,
}

impl ForkerPlan {
    /// The line that is held back by more than it says, if this is denied for one: a name that is protected, or a deny for
    /// which everything beside it is ruled one by one.
    pub(super) fn stricter(&self, wanted: Wanted, operation: Operation, path: &AbsPath) -> Option<Stricter> {
        let protected = self.protected(path).filter(|_| operation == Operation::Write);
        let regime = self.options.mechanism.regime();
        protected.or_else(|| obstructing_deny(&self.profile, regime, wanted, operation, path))
    }

    fn protected(&self, path: &AbsPath) -> Option<Stricter> {
        let BackendPlan::Kernel { plan, .. } = &self.plan()?.plan else {
            return None;
        };
        let namespace_plan = plan.namespaces.as_ref()?;
        let name = namespace_plan
            .protected
            .iter()
            .find(|name| path.as_path().starts_with(name))?;
        Some(Stricter {
            clause: format!("protect {}", display(name)),
            // Where no config has a line for it, it is so by default.
            origin: self.line(PROTECT).unwrap_or_else(|| PROTECT.to_owned()),
            change: vec!["`sandbox: {protect: none}` would permit it, and protect nothing at all".to_owned()],
        })
    }
}

/// The deny for which everything beside it is ruled one by one, if that is why a profile's plan denies this.
fn obstructing_deny(
    profile: &Profile,
    regime: Regime,
    wanted: Wanted,
    operation: Operation,
    path: &AbsPath,
) -> Option<Stricter> {
    // What comes later is in no rule of its own, and its directory has none for all that is below.
    let directory = match wanted {
        Wanted::List => path.clone(),
        // The broker judges it by itself.
        Wanted::Attributes => return None,
        _ => path.parent()?,
    };
    let denies = backend::in_the_way(profile, operation, &directory);
    // A mount holds a path that is there exactly; which names will match a pattern nobody knows.
    let (patterns, paths): (Vec<&Deny>, Vec<&Deny>) = denies
        .into_iter()
        .partition(|deny| matches!(deny.target, Target::Pattern { .. }));
    let denies = match patterns.as_slice() {
        [_, ..] if regime == Regime::Namespaces => patterns,
        _ => [paths, patterns].concat(),
    };
    let first = denies.first()?;
    Some(Stricter {
        clause: first.to_string(),
        origin: first.origin.to_string(),
        change: without(&denies),
    })
}
