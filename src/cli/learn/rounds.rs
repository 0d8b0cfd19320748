//! Round after round: the command under the config as it stands, what was denied to it, what is accepted.

use std::path::Path;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::LearnArgs;
use super::draft::Draft;
use super::told;
use crate::cli::approver;
use crate::cli::complain::{Complaint, say};
use crate::cli::exit::Exit;
use crate::cli::policy;
use crate::cli::run::{exit_of_outcome, stops, tell, tool_complaint};
use crate::config::Context;
use crate::config::amend::Change;
use crate::policy::{AbsPath, Explain};
use crate::profile::{Asked, Call};
use crate::tools::learn::{
    AcceptedBy, Answer, ConfigQuestion, Consent, Looks, Proposal, Proposals, Standing, Surroundings, propose, questions,
};
use crate::tools::{Executor, Explained, Outcome, OutputMode, ShellCall, ShellCommand, Status, Stdin, ToolError};

/// One run of the command.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) outcome: Outcome,
    pub(super) session: Option<String>,
}

/// What came of all rounds.
#[derive(Debug)]
pub(super) struct Learned {
    pub(super) draft: Draft,
    pub(super) rounds: Vec<Round>,
    /// Everything that was proposed once and accepted.
    pub(super) accepted: Vec<(Proposal, AcceptedBy)>,
    /// What the last round proposed and nobody accepted.
    pub(super) left: Vec<Proposal>,
    /// What the last round says stays denied.
    pub(super) standing: Vec<Standing>,
    /// Whether the rounds were used up.
    pub(super) exhausted: bool,
    /// Whether a signal ended it.
    pub(super) stopped: bool,
    /// Whether a person wants a new config to be written.
    pub(super) wants_file: bool,
    /// How the command ended in the last round.
    pub(super) ended: Exit,
    /// How learning ends.
    pub(super) exit: Exit,
}

/// What every round has.
struct Setting<'a> {
    args: &'a LearnArgs,
    consent: &'a Consent,
    directory: &'a Path,
    around: Surroundings,
    context: &'a Context,
}

/// Runs the command until nothing more is accepted.
pub(super) async fn run(
    args: &LearnArgs,
    draft: Draft,
    consent: &Consent,
    directory: &Path,
    context: &Context,
    halted: &mut mpsc::Receiver<Signal>,
) -> Result<Learned, Complaint> {
    let place = AbsPath::new(directory).map_err(Complaint::failed)?;
    let setting = Setting {
        around: Surroundings::of(&place, draft.policy(), context),
        args,
        consent,
        directory,
        context,
    };
    let mut learned = Learned {
        draft,
        rounds: Vec::new(),
        accepted: Vec::new(),
        left: Vec::new(),
        standing: Vec::new(),
        exhausted: false,
        stopped: false,
        wants_file: false,
        ended: Exit::Failed,
        exit: Exit::Failed,
    };
    for number in 1..=args.rounds {
        let executor = learned.start(args, number, context)?;
        let going_on = learned.round(&setting, executor, halted).await?;
        learned.draft.still_leads()?;
        match going_on {
            Then::Again => learned.exhausted = number == args.rounds,
            Then::Done => break,
        }
    }
    if learned.stopped || learned.passes() || learned.left.is_empty() {
        return Ok(learned);
    }
    // The command failed, and what it lacked was not granted.
    learned.exit = Exit::Denied;
    Ok(learned)
}

/// Whether there is another round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Again,
    Done,
}

impl Learned {
    /// Whether the command succeeded in the end.
    pub(super) const fn passes(&self) -> bool {
        self.ended.code() == 0
    }

    /// What runs a command under the draft, and under nothing else.
    fn start(&self, args: &LearnArgs, number: u32, context: &Context) -> Result<Executor, Complaint> {
        let mut policy = self.draft.policy().clone();
        policy.explain = Explain::Always;
        let places = policy::places(context)?;
        let mode = policy.mode;
        let (approver, withdraw, another) = approver::approver(&args.approver, &policy, &places)?;
        let executor = Executor::new(policy, self.draft.narrowing.clone(), mode, approver, places)
            .map_err(tool_complaint)?
            .withdrawing_with(withdraw)
            .asking_meanwhile(another);
        executor.named_in_record(&self.draft.loaded().files);
        approver::hold_apart(&args.approver, executor.is_unconfined())?;
        if executor.is_unconfined() {
            return Err(Complaint::failed(
                "nothing confines commands on this machine, and what nothing denies teaches nothing",
            )
            .remedy("`stockade doctor` says what is missing"));
        }
        if !args.quiet && !args.json {
            let regime = executor.regime_line().map_err(tool_complaint)?;
            say(&format!("stockade: learn: round {number}: {regime}\n"));
        }
        Ok(executor)
    }

    async fn round(
        &mut self,
        setting: &Setting<'_>,
        mut executor: Executor,
        halted: &mut mpsc::Receiver<Signal>,
    ) -> Result<Then, Complaint> {
        let args = setting.args;
        let session = executor.audit_session().map(str::to_owned);
        let outcome = executor.shell(call(args, setting.directory)?).await;
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                executor.finish().await.map_err(tool_complaint)?;
                return Err(tool_complaint(error));
            }
        };
        if !args.json {
            // What was denied is told with what would permit it.
            tell(&Outcome {
                explained: None,
                ..outcome.clone()
            });
        }
        self.ended = exit_of_outcome(&outcome);
        self.exit = self.ended;
        self.stopped = matches!(outcome.status, Status::Cancelled { .. }) || halted.try_recv().is_ok();
        let passed = self.passes();
        let proposals = self.proposals(&outcome, setting, &executor, passed);
        self.rounds.push(Round { outcome, session });
        let Proposals { proposed, standing, .. } = proposals;
        self.standing = standing;
        self.left = proposed;
        let wanted = !self.stopped && (!passed || args.thorough) && !self.left.is_empty();
        let decided = if wanted {
            self.decide(setting, &executor, halted).await
        } else {
            Ok(Vec::new())
        };
        let done = match decided {
            Ok(accepted) if accepted.is_empty() => {
                let asked = self.offer_file(args, &executor, halted).await;
                asked.map(|()| Then::Done)
            }
            Ok(accepted) => {
                let changes = accepted
                    .iter()
                    .map(|(proposal, by)| (proposal.change.clone(), *by))
                    .collect();
                let done = self.draft.accept(args, changes, setting.context).map(|()| Then::Again);
                self.accepted.extend(accepted);
                done
            }
            Err(error) => Err(error),
        };
        executor.finish().await.map_err(tool_complaint)?;
        done
    }

    fn proposals(&self, outcome: &Outcome, setting: &Setting<'_>, executor: &Executor, passed: bool) -> Proposals {
        let (around, consent) = (&setting.around, setting.consent);
        let policy = self.draft.policy();
        let mut found = propose(policy, outcome, around, Looks::LeftOut);
        if found.proposed.is_empty() && !passed {
            found = propose(policy, outcome, around, Looks::Proposed);
        }
        if found.some_host {
            // Nobody knows which host it was, and somebody named some.
            let known = |change: &Change| {
                found.proposed.iter().any(|proposal| proposal.change == *change)
                    || self.draft.accepted().iter().any(|(accepted, _)| accepted == change)
            };
            let named: Vec<Proposal> = consent
                .hosts()
                .filter(|change| !known(change))
                .map(|change| Proposal::of(change, vec!["connect".to_owned()], around, policy))
                .collect();
            found.proposed.extend(named);
        }
        let call = outcome.explained.as_ref().and_then(|explained| explained.call.clone());
        let call = call.unwrap_or_else(|| Call::of(Asked::Everything));
        for proposal in std::mem::take(&mut found.proposed) {
            match self.objection(&proposal.change, setting, executor, &call) {
                None => found.proposed.push(proposal),
                Some(why) => {
                    let standing = proposal.denied.into_iter();
                    found.standing.extend(standing.map(|denied| Standing {
                        denied,
                        why: why.clone(),
                    }));
                }
            }
        }
        found
    }

    /// Why a change is not proposed though it would permit what was denied, if it is not.
    fn objection(&self, change: &Change, setting: &Setting<'_>, executor: &Executor, call: &Call) -> Option<String> {
        if self.draft.accepted().iter().any(|(accepted, _)| accepted == change) {
            return Some("what would permit it was accepted, and it is denied all the same".to_owned());
        }
        let policy = match self.draft.could(setting.args, change, setting.context) {
            Ok(policy) => policy,
            Err(complaint) => return Some(complaint.into_parts().0),
        };
        // A config that no command can be confined to helps nobody.
        let refused = executor.could_hold(&policy, call).err()?;
        Some(format!("a config that permits it could not be held: {refused}"))
    }

    /// Takes what is accepted out of what is left.
    async fn decide(
        &mut self,
        setting: &Setting<'_>,
        executor: &Executor,
        halted: &mut mpsc::Receiver<Signal>,
    ) -> Result<Vec<(Proposal, AcceptedBy)>, Complaint> {
        let (args, consent) = (setting.args, setting.consent);
        let mut accepted = Vec::new();
        let mut open = Vec::new();
        for proposal in std::mem::take(&mut self.left) {
            match consent.accepts(&proposal) {
                Some(by) => accepted.push((proposal, by)),
                None => open.push(proposal),
            }
        }
        // Whoever accepted some by flag is asked about nothing in this round: it may not be wanted any more.
        if !accepted.is_empty() || args.yes || !args.include.is_empty() {
            self.left = open;
            self.announce(args, &accepted);
            return Ok(accepted);
        }
        let mut taken = vec![false; open.len()];
        for (risk, group) in questions(&open) {
            let members: Vec<&Proposal> = group.iter().filter_map(|at| open.get(*at)).collect();
            let changes: Vec<Change> = members.iter().map(|proposal| proposal.change.clone()).collect();
            let question = ConfigQuestion {
                description: format!(
                    "change {} so that the command may do what it was denied; risk: {risk}",
                    crate::policy::path::display(self.draft.path())
                ),
                diff: self.draft.difference(&changes)?,
                why: members.iter().flat_map(|proposal| told::reasons(proposal)).collect(),
            };
            match executor.asks_about_config(question, halted).await {
                Ok(Answer::Yes) => group.iter().for_each(|at| {
                    if let Some(taken) = taken.get_mut(*at) {
                        *taken = true;
                    }
                }),
                Ok(Answer::No) => {}
                Ok(Answer::Nobody) => break,
                Err(ToolError::Stopped(_)) => {
                    self.stopped = true;
                    self.left = open;
                    return Ok(Vec::new());
                }
                Err(error) => return Err(tool_complaint(error)),
            }
        }
        for (proposal, taken) in open.into_iter().zip(taken) {
            if taken {
                accepted.push((proposal, AcceptedBy::Person));
            } else {
                self.left.push(proposal);
            }
        }
        self.announce(args, &accepted);
        Ok(accepted)
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

    /// Asks whether a new config is to be written where it is found, if somebody has accepted what is in it.
    async fn offer_file(
        &mut self,
        args: &LearnArgs,
        executor: &Executor,
        halted: &mut mpsc::Receiver<Signal>,
    ) -> Result<(), Complaint> {
        let by_person = |(_, by): &(Change, AcceptedBy)| *by == AcceptedBy::Person;
        let new = self
            .draft
            .loaded()
            .files
            .first()
            .is_some_and(|file| std::fs::symlink_metadata(&file.path).is_err());
        let all = self.draft.accepted();
        if self.stopped || args.out.is_some() || !new || all.is_empty() || !all.iter().all(by_person) {
            return Ok(());
        }
        let question = ConfigQuestion {
            description: format!(
                "write {} and trust it: it holds for every command that is started here",
                crate::policy::path::display(self.draft.path())
            ),
            diff: self.draft.whole_difference(),
            why: vec!["there is no config yet".to_owned()],
        };
        match executor.asks_about_config(question, halted).await {
            Ok(Answer::Yes) => self.wants_file = true,
            Ok(Answer::No | Answer::Nobody) => {}
            Err(ToolError::Stopped(_)) => self.stopped = true,
            Err(error) => return Err(tool_complaint(error)),
        }
        Ok(())
    }
}

fn call(args: &LearnArgs, directory: &Path) -> Result<ShellCall, Complaint> {
    Ok(ShellCall {
        command: args
            .line
            .clone()
            .map_or_else(|| ShellCommand::Argv(args.argv.clone()), ShellCommand::Line),
        directory: directory.to_owned(),
        environment: args.env.clone(),
        timeout: args.timeout,
        stdin: Stdin::Inherit,
        output: if args.json {
            OutputMode::Capture
        } else {
            OutputMode::Stream
        },
        kept: None,
        stops: stops()?,
    })
}
