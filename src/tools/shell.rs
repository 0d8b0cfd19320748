//! The shell tool: one command line or program, judged, asked about, confined, run.

use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::sync::mpsc;

use super::begun::{Begun, Order};
use super::call::{ShellCall, ToolError};
use super::deciding::{Deciding, decide};
use super::executor::Executor;
use super::explain::Explained;
use super::explain::hidden::Seen;
use super::explain::hint::hint;
use super::explain::judge::{Fate, explained};
use super::footing::Footing;
use super::guarded::{AGAIN, asked, ruled};
use super::network::{NetworkUse, Way};
use super::offers::Offered;
use super::others_root::unwritable;
use super::outcome::{Outcome, Status, lossy};
use super::permission::{Overruled, Permit, Wanted};
use super::plan::ProfileDigest;
use super::recorder::{self, CallId, OpenCall};
use super::restored::{Changed, Restored};
use super::tool::{ApprovalContext, Assessment};
use super::under_way::{UnderWay, run, within_a_stop};
use super::workers::Derived;
use crate::approval::ApprovalRequest;
use crate::confine::io::{OutputMode, Stdin, prepare};
use crate::confine::{Confinement, ForkerFor};
use crate::policy::AbsPath;
use crate::policy::path::escape;
use crate::profile::Asked;

/// The name under which `tools:` speaks of the shell tool.
pub const NAME: &str = "shell";

/// How much of each stream is kept where neither the config nor the caller says.
const KEPT: u64 = 1024 * 1024;

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
            return self.carried_out(call, None).await;
        };
        let name = recorder.next_call();
        let event = recorder::call_of_a_command(name.clone(), NAME, &call);
        let open = OpenCall::put(&recorder, name.clone(), event).await?;
        let done = self.carried_out(call, Some(name)).await;
        let is_done = |outcome: &Outcome| outcome.status == Status::Exited { code: 0 };
        open.end_with(done, is_done, None).await
    }

    async fn carried_out(&mut self, call: ShellCall, name: Option<CallId>) -> Result<Outcome, ToolError> {
        match self.carry_out(call, name).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => Err(self.with_recovery(error).await),
        }
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
        self.hold_directory(directory)?;
        let (child, parent) = prepare(std::mem::replace(&mut call.stdin, Stdin::Null), call.output)?;
        let derived = self.profile(&permit.call)?;
        let (profile, digest) = (&derived.profile, derived.digest());
        let order = Order {
            call: &mut call,
            directory,
            permit: &permit,
            derived: &derived,
            meanwhile: &meanwhile,
            hold: parent.hold(),
            input: child.input,
        };
        let begun = self.begin(order, [child.stdin, child.stdout, child.stderr]).await?;
        let Begun {
            mut worker,
            running,
            way,
            standing,
            session,
            started,
            timeout,
            stop,
        } = begun;
        let Permit {
            call: permitted,
            search,
            ..
        } = permit;
        let name = meanwhile.call.as_deref();
        let kept = match call.output {
            OutputMode::Capture => Some(call.kept.unwrap_or(KEPT)),
            OutputMode::Stream => call.kept,
        };
        let output = profile.limits.output.or(kept);
        let gate = way.as_ref().map(Way::gate);
        let under_way = UnderWay {
            running,
            timeout,
            gate,
            stop,
        };
        let done = Box::pin(run(&worker, under_way, parent, output, &mut call.stops)).await;
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
        let fate = Fate::of(&ended.end);
        let explained = match standing {
            Some(standing) => Some(explained(standing, ended.attempted, permitted, fate).await),
            None => None,
        };
        let mut restored: Vec<Restored> = ended.put_back.violations.into_iter().map(Into::into).collect();
        let offered = match stopped {
            None => self.offer(&mut worker, &mut restored, name, &mut call.stops).await,
            // Who stopped it wants an end, and no question.
            Some(_) => Offered::Nothing,
        };
        let mut unsettled = ended.put_back.unsettled.map(|why| escape(why.as_bytes()));
        self.recovered.tell_after(&mut restored, &mut unsettled);
        self.keep_or_end(offered, digest, worker).await;
        let status = Status::of(ended.end, stopped);
        let output_bytes = relayed.stdout.total + relayed.stderr.total;
        let seen = Seen::of(profile, directory, &session);
        let stderr = lossy(relayed.stderr.into_bytes());
        let outcome = Outcome {
            git: self.git_settings_missed(&call.command, directory, profile),
            hint: self
                .left_out(&search, (&call.environment, profile), &status, &stderr)
                .or_else(|| self.hint(explained.as_ref(), &status, call.output, &stderr, &seen)),
            status,
            regime: self.regime_line()?.to_string(),
            duration,
            output_bytes,
            undelivered_bytes: relayed.undelivered,
            stdout: lossy(relayed.stdout.into_bytes()),
            stderr,
            changed: Changed::of(&restored),
            appeared: ended.put_back.appeared.into(),
            denied: self.new_denied_names(&derived),
            unsettled,
            network,
            explained,
        };
        self.record_end(&outcome, &restored, name).await?;
        Ok(outcome)
    }

    /// A worker, unless somebody stopped the call while it was made ready: they want no command.
    pub(super) async fn ready_worker(
        &mut self,
        derived: &Derived,
        worker_for: ForkerFor,
        asked: &Asked,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<Confinement, ToolError> {
        self.end_outdated(derived).await?;
        let ready = async {
            match self.workers.take(derived) {
                Some(worker) => Ok(worker),
                None => self.start_worker(&derived.profile, worker_for, asked).await,
            }
        };
        let (worker, stop) = within_a_stop(ready, stops).await?;
        match (worker, stop.or_else(|| stops.try_recv().ok())) {
            (worker, None) => worker,
            (Ok(worker), Some(signal)) => {
                self.workers.keep(derived.digest(), worker).await;
                Err(ToolError::Stopped(signal))
            }
            // The same key may have hit what was being started, before it had a group of its own.
            (Err(_), Some(signal)) => Err(ToolError::Stopped(signal)),
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
        let failed = *status != Status::Exited { code: 0 };
        // Whatever else is looked for, this is why. Where the output is streamed, it was said at the start.
        if failed
            && output == OutputMode::Capture
            && !self.is_unconfined()
            && let Some(why) = unwritable(&self.policy)
        {
            return Some(why);
        }
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
    pub(super) async fn failed_under_way(
        &self,
        error: ToolError,
        network: Option<NetworkUse>,
        name: Option<&str>,
    ) -> ToolError {
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
