//! What of the proposals of a round is accepted: by flag, or by whoever is asked.

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::LearnArgs;
use super::rounds::{Learned, Setting};
use super::told;
use crate::cli::complain::{Complaint, say};
use crate::cli::run::tool_complaint;
use crate::config::amend::Change;
use crate::tools::learn::{AcceptedBy, Answer, ConfigQuestion, Needs, Proposal, questions};
use crate::tools::{Executor, Explained, ToolError};

/// Why there are no answers.
enum Unanswered {
    /// A signal came.
    Stopped,
    /// Something failed.
    Failed(Complaint),
}

impl Learned {
    /// Takes what is accepted out of what is left.
    pub(super) async fn decide(
        &mut self,
        setting: &Setting<'_>,
        executor: &Executor,
        halted: &mut mpsc::Receiver<Signal>,
    ) -> Result<Vec<(Proposal, AcceptedBy)>, Complaint> {
        let (args, consent) = (setting.args, setting.consent);
        let all = std::mem::take(&mut self.left);
        let mut by: Vec<Option<AcceptedBy>> = all.iter().map(|proposal| consent.accepts(proposal)).collect();
        settle(&all, &mut by);
        // Whoever accepted some by flag is asked about nothing in this round: it may not be wanted any more.
        if by.iter().all(Option::is_none) && !args.yes && args.include.is_empty() {
            match self.ask(setting, &all, executor, halted).await {
                Ok(answers) => by = answers,
                Err(Unanswered::Stopped) => {
                    self.stopped = true;
                    self.left = all;
                    return Ok(Vec::new());
                }
                Err(Unanswered::Failed(complaint)) => return Err(complaint),
            }
            settle(&all, &mut by);
        }
        let mut accepted = Vec::new();
        for (proposal, by) in all.into_iter().zip(by) {
            match by {
                Some(by) => accepted.push((proposal, by)),
                None => self.left.push(proposal),
            }
        }
        self.announce(args, &accepted);
        Ok(accepted)
    }

    /// Puts the proposals to a person.
    async fn ask(
        &self,
        setting: &Setting<'_>,
        all: &[Proposal],
        executor: &Executor,
        halted: &mut mpsc::Receiver<Signal>,
    ) -> Result<Vec<Option<AcceptedBy>>, Unanswered> {
        let mut by = vec![None; all.len()];
        for (risk, group) in questions(all) {
            let undo = has_undo(all, &by);
            // What lacks something that was not accepted would be refused.
            let open = |at: &usize| all.get(*at).filter(|proposal| undo || proposal.needs == Needs::Nothing);
            let group: Vec<usize> = group.into_iter().filter(|at| open(at).is_some()).collect();
            let members: Vec<&Proposal> = group.iter().filter_map(open).collect();
            if members.is_empty() {
                continue;
            }
            let changes: Vec<Change> = members.iter().map(|proposal| proposal.change.clone()).collect();
            let diff = self
                .draft
                .difference(&changes, setting.context)
                .map_err(Unanswered::Failed)?;
            let question = ConfigQuestion {
                description: format!(
                    "change {} so that the command may do what it was denied; risk: {risk}",
                    crate::policy::path::display(self.draft.path())
                ),
                diff,
                why: members.iter().flat_map(|proposal| told::reasons(proposal)).collect(),
            };
            let answer = executor
                .asks_about_config(question, halted)
                .await
                .map_err(|error| match error {
                    ToolError::Stopped(_) => Unanswered::Stopped,
                    other => Unanswered::Failed(tool_complaint(other)),
                })?;
            match answer {
                Answer::Yes => group.iter().for_each(|at| {
                    if let Some(by) = by.get_mut(*at) {
                        *by = Some(AcceptedBy::Person);
                    }
                }),
                Answer::No => {}
                Answer::Nobody => break,
            }
        }
        Ok(by)
    }
    fn announce(&self, args: &LearnArgs, accepted: &[(Proposal, AcceptedBy)]) {
        if args.json {
            return;
        }
        for (proposal, by) in accepted {
            say(&format!("stockade: learn: {}\n", told::taken(proposal, *by)));
        }
        let denied = self.rounds.last().and_then(|round| round.outcome.explained.as_ref());
        let denied = denied.map_or(0, |explained: &Explained| explained.blocked.len());
        if !args.quiet {
            say(&format!(
                "stockade: learn: {denied} denied, {} accepted, {} left\n",
                accepted.len(),
                self.left.len()
            ));
        }
    }
}

/// Whether it is accepted that protected names are put back afterwards.
fn has_undo(all: &[Proposal], by: &[Option<AcceptedBy>]) -> bool {
    let mut each = all.iter().zip(by);
    each.any(|(proposal, by)| proposal.change == Change::Undo && by.is_some())
}

/// What needs something that was not accepted is not in force without it; and what nothing needs is not written.
fn settle(all: &[Proposal], by: &mut [Option<AcceptedBy>]) {
    let undo = has_undo(all, by);
    let mut needed = false;
    for (proposal, by) in all.iter().zip(by.iter_mut()) {
        match (proposal.needs, undo) {
            (Needs::Undo, false) => *by = None,
            (Needs::Undo, true) => needed |= by.is_some(),
            (Needs::Nothing, _) => {}
        }
    }
    for (proposal, by) in all.iter().zip(by.iter_mut()) {
        if proposal.change == Change::Undo && !needed {
            *by = None;
        }
    }
}
