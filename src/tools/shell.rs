//! The shell tool: one command line or program, judged, asked about, confined, run.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::call::{ShellCall, ShellCommand, ToolError, argv};
use super::executor::Executor;
use super::footing::Footing;
use super::offers::Offered;
use super::outcome::{Outcome, Restored, Status};
use super::{approvals, environment, plan};
use crate::approval::{ApprovalRequest, Remember, Verdict};
use crate::backend::host::{Hold, TreeLimit};
use crate::confine::io::{ParentEnds, Relayed, Stdin, prepare};
use crate::confine::protocol::{Counting, Ended};
use crate::confine::{CommandLimits, ConfineError, Confinement, Launch, OwnProcess};
use crate::policy::path::escape;
use crate::policy::shell::{Judgement, judge, judge_argv};
use crate::policy::{AbsPath, Access, Demand, Limits, Operation, Requirement};
use crate::profile::{Asked, FileReach};

/// The name under which `tools:` speaks of the shell tool.
pub const NAME: &str = "shell";

impl Executor {
    /// Judges, asks, confines and runs one call.
    pub async fn shell(&mut self, mut call: ShellCall) -> Result<Outcome, ToolError> {
        if let Footing::Refused(why) = &self.chosen.footing {
            return Err(ToolError::Refused(why.clone()));
        }
        let ceilings = &self.policy;
        call.environment
            .retain(|(name, value)| ceilings.variable_beyond(name, value).is_none());
        let directory = AbsPath::new(&call.directory).map_err(|_| ToolError::Directory(call.directory.clone()))?;
        let judgement = self.judge(&call.command, &directory);
        let (asked, narrow) = self.permission(&mut call, &judgement).await?;
        self.hold_directory(&directory)?;
        let (child, parent) = prepare(std::mem::replace(&mut call.stdin, Stdin::Null), call.output)?;
        let own_process = if child.controlling_terminal {
            OwnProcess::Readable
        } else {
            OwnProcess::Closed
        };
        let profile = self.profile(&asked, narrow.as_ref())?;
        let digest = plan::digest(&profile);
        let mut worker = match self.workers.take(&digest) {
            Some(worker) => worker,
            None => self.start_worker(&profile, own_process, &asked).await?,
        };
        let launch = Launch {
            argv: argv(call.command.clone()),
            environment: environment::build(
                &profile,
                &worker.session().private(),
                self.policy.home,
                &call.environment,
            ),
            directory: directory.as_path().as_os_str().to_owned(),
            limits: command_limits(&profile.limits, call.timeout, self.counting()),
            terminal: child.controlling_terminal,
            streams: [child.stdin, child.stdout, child.stderr],
        };
        let output = profile.limits.output;
        let started = Instant::now();
        let done = Box::pin(run(&mut worker, launch, parent, output, &mut call.stops)).await;
        let duration = started.elapsed();
        let (ended, relayed, stopped) = match done {
            Ok(done) => done,
            Err(error) => {
                worker.finish().await;
                return Err(error);
            }
        };
        let mut restored: Vec<Restored> = ended.violations.into_iter().map(Into::into).collect();
        let offered = match stopped {
            None => self.offer(&mut worker, &mut restored, &mut call.stops).await,
            // Who stopped it wants an end, and no question.
            Some(_) => Offered::Nothing,
        };
        match offered {
            Offered::Nothing => self.workers.keep(digest, worker).await,
            // In namespaces what is there now is held by a mount of its own, in workers that start from here on.
            Offered::PutBack => {
                worker.finish().await;
                std::mem::take(&mut self.workers).finish().await;
            }
        }
        Ok(Outcome {
            status: Status::of(ended.end, stopped),
            regime: self.regime_line()?.to_string(),
            duration,
            output_bytes: relayed.stdout.total + relayed.stderr.total,
            stdout: text(relayed.stdout.into_bytes()),
            stderr: text(relayed.stderr.into_bytes()),
            restored,
            unsettled: ended.unsettled.map(|why| escape(why.as_bytes())),
        })
    }

    /// A command that cannot read where it starts fails in puzzling ways: better said at once.
    fn hold_directory(&self, directory: &AbsPath) -> Result<(), ToolError> {
        let confined = matches!(self.chosen.footing, Footing::Confined(_));
        if confined && self.envelope.access(Operation::List, directory) == Access::Denied {
            return Err(ToolError::Directory(directory.as_path().to_owned()));
        }
        Ok(())
    }

    /// Who counts the processes of a command.
    fn counting(&self) -> Counting {
        match &self.chosen.footing {
            Footing::Confined(ground) => match TreeLimit::processes(ground.walls.regime()).hold {
                Hold::Exact => Counting::Namespace,
                Hold::Sampled => Counting::Sampled,
            },
            Footing::Unconfined(_) | Footing::Refused(_) => Counting::Sampled,
        }
    }

    fn judge(&self, command: &ShellCommand, directory: &AbsPath) -> Judgement {
        let lies_in = |argument: &str, names: &[String]| {
            let Ok(path) = AbsPath::new(directory.as_path().join(argument)) else {
                return false;
            };
            self.policy
                .speaker(&path)
                .is_some_and(|root| names.contains(&root.name))
        };
        let (rules, default) = (&self.policy.rules, &self.policy.default_rule);
        match command {
            ShellCommand::Line(line) => match line.to_str() {
                Some(line) => judge(line, rules, default, &lies_in),
                // A line that is not text is judged by what is shown of it, which no rule can understand.
                None => judge_argv(&[line], rules, default, &lies_in),
            },
            ShellCommand::Argv(argv) => judge_argv(argv, rules, default, &lies_in),
        }
    }

    /// What was asked, and what a rule narrows the call to.
    async fn permission(
        &mut self,
        call: &mut ShellCall,
        judgement: &Judgement,
    ) -> Result<(Asked, Option<Vec<String>>), ToolError> {
        let (requirement, demand) = match (judgement.requirement, self.policy.tools.get(NAME)) {
            (Requirement::Blocked, _) | (_, None) => (judgement.requirement, judgement.demand),
            (_, Some(rule)) => (rule.approval.requirement(), rule.approval),
        };
        match requirement {
            Requirement::PreApproved => Ok((Asked::Nobody, judgement.narrow.clone())),
            Requirement::Blocked => Err(ToolError::Blocked(
                judgement
                    .reason
                    .clone()
                    .unwrap_or_else(|| "a rule of the config forbids it".to_owned()),
            )),
            Requirement::NeedsApproval => {
                let profile = self.profile(&Asked::Everything, judgement.narrow.as_ref())?;
                let remember = match demand {
                    Demand::OncePerSession => Remember::Session,
                    Demand::None | Demand::Required | Demand::Deny => Remember::None,
                };
                let regime = self.regime_line()?.to_string();
                let request = approvals::request(&self.policy, call, judgement, &profile, regime, remember);
                match self.decide(request, &mut call.stops).await?.denial {
                    None => Ok((Asked::Everything, judgement.narrow.clone())),
                    Some(denial) => Err(ToolError::Denied(denial)),
                }
            }
        }
    }

    /// Waits for a decision on a thread of its own, so that a signal still stops the call: the question is
    /// withdrawn then, and an answer that comes all the same counts for nothing.
    pub(super) async fn decide(
        &mut self,
        request: ApprovalRequest,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Verdict, ToolError> {
        let lost = || ToolError::Denied("the question was lost; nothing was run".to_owned());
        let mut controller = self.controller.take().ok_or_else(lost)?;
        let mut asking = tokio::task::spawn_blocking(move || {
            let verdict = controller.decide(&request);
            (controller, verdict)
        });
        let mut stopped = None;
        let answered = loop {
            tokio::select! {
                biased;
                Some(signal) = stops.recv(), if stopped.is_none() => {
                    stopped = Some(signal);
                    if let Some(withdraw) = &self.withdraw {
                        withdraw.cancel();
                    }
                }
                answered = &mut asking => break answered,
            }
        };
        let (controller, verdict) = answered.map_err(|_| lost())?;
        self.controller = Some(controller);
        stopped.map_or(Ok(verdict), |signal| Err(ToolError::Stopped(signal)))
    }
}

/// How long a command may still be under way when its time is over, or it was told to stop. Whoever watches it ends it
/// then, and putting protected names back takes a while; but where the kernel knows no scopes for signals, a command in
/// namespaces can stop who watches it.
const OVERDUE: Duration = Duration::from_secs(15);

/// How a command ended, what it said, and the signal that stopped it, if one did.
type Done = (Ended, Relayed, Option<i32>);

/// Launches a command and serves its streams until its tree is dead.
async fn run(
    worker: &mut Confinement,
    launch: Launch,
    parent: ParentEnds,
    output: Option<u64>,
    stops: &mut mpsc::Receiver<Signal>,
) -> Result<Done, ToolError> {
    let timeout = launch.limits.timeout_ms.map(Duration::from_millis);
    let mut running = worker.launch(launch).await?;
    let mut overdue = timeout.and_then(|timeout| Instant::now().checked_add(timeout.saturating_add(OVERDUE)));
    let worker = &*worker;
    let (dead, tree_is_dead) = tokio::sync::oneshot::channel::<()>();
    let (broken, mut broken_pipe) = mpsc::channel::<()>(1);
    let relay = async {
        let relayed = parent
            .relay(output, async {
                // The other side is dropped only after it has fired.
                let _fired = tree_is_dead.await;
            })
            .await;
        if relayed.as_ref().map_or(true, |relayed| relayed.broken_pipe) {
            // Nobody listens when the command has ended already.
            let _told = broken.send(()).await;
        }
        relayed
    };
    let mut stopped = None;
    let ended = async {
        let ended = loop {
            tokio::select! {
                ended = running.ended() => break ended,
                () = at(overdue) => break Err(ConfineError::Unresponsive),
                Some(signal) = stops.recv() => {
                    stopped.get_or_insert(signal as i32);
                    overdue.get_or_insert(Instant::now() + OVERDUE);
                    worker.cancel(&running, signal).await?;
                }
                Some(()) = broken_pipe.recv() => {
                    stopped.get_or_insert(Signal::SIGPIPE as i32);
                    overdue.get_or_insert(Instant::now() + OVERDUE);
                    worker.cancel(&running, Signal::SIGKILL).await?;
                }
            }
        };
        let _drained = dead.send(());
        ended
    };
    let (relayed, ended) = tokio::join!(relay, ended);
    Ok((ended?, relayed?, stopped))
}

/// Waits for a moment; for none, for ever.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

fn command_limits(limits: &Limits, timeout: Option<Duration>, counting: Counting) -> CommandLimits {
    let timeout = match (limits.timeout, timeout) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    CommandLimits {
        timeout_ms: timeout.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
        memory: limits.memory,
        processes: limits.processes,
        counting,
        open_files: limits.open_files,
        file_size: limits.file_size,
    }
}

/// Captured output as text; bytes that are not UTF-8 are replaced, because JSON has no others.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        error
            .into_bytes()
            .utf8_chunks()
            .flat_map(|chunk| [chunk.valid(), if chunk.invalid().is_empty() { "" } else { "\u{fffd}" }])
            .collect()
    })
}
