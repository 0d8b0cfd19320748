//! Which proposals of a round are accepted, by flags or by a person.

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::LearnArgs;
use super::report;
use super::rounds::{LearnRun, RoundContext};
use crate::cli::error::{CliError, print_notice};
use crate::cli::tool_error::tool_failure;
use crate::learn::{AcceptedBy, Answer, ConfigQuestion, Proposal, questions};
use crate::tools::{Executor, ToolError};

impl LearnRun {
    /// Moves the accepted proposals out of `left`.
    pub(super) async fn decide(
        &mut self,
        round: &RoundContext<'_>,
        executor: &Executor,
        signals: &mut mpsc::Receiver<Signal>,
    ) -> Result<Vec<(Proposal, AcceptedBy)>, CliError> {
        let (args, consent) = (round.args, round.consent);
        let by_person = if args.yes || !args.include.is_empty() {
            Vec::new()
        } else {
            self.ask(executor, signals).await?
        };
        let mut accepted = Vec::new();
        for proposal in std::mem::take(&mut self.left) {
            let by = if by_person.contains(&proposal) {
                Some(AcceptedBy::Person)
            } else {
                consent.accepts(&proposal)
            };
            match by {
                Some(by) => accepted.push((proposal, by)),
                None => self.left.push(proposal),
            }
        }
        self.announce(args, &accepted);
        Ok(accepted)
    }

    /// Asks a person about the proposals; returns the accepted ones.
    async fn ask(
        &mut self,
        executor: &Executor,
        signals: &mut mpsc::Receiver<Signal>,
    ) -> Result<Vec<Proposal>, CliError> {
        let mut accepted = Vec::new();
        for group in questions(&self.left) {
            let changes = group.iter().map(|proposal| proposal.change.clone());
            let risk = group.iter().map(|proposal| proposal.rating.risk).max();
            let question = ConfigQuestion {
                description: format!(
                    "change {} so that the command may do what it was denied; risk: {}",
                    crate::policy::path::display(self.draft.path()),
                    risk.map_or_else(String::new, |risk| risk.to_string()),
                ),
                diff: self.draft.difference(changes)?,
                why: group.iter().flat_map(|proposal| report::reasons(proposal)).collect(),
            };
            match question.ask(executor, signals).await {
                Ok(Answer::Yes) => accepted.extend(group.into_iter().cloned()),
                Ok(Answer::No) => {}
                Ok(Answer::Nobody) => break,
                Err(ToolError::Stopped(_)) => {
                    self.stopped = true;
                    return Ok(Vec::new());
                }
                Err(error) => return Err(tool_failure(error)),
            }
        }
        Ok(accepted)
    }

    fn announce(&self, args: &LearnArgs, accepted: &[(Proposal, AcceptedBy)]) {
        if args.json {
            return;
        }
        for (proposal, by) in accepted {
            print_notice(format_args!("learn: {}", report::accepted_line(proposal, *by)));
        }
        if !args.quiet {
            print_notice(format_args!(
                "learn: {} accepted, {} left",
                accepted.len(),
                self.left.len()
            ));
        }
    }
}
