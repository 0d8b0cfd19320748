//! A change, tried before anybody is asked about it: the config with it must load, something here must hold it, and what
//! was denied must not stay so. Nothing else says which places a config can grant.

use super::gathered::Denied;
use crate::backend::Regime;
use crate::backend::status::Refusal;
use crate::config::amend::Change;
use crate::confine::ConfineError;
use crate::policy::{Policy, ProtectFallback};
use crate::profile::Call;
use crate::tools::call::ToolError;
use crate::tools::executor::Executor;
use crate::tools::explain::judge::{denied_at, operation};
use crate::tools::explain::stricter::ruled;
use crate::tools::explain::{Blocked, Subject, Wanted};
use crate::tools::fall::Would;
use crate::tools::inspect::backend::Readers;
use crate::tools::plan::PlanError;

use super::Needs;

/// The setting that says what becomes of protected names that cannot be held.
const FALLBACK: &str = "sandbox.protect_fallback";

/// What changes are tried with.
#[expect(missing_debug_implementations, reason = "one part is a function")]
pub struct Trial<'a> {
    /// What runs the command; nothing is started with it.
    pub executor: &'a Executor,
    /// What the command was permitted.
    pub call: Call,
    /// What was accepted before.
    pub accepted: Vec<&'a Change>,
    /// The policy of the config with these changes in it, or why there is none.
    pub amended: &'a dyn Fn(&[&Change]) -> Result<Policy, String>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It would be in force; and for each denial, why that stays all the same, if it does.
    Held(Needs, Vec<Option<String>>),
    /// There can be no such config here.
    Refused(String),
}

impl Trial<'_> {
    /// Why a change is not proposed though it would permit what was denied, or what it needs.
    pub fn alone(&self, change: &Change) -> Result<Needs, String> {
        match self.of(change, &[]) {
            Verdict::Held(needs, _) => Ok(needs),
            Verdict::Refused(why) => Err(why),
        }
    }

    /// Whether a config with all of these changes would be in force, with nothing else accepted, and permit all of this. The changes
    /// speak of places none of which lies in another, and each only adds to what the rest gives: so each would be in force alone.
    pub(super) fn stand(&self, changes: &[&Change], denied: &[Denied<'_>]) -> bool {
        if changes.iter().any(|change| self.accepted.contains(change)) {
            return false;
        }
        let Ok(policy) = (self.amended)(changes) else {
            return false;
        };
        let Ok(would) = self.executor.would_hold(&policy, &self.call) else {
            return false;
        };
        // All of them may have to fall to a regime that one of them would not.
        let is_fallen = would
            .as_ref()
            .is_some_and(|would| (would.regime == Regime::Namespaces) != self.executor.is_in_namespaces());
        !is_fallen && stay(would.as_ref(), denied).iter().all(Option::is_none)
    }

    /// Tries a change that would permit these.
    pub(super) fn of(&self, change: &Change, denied: &[Denied<'_>]) -> Verdict {
        if self.accepted.contains(&change) {
            let why = "what would permit it was accepted, and it is denied all the same";
            return Verdict::Refused(why.to_owned());
        }
        let policy = match (self.amended)(&[change]) {
            Ok(policy) => policy,
            Err(why) => return Verdict::Refused(why),
        };
        let refused = match self.executor.would_hold(&policy, &self.call) {
            Ok(would) => return Verdict::Held(Needs::Nothing, stay(would.as_ref(), denied)),
            Err(refused) => refused,
        };
        match refused {
            ToolError::Plan(PlanError::Refused(Refusal::Protected { .. })) => {
                self.undoing(change, denied, &policy, &refused)
            }
            _ => Verdict::Refused(could_not(&refused)),
        }
    }

    /// With protected names put back afterwards, where nobody wrote that they are not.
    fn undoing(&self, change: &Change, denied: &[Denied<'_>], policy: &Policy, refused: &ToolError) -> Verdict {
        let by_hand = policy.ceilings.lines.get(FALLBACK);
        match (policy.protect_fallback, by_hand) {
            (ProtectFallback::Refuse, Some(origin)) => {
                return Verdict::Refused(format!(
                    "`protect_fallback: refuse` ({origin}) forbids it; a person takes that out or leaves it"
                ));
            }
            // `residuals: refuse` forbids it.
            (ProtectFallback::Undo, _) => return Verdict::Refused(could_not(refused)),
            (ProtectFallback::Refuse, None) => {}
        }
        let with = (self.amended)(&[change, &Change::Undo]);
        let would = with.and_then(|policy| {
            self.executor
                .would_hold(&policy, &self.call)
                .map_err(|refused| could_not(&refused))
        });
        match would {
            Ok(would) => Verdict::Held(Needs::Undo, stay(would.as_ref(), denied)),
            Err(why) => Verdict::Refused(why),
        }
    }
}

/// A config that no command can be confined to helps nobody.
fn could_not(refused: &ToolError) -> String {
    match refused {
        ToolError::Confine(ConfineError::NoPlace(_)) => format!("the config cannot grant it: {refused}"),
        _ => format!("a config that permits it could not be held: {refused}"),
    }
}

/// For each denial why the plan would still deny it, if it would.
fn stay(would: Option<&Would>, denied: &[Denied<'_>]) -> Vec<Option<String>> {
    let none = || denied.iter().map(|_| None).collect();
    // Where no deny stands in the way, what the config gives is what the plan gives.
    let Some(would) = would.filter(|would| !would.profile.denies.is_empty()) else {
        return none();
    };
    let each = would.held.consult(|readers| {
        denied
            .iter()
            .map(|denied| denied.blocked.and_then(|blocked| stays(would, readers, blocked)))
            .collect()
    });
    // A plan that cannot be read is refused when it is to be in force.
    each.unwrap_or_else(|_| none())
}

fn stays(would: &Would, readers: &Readers<'_>, blocked: &Blocked) -> Option<String> {
    let path = match &blocked.subject {
        Subject::File(path, _) => path,
        Subject::UnixSocket(_) | Subject::UnixSockets | Subject::Address(_) | Subject::IpSockets | Subject::Nothing => {
            return None;
        }
    };
    // The broker judges attributes by itself.
    if blocked.wanted == Wanted::Attributes {
        return None;
    }
    denied_at(readers, blocked.wanted, path)?;
    let why = operation(blocked.wanted)
        .and_then(|operation| ruled(&would.profile, would.regime, blocked.wanted, operation, path))
        .map(|held| held.change.join("; "));
    let why = why
        .filter(|why| !why.is_empty())
        .map_or_else(String::new, |why| format!("; {why}"));
    Some(format!(
        "a root would not permit it: some directories are ruled entry by entry there, and nothing can be made or removed in them{why}"
    ))
}
