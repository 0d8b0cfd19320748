//! The shell tool: one command line or program, judged, asked about, confined, run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::sync::mpsc;

use super::call::{ShellCall, ToolError, argv, words};
use super::deciding::{Deciding, decide};
use super::executor::Executor;
use super::explain::Explained;
use super::explain::hidden::Seen;
use super::explain::hint::hint;
use super::explain::judge::explained;
use super::footing::Footing;
use super::guarded::{AGAIN, asked, ruled};
use super::limits::command_limits;
use super::network::{About, Asker, Bounds, HostGate, NetworkUse, Way};
use super::offers::Offered;
use super::outcome::{Outcome, Restored, Status, lossy};
use super::permission::{Overruled, Permit, Wanted};
use super::plan::ProfileDigest;
use super::recorder::{self, CallId, OpenCall};
use super::tool::{ApprovalContext, Assessment};
use crate::approval::ApprovalRequest;
use crate::confine::io::{OutputMode, ParentEnds, Relayed, Stdin, prepare};
use crate::confine::protocol::{End, Ended, Work};
use crate::confine::{ConfineError, Confinement, Expected, Launch};
use crate::policy::AbsPath;
use crate::policy::path::escape;

/// The name under which `tools:` speaks of the shell tool.
pub const NAME: &str = "shell";

/// Who decides what comes up while a command runs, and what it is told of the command.
#[derive(Debug)]
pub(super) struct Meanwhile {
    /// Nobody is asked where there is none.
    pub(super) deciding: Option<Deciding>,
    pub(super) tool_name: String,
    pub(super) caller: Option<String>,
    /// The call, as the audit log names it.
    pub(super) call: Option<CallId>,
}

impl Executor {
    /// Judges, asks, confines and runs one call. Where there is a log, it is on record before anything else.
    pub async fn shell(&mut self, call: ShellCall) -> Result<Outcome, ToolError> {
        let Some(recorder) = self.deciding.recorder.clone() else {
            return self.carry_out(call, None).await;
        };
        let name = recorder.next_call();
        let event = recorder::call_of_a_command(name.clone(), NAME, &call);
        let open = OpenCall::put(&recorder, name.clone(), event).await?;
        let done = self.carry_out(call, Some(name)).await;
        let is_done = |outcome: &Outcome| outcome.status == Status::Exited { code: 0 };
        open.end_with(done, is_done, None).await
    }

    async fn carry_out(&mut self, mut call: ShellCall, name: Option<CallId>) -> Result<Outcome, ToolError> {
        if let Footing::Refused(why) = &self.chosen.footing {
            return Err(ToolError::Refused(why.clone()));
        }
        let ceilings = &self.policy;
        call.environment
            .retain(|(name, value)| ceilings.variable_beyond(name, value).is_none());
        let directory = AbsPath::new(&call.directory).map_err(|_| ToolError::Directory(call.directory.clone()))?;
        let mut tries = 0..AGAIN;
        loop {
            let permit = Box::pin(self.permission(&mut call, &directory, name.as_ref())).await?;
            match self.hold_operands(&permit.operands, &mut call.stops).await {
                Ok(()) => {
                    let meanwhile = Meanwhile {
                        deciding: Some(self.deciding.clone()),
                        tool_name: NAME.to_owned(),
                        caller: None,
                        call: name,
                    };
                    return Box::pin(self.execute(call, &directory, permit, meanwhile)).await;
                }
                Err(ToolError::Changed(_)) if tries.next().is_some() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// What the call may do, after asking what must be asked.
    async fn permission(
        &mut self,
        call: &mut ShellCall,
        directory: &AbsPath,
        name: Option<&CallId>,
    ) -> Result<Permit, ToolError> {
        let wanted = Wanted {
            command: &call.command,
            directory,
            start: directory,
            environment: &call.environment,
            caller: None,
            overruled: Overruled::ByConfig,
        };
        let (assessment, permit) = self.assess_shell(wanted, &mut call.stops).await?;
        let context = ApprovalContext::new(NAME, Value::Null);
        let assessment = match self.policy.tools.get(NAME) {
            Some(rule) => ruled(rule, assessment, &context),
            None => assessment,
        };
        if let (Some(recorder), Some(name)) = (&self.deciding.recorder, name) {
            recorder.note(vec![recorder::assessment(name, &assessment)]).await?;
        }
        let request = match assessment {
            Assessment::Blocked(why) => return Err(ToolError::Blocked(why)),
            Assessment::PreApproved(_) => return Ok(permit),
            Assessment::NeedsApproval(request) => *request,
            Assessment::NoOpinion(question) => asked(question, &context),
        };
        let request = ApprovalRequest {
            call: name.cloned(),
            ..request
        };
        match decide(&self.deciding, request, &mut call.stops).await?.denial {
            None => Ok(permit.approved()),
            Some(denial) => Err(ToolError::Denied(denial)),
        }
    }

    /// Confines and runs what is permitted.
    pub(super) async fn execute(
        &mut self,
        mut call: ShellCall,
        directory: &AbsPath,
        permit: Permit,
        meanwhile: Meanwhile,
    ) -> Result<Outcome, ToolError> {
        let Permit {
            call: permitted,
            search,
            ..
        } = permit;
        self.hold_directory(directory)?;
        let (child, parent) = prepare(std::mem::replace(&mut call.stdin, Stdin::Null), call.output)?;
        let derived = self.profile(&permitted)?;
        let profile = &derived.profile;
        // How many processes are counted may turn out otherwise, with the regime. Then the command makes its own.
        let limits = command_limits(&profile.limits, call.timeout, self.counting(profile));
        let expected = Expected::command(child.controlling_terminal, limits);
        let mut worker = match self.workers.expecting(&derived, self.afterwards).await {
            Some(worker) => worker,
            None => self.start_worker(profile, expected, &permitted.asked).await?,
        };
        let digest = derived.digest();
        worker = self.unless_stopped(worker, digest, &mut call.stops).await?;
        let name = meanwhile.call.as_deref();
        if let Err(error) = self.record_start(&call.command, directory, &digest, name).await {
            return finished(worker, error).await;
        }
        let standing = match self.standing(profile, worker.session()) {
            Ok(standing) => standing,
            Err(error) => return finished(worker, error).await,
        };
        let session = worker.session().path().to_owned();
        let about = About {
            call: meanwhile.call.clone(),
            tool_name: meanwhile.tool_name.clone(),
            command: escape(&words(&call.command)),
            caller: meanwhile.caller.clone(),
            digest,
            bounds: Bounds::of(&self.policy, &self.narrowing),
        };
        let asker = meanwhile.deciding.map(|deciding| Asker {
            deciding,
            hold: parent.hold(),
        });
        let way = match Way::open(&mut worker, profile, about, asker, None).await {
            Ok(way) => way,
            Err(error) => return finished(worker, error).await,
        };
        let launch = Launch {
            work: Work::Command(argv(call.command.clone())),
            environment: self.environment(profile, &search, &worker, &call.environment, way.as_ref()),
            directory: directory.as_path().as_os_str().to_owned(),
            limits: command_limits(&profile.limits, call.timeout, self.counting(profile)),
            terminal: child.controlling_terminal,
            afterwards: self.afterwards,
            streams: [child.stdin, child.stdout, child.stderr],
        };
        let output = profile.limits.output.or(call.kept);
        let started = Instant::now();
        let gate = way.as_ref().map(Way::gate);
        let done = Box::pin(run(&mut worker, launch, parent, output, &mut call.stops, gate)).await;
        let duration = started.elapsed();
        let network = match way {
            Some(way) => Some(way.close().await),
            None => None,
        };
        let (ended, relayed, stopped) = match done {
            Ok(done) => done,
            Err(error) => {
                let error = self.failed_under_way(error, network, name).await;
                return finished(worker, error).await;
            }
        };
        let explained = match standing {
            Some(standing) => Some(explained(standing, ended.attempted, worker.recorded().await, permitted).await),
            None => None,
        };
        let mut restored: Vec<Restored> = ended.violations.into_iter().map(Into::into).collect();
        let offered = match stopped {
            None => self.offer(&mut worker, &mut restored, name, &mut call.stops).await,
            // Who stopped it wants an end, and no question.
            Some(_) => Offered::Nothing,
        };
        self.keep_or_end(offered, digest, worker).await;
        let status = Status::of(ended.end, stopped);
        let output_bytes = relayed.stdout.total + relayed.stderr.total;
        let seen = Seen::of(profile, directory, &session);
        let stderr = lossy(relayed.stderr.into_bytes());
        let outcome = Outcome {
            hint: self
                .left_out(&search, (&call.environment, profile), &status, &stderr)
                .or_else(|| self.hint(explained.as_ref(), &status, call.output, &stderr, &seen)),
            status,
            regime: self.regime_line()?.to_string(),
            duration,
            output_bytes,
            stdout: lossy(relayed.stdout.into_bytes()),
            stderr,
            restored,
            unsettled: ended.unsettled.map(|why| escape(why.as_bytes())),
            network,
            explained,
        };
        self.record_end(&outcome, name).await?;
        Ok(outcome)
    }

    /// The worker, unless somebody stopped the call while it was made ready: they want no command.
    async fn unless_stopped(
        &mut self,
        worker: Confinement,
        digest: ProfileDigest,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Confinement, ToolError> {
        match stops.try_recv() {
            Ok(signal) => {
                self.workers.keep(digest, worker).await;
                Err(ToolError::Stopped(signal))
            }
            Err(_) => Ok(worker),
        }
    }

    /// How to find out more, where nobody looked.
    fn hint(
        &self,
        explained: Option<&Explained>,
        status: &Status,
        output: OutputMode,
        stderr: &str,
        seen: &Seen<'_>,
    ) -> Option<String> {
        match (explained, self.is_unconfined()) {
            (None, false) => {
                let seen = self.is_in_namespaces().then_some(seen);
                hint(self.policy.explain, status, output, stderr, seen)
            }
            (Some(_), _) | (_, true) => None,
        }
    }

    /// Keeps a worker for the next command or its own end, or ends all that were started before something was put back.
    async fn keep_or_end(&mut self, offered: Offered, digest: ProfileDigest, worker: Confinement) {
        match offered {
            Offered::Nothing => self.workers.keep(digest, worker).await,
            // In namespaces what is there now is held by a mount of its own, in workers that start from here on.
            Offered::PutBack => {
                worker.finish().await;
                std::mem::take(&mut self.workers).finish().await;
            }
        }
    }

    /// What is told of a command that failed while it was under way: what it had tried to reach is told and recorded, too.
    async fn failed_under_way(&self, error: ToolError, network: Option<NetworkUse>, name: Option<&str>) -> ToolError {
        if let Err(unrecorded) = self.record_failure(&error, network.as_ref(), name).await {
            return unrecorded;
        }
        match network {
            Some(network) => ToolError::UnderWay {
                failure: Box::new(error),
                network,
            },
            None => error,
        }
    }
}

/// Ends a worker for which there is no more to do than to say why.
async fn finished<T>(worker: Confinement, error: ToolError) -> Result<T, ToolError> {
    worker.finish().await;
    Err(error)
}

/// How long a command may still be under way when its time is over, or it was told to stop. Whoever watches it ends it
/// then, and putting protected names back takes a while; but where the kernel knows no scopes for signals, a command in
/// namespaces can stop who watches it.
pub(super) const OVERDUE: Duration = Duration::from_secs(15);

/// How a command ended, what it said, and the signal that stopped it, if one did.
type Done = (Ended, Relayed, Option<i32>);

/// Launches a command and serves its streams until its tree is dead.
async fn run(
    worker: &mut Confinement,
    launch: Launch,
    parent: ParentEnds,
    output: Option<u64>,
    stops: &mut mpsc::Receiver<Signal>,
    gate: Option<Arc<HostGate>>,
) -> Result<Done, ToolError> {
    let timeout = launch.limits.timeout_ms.map(Duration::from_millis);
    let mut running = worker.launch(launch).await?;
    let mut must_end = std::pin::pin!(running.must_end());
    let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut overdue = end.and_then(|end| end.checked_add(OVERDUE));
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
    let mut is_ending = false;
    let ended = async {
        let ended = loop {
            tokio::select! {
                // Its end counts first: a stop that comes with it comes too late, also where nobody looked for a while.
                biased;
                ended = running.ended() => break ended,
                () = at(overdue) => break Err(ConfineError::Unresponsive),
                Some(signal) = stops.recv() => {
                    stopped.get_or_insert(signal as i32);
                    overdue.get_or_insert(Instant::now() + OVERDUE);
                    worker.cancel(&running, signal).await?;
                }
                () = &mut must_end, if !is_ending => {
                    is_ending = true;
                    overdue.get_or_insert(Instant::now() + OVERDUE);
                    worker.cancel(&running, Signal::SIGKILL).await?;
                }
                Some(()) = broken_pipe.recv() => {
                    stopped.get_or_insert(Signal::SIGPIPE as i32);
                    overdue.get_or_insert(Instant::now() + OVERDUE);
                    worker.cancel(&running, Signal::SIGKILL).await?;
                }
            }
        };
        // A question that is open holds up what is left of the output.
        if let Some(gate) = gate {
            gate.end();
        }
        let _drained = dead.send(());
        ended
    };
    let (relayed, ended) = tokio::join!(relay, ended);
    let mut ended = ended?;
    if let (End::Lost, Some(true)) = (&ended.end, end.map(|end| end <= Instant::now())) {
        // Whoever was to say that its time was over went with it.
        ended.end = End::TimedOut;
    }
    Ok((ended, relayed?, stopped))
}

/// Waits for a moment; for none, for ever.
pub(super) async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}
