//! What a round proposes: what the config, as it would be, could be held to.

use super::rounds::{Learned, Setting};
use crate::config::amend::Change;
use crate::profile::{Asked, Call};
use crate::tools::learn::{Looks, Proposal, Proposals, Standing, Trial, propose};
use crate::tools::{Executor, Outcome};

impl Learned {
    /// What would permit what was denied in a round.
    pub(super) fn proposals(
        &self,
        outcome: &Outcome,
        setting: &Setting<'_>,
        executor: &Executor,
        passed: bool,
    ) -> Proposals {
        let (around, consent) = (&setting.around, setting.consent);
        let policy = self.draft.policy();
        let call = outcome.explained.as_ref().and_then(|explained| explained.call.clone());
        let amended = |changes: &[&Change]| self.draft.could(setting.args, changes, setting.context);
        let trial = Trial {
            executor,
            call: call.unwrap_or_else(|| Call::of(Asked::Everything)),
            accepted: self.draft.accepted().iter().map(|(change, _)| change).collect(),
            amended: &amended,
        };
        let mut found = propose(policy, outcome, around, Looks::LeftOut, &trial);
        if !found.wanted && !passed {
            found = propose(policy, outcome, around, Looks::Proposed, &trial);
        }
        if found.some_host {
            // Nobody knows which host it was, and somebody named some.
            let known = |change: &Change| {
                found.proposed.iter().any(|proposal| proposal.change == *change) || trial.accepted.contains(&change)
            };
            let named: Vec<Change> = consent.hosts().filter(|change| !known(change)).collect();
            for change in named {
                let denied = "connect".to_owned();
                match trial.alone(&change) {
                    Ok(needs) => found
                        .proposed
                        .push(Proposal::of(change, vec![denied], needs, around, policy)),
                    Err(why) => found.standing.push(Standing { denied, why }),
                }
            }
        }
        found
    }
}
