//! The rounds: each runs the command under the draft, proposes what would permit what was denied, and accepts.

use std::path::Path;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::LearnArgs;
use super::draft::Draft;
use crate::cli::approver;
use crate::cli::error::{CliError, print_notice};
use crate::cli::exit::Exit;
use crate::cli::policy;
use crate::cli::readers::command_ended;
use crate::cli::run::{exit_of_outcome, print_outcome};
use crate::cli::signals::{StopScope, stop_signals};
use crate::cli::tool_error::tool_failure;
use crate::config::Context;
use crate::config::amend::Change;
use crate::learn::{AcceptedBy, Consent, Proposal, Proposals, StillDenied, Surroundings, Trial, propose};
use crate::policy::{AbsPath, Explain};
use crate::profile::{ApprovedRoots, Call};
use crate::tools::{Executor, Outcome, OutputMode, ShellCall, ShellCommand, Status, Stdin};

/// One run of the command.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) outcome: Outcome,
    pub(super) session: Option<String>,
}

/// The result of all rounds.
#[derive(Debug)]
pub(super) struct LearnRun {
    pub(super) draft: Draft,
    pub(super) rounds: Vec<Round>,
    /// Every accepted proposal.
    pub(super) accepted: Vec<(Proposal, AcceptedBy)>,
    /// The proposals of the last round that nobody accepted.
    pub(super) left: Vec<Proposal>,
    /// The denials of the last round that no change permits.
    pub(super) still_denied: Vec<StillDenied>,
    /// Whether the rounds were used up.
    pub(super) exhausted: bool,
    /// Whether a signal ended it.
    pub(super) stopped: bool,
    /// How the command ended in the last round.
    pub(super) ended: Exit,
    /// How learning ends.
    pub(super) exit: Exit,
}

/// What is the same for every round.
pub(super) struct RoundContext<'a> {
    pub(super) args: &'a LearnArgs,
    pub(super) consent: &'a Consent,
    directory: &'a Path,
    pub(super) surroundings: Surroundings,
    pub(super) context: &'a Context,
}

/// Runs the command until nothing more is accepted.
pub(super) async fn run(
    args: &LearnArgs,
    draft: Draft,
    consent: &Consent,
    directory: &Path,
    context: &Context,
    signals: &mut mpsc::Receiver<Signal>,
) -> Result<LearnRun, CliError> {
    let cwd = AbsPath::new(directory).map_err(CliError::failed)?;
    let round = RoundContext {
        surroundings: Surroundings::of(&cwd, draft.policy(), context),
        args,
        consent,
        directory,
        context,
    };
    let mut run = LearnRun {
        draft,
        rounds: Vec::new(),
        accepted: Vec::new(),
        left: Vec::new(),
        still_denied: Vec::new(),
        exhausted: false,
        stopped: false,
        ended: Exit::Failed,
        exit: Exit::Failed,
    };
    for number in 1..=args.rounds {
        let executor = run.start(args, number, context)?;
        let going_on = run.round(&round, executor, signals).await?;
        run.draft.verify_paths()?;
        match going_on {
            Next::Again => run.exhausted = number == args.rounds,
            Next::Done => break,
        }
    }
    // The command's own exit code would say that nothing was denied to it.
    let denied = !run.left.is_empty() || !run.still_denied.is_empty();
    // A failure of Stockade comes first.
    if !run.stopped && !run.passes() && denied && run.ended != Exit::Failed {
        run.exit = Exit::Denied;
    }
    Ok(run)
}

/// Whether there is another round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Again,
    Done,
}

impl LearnRun {
    /// Whether the command succeeded in the end.
    pub(super) const fn passes(&self) -> bool {
        self.ended.code() == 0
    }

    /// An executor whose policy is the draft.
    fn start(&self, args: &LearnArgs, number: u32, context: &Context) -> Result<Executor, CliError> {
        let mut policy = self.draft.policy().clone();
        policy.explain = Explain::Always;
        let places = policy::places(context)?;
        let mode = policy.mode;
        let (approver, withdraw, another) = approver::approver(&args.approver, &policy, &places)?;
        let executor = Executor::new(policy, self.draft.narrowing.clone(), mode, approver, places)
            .map_err(tool_failure)?
            .withdrawing_with(withdraw)
            .asking_meanwhile(another);
        executor.named_in_record(&self.draft.loaded().files);
        approver::refuse_unconfined_socket(&args.approver, executor.is_unconfined())?;
        if executor.is_unconfined() {
            return Err(CliError::failed(
                "nothing confines commands on this machine, and what nothing denies teaches nothing",
            )
            .remedy("`stockade doctor` says what is missing"));
        }
        if !args.quiet && !args.json {
            let regime = executor.regime_line().map_err(tool_failure)?;
            print_notice(format_args!("learn: round {number}: {regime}"));
        }
        Ok(executor)
    }

    async fn round(
        &mut self,
        round: &RoundContext<'_>,
        mut executor: Executor,
        signals: &mut mpsc::Receiver<Signal>,
    ) -> Result<Next, CliError> {
        let args = round.args;
        let session = executor.audit_session().map(str::to_owned);
        let outcome = executor.shell(call(args, round.directory)?).await;
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                executor.finish().await.map_err(tool_failure)?;
                return Err(tool_failure(error));
            }
        };
        if outcome.undelivered_bytes > 0 {
            command_ended();
        }
        if !args.json {
            // Denials are reported with the proposals.
            print_outcome(&Outcome {
                explained: None,
                ..outcome.clone()
            });
        }
        self.ended = exit_of_outcome(&outcome);
        self.exit = self.ended;
        self.stopped = matches!(outcome.status, Status::Cancelled { .. }) || signals.try_recv().is_ok();
        // A command that passes needs no change.
        let found = if self.stopped || self.passes() {
            Proposals::default()
        } else {
            self.proposals(&outcome, round, &executor)
        };
        self.rounds.push(Round { outcome, session });
        (self.left, self.still_denied) = (found.proposed, found.still_denied);
        let decided = if self.left.is_empty() {
            Ok(Vec::new())
        } else {
            self.decide(round, &executor, signals).await
        };
        let then = decided.and_then(|accepted| {
            if accepted.is_empty() {
                return Ok(Next::Done);
            }
            let changes = accepted.iter().map(|(proposal, _)| proposal.change.clone());
            self.draft.accept(args, changes, round.context)?;
            self.accepted.extend(accepted);
            Ok(Next::Again)
        });
        executor.finish().await.map_err(tool_failure)?;
        then
    }

    /// Proposes changes that would permit what was denied.
    fn proposals(&self, outcome: &Outcome, round: &RoundContext<'_>, executor: &Executor) -> Proposals {
        let call = outcome.explained.as_ref().and_then(|explained| explained.call.clone());
        let trial = Trial {
            executor,
            call: call.unwrap_or_else(|| Call::of(ApprovedRoots::All)),
            file: self.draft.loaded().files.first().map(|file| file.path.as_path()),
            accepted: self.draft.accepted(),
            amended: &|change: &Change| self.draft.policy_with(round.args, change, round.context),
        };
        let (surroundings, hosts) = (&round.surroundings, round.consent.hosts());
        propose(self.draft.policy(), outcome, surroundings, &hosts, &trial)
    }
}

fn call(args: &LearnArgs, directory: &Path) -> Result<ShellCall, CliError> {
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
        stops: stop_signals(StopScope::Program)?,
    })
}
