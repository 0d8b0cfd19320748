//! The shell tool: one command line or program, judged, asked about, confined, run.

use serde_json::Value;

use super::approval_authority::ApprovalAuthority;
use super::assess_shell::assess_shell;
use super::call::{NAME, ShellCall, ToolError};
use super::deciding::decide;
use super::executor::{Executor, Lasting};
use super::explain::hint::hint;
use super::explain::judge::explained;
use super::explain::visible_paths::VisiblePaths;
use super::explain::{CommandResult, Explained};
use super::files::check_operands;
use super::git;
use super::guarded::MAX_RETRIES;
use super::missing_program::missing_program;
use super::network::ProxySession;
use super::on_record::{failed, failed_under_way, record_end};
use super::outcome::{Outcome, Status, lossy};
use super::overriding::{overridden, question_or_default};
use super::permit::{CommandRequest, Permit};
use super::plan::ProfileDigest;
use super::pool::Pool;
use super::programs::left_out;
use super::recorder::{self, CallId, OpenCall};
use super::restored::{Changed, Restored};
use super::run_command::{LaunchedCommand, run};
use super::start_command::{CommandContext, StartRequest, StartedCommand, finished, start_command};
use super::tool::{ApprovalContext, Assessment};
use super::undo_offer::{OfferResult, offer};
use super::unwritable_roots::unwritable_root_warning;
use crate::approval::{AnswerOf, ApprovalRequest};
use crate::confine::Confinement;
use crate::confine::io::{OutputMode, Stdin, prepare};
use crate::policy::AbsPath;
use crate::policy::path::escape;

/// How much of each stream is kept where neither the config nor the caller says.
const KEPT: u64 = 1024 * 1024;

impl Executor {
    /// Judges, asks, confines and runs one call. Where there is a log, it is on record before anything else.
    pub async fn shell(&mut self, call: ShellCall) -> Result<Outcome, ToolError> {
        let Some(recorder) = self.deciding.recorder.clone() else {
            return carried_out(self, call, None).await;
        };
        let name = recorder.next_call();
        let event = recorder::call_of_a_command(name.clone(), NAME, &call);
        let open = OpenCall::put(&recorder, name.clone(), event).await?;
        let done = carried_out(self, call, Some(name)).await;
        let is_done = |outcome: &Outcome| outcome.status == Status::Exited { code: 0 };
        open.end_with(done, is_done, None).await
    }
}

async fn carried_out(executor: &mut Executor, call: ShellCall, name: Option<CallId>) -> Result<Outcome, ToolError> {
    match carry_out(executor, call, name).await {
        Ok(outcome) => Ok(outcome),
        Err(error) => Err(failed(executor.deciding.recorder.as_ref(), &executor.recovered, error).await),
    }
}

async fn carry_out(executor: &mut Executor, mut call: ShellCall, name: Option<CallId>) -> Result<Outcome, ToolError> {
    executor.pool.chosen().ensure_usable()?;
    let ceilings = &executor.session().policy;
    call.environment
        .retain(|(name, value)| ceilings.variable_beyond(name, value).is_none());
    let directory = AbsPath::new(&call.directory).map_err(|_| ToolError::Directory(call.directory.clone()))?;
    executor.pool.start_in(&directory);
    let mut tries = 0..MAX_RETRIES;
    loop {
        let permit = Box::pin(permission(executor, &mut call, &directory, name.as_ref())).await?;
        match check_operands(&mut executor.files(&mut call.stops), &permit.operands).await {
            Ok(()) => {
                let context = CommandContext {
                    deciding: Some(executor.deciding.clone()),
                    tool_name: NAME.to_owned(),
                    caller: None,
                    call: name,
                };
                return Box::pin(execute(executor, call, &directory, permit, context)).await;
            }
            Err(ToolError::Changed(_)) if tries.next().is_some() => {}
            Err(error) => return Err(error),
        }
    }
}

/// What the call may do, after asking what must be asked.
async fn permission(
    executor: &mut Executor,
    call: &mut ShellCall,
    directory: &AbsPath,
    name: Option<&CallId>,
) -> Result<Permit, ToolError> {
    let wanted = CommandRequest {
        command: &call.command,
        directory,
        start: directory,
        environment: &call.environment,
        caller: None,
        authority: ApprovalAuthority::Config,
    };
    let (assessment, permit) = assess_shell(executor, wanted, &mut call.stops).await?;
    let context = ApprovalContext::new(NAME, Value::Null);
    let rule = executor.session().policy.tools.get(NAME);
    let assessment = overridden(rule, assessment, permit.override_by_config, &context);
    if let (Some(recorder), Some(name)) = (&executor.deciding.recorder, name) {
        recorder.note(vec![recorder::assessment(name, &assessment)]).await?;
    }
    let request = match assessment {
        Assessment::Blocked(why) => return Err(ToolError::Blocked(why)),
        Assessment::PreApproved(_) => return Ok(permit),
        Assessment::NeedsApproval(request) => *request,
        Assessment::NoOpinion(question) => question_or_default(question, &context),
    };
    let answer = match (executor.lasting, request.answer) {
        (Lasting::OneCommand, AnswerOf::Anyone) => AnswerOf::AnyoneOnce,
        (Lasting::OneCommand | Lasting::Session, answer) => answer,
    };
    let request = ApprovalRequest {
        call: name.cloned(),
        answer,
        ..request
    };
    match decide(&executor.deciding, request, &mut call.stops).await?.denial {
        None => Ok(permit.approved()),
        Some(denial) => Err(ToolError::Denied(denial)),
    }
}

pub(super) async fn execute(
    executor: &mut Executor,
    mut call: ShellCall,
    directory: &AbsPath,
    permit: Permit,
    context: CommandContext,
) -> Result<Outcome, ToolError> {
    executor.pool.check_directory(directory)?;
    let (child, parent) = prepare(std::mem::replace(&mut call.stdin, Stdin::Null), call.output)?;
    let derived = executor.profiles.of(&permit.call)?;
    let (profile, digest) = (&derived.profile, derived.digest());
    let request = StartRequest {
        call: &mut call,
        directory,
        permit: &permit,
        derived: &derived,
        context: &context,
        hold: parent.pause(),
        input: child.input,
    };
    let command = start_command(&mut executor.pool, request, [child.stdin, child.stdout, child.stderr]).await?;
    let StartedCommand {
        mut forker,
        running,
        proxy_session,
        forker_plan,
        session,
        started,
        timeout,
        stop,
    } = command;
    let Permit {
        call: permitted,
        search,
        ..
    } = permit;
    let name = context.call.as_deref();
    let output = profile.limits.output.or(kept_output(&call));
    let gate = proxy_session.as_ref().map(ProxySession::gate);
    let launched = LaunchedCommand {
        running,
        timeout,
        gate,
        stop,
    };
    let done = Box::pin(run(&forker, launched, parent, output, &mut call.stops)).await;
    let duration = started.elapsed();
    let network = ProxySession::close(proxy_session).await;
    let (ended, relayed, stopped) = match done {
        Ok(done) => done,
        Err(error) => {
            let error = failed_under_way(executor.deciding.recorder.as_ref(), error, network, name).await;
            return finished(forker, error).await;
        }
    };
    let command_result = CommandResult::of(&ended.end);
    let explained = match forker_plan {
        Some(forker_plan) => Some(explained(forker_plan, ended.attempted, permitted, command_result).await),
        None => None,
    };
    let mut restored: Vec<Restored> = ended.put_back.violations.into_iter().map(Into::into).collect();
    let offered = match stopped {
        None => offer(&executor.deciding, &mut forker, &mut restored, name, &mut call.stops).await,
        // Who stopped it wants an end, and no question.
        Some(_) => OfferResult::Nothing,
    };
    let mut unsettled = ended.put_back.unsettled.map(|why| escape(why.as_bytes()));
    executor.recovered.append_to(&mut restored, &mut unsettled);
    keep_or_end(&mut executor.pool, offered, digest, forker).await;
    let status = Status::of(ended.end, stopped);
    let output_bytes = relayed.stdout.total + relayed.stderr.total;
    let visible = VisiblePaths::of(profile, directory, &session);
    let stderr = lossy(relayed.stderr.into_bytes());
    let session = executor.session();
    let git_files = &executor.pool.user_paths().git;
    let outcome = Outcome {
        git: git::missed(session, git_files, &call.command, directory, profile),
        hint: missing_program(session, &call.command, (&call.environment, profile), &status, &stderr)
            .or_else(|| left_out(session, &search, (&call.environment, profile), &status, &stderr))
            .or_else(|| {
                how_to_see(
                    &executor.pool,
                    explained.as_ref(),
                    &status,
                    call.output,
                    &stderr,
                    &visible,
                )
            }),
        status,
        regime: executor.regime_line()?.to_string(),
        duration,
        output_bytes,
        undelivered_bytes: relayed.undelivered,
        stdout: lossy(relayed.stdout.into_bytes()),
        stderr,
        changed: Changed::of(&restored),
        new_files: ended.put_back.appeared.into(),
        denied: executor.pool.new_denied_names(&derived),
        unsettled,
        network,
        explained,
    };
    record_end(executor.deciding.recorder.as_ref(), &outcome, &restored, name).await?;
    Ok(outcome)
}

/// How much output of a call is kept, where the config has no limit.
fn kept_output(call: &ShellCall) -> Option<u64> {
    match call.output {
        OutputMode::Capture => Some(call.kept.unwrap_or(KEPT)),
        OutputMode::Stream => call.kept,
    }
}

/// How to find out more, where nobody looked.
fn how_to_see(
    pool: &Pool,
    explained: Option<&Explained>,
    status: &Status,
    output: OutputMode,
    stderr: &str,
    visible: &VisiblePaths<'_>,
) -> Option<String> {
    let (policy, chosen) = (&pool.session().policy, pool.chosen());
    let is_unconfined = chosen.is_unconfined();
    let failed = *status != Status::Exited { code: 0 };
    // Whatever else is looked for, this is why. Where the output is streamed, it was said at the start.
    if failed
        && output == OutputMode::Capture
        && !is_unconfined
        && let Some(why) = unwritable_root_warning(policy)
    {
        return Some(why);
    }
    match (explained, is_unconfined) {
        (None, false) => {
            let visible = chosen.is_in_namespaces().then_some(visible);
            hint(policy.explain, status, output, stderr, visible)
        }
        (Some(_), _) | (_, true) => None,
    }
}

/// Keeps a forker for the next command or its own end, or ends all that were started before something was put back.
async fn keep_or_end(pool: &mut Pool, offered: OfferResult, digest: ProfileDigest, forker: Confinement) {
    match offered {
        OfferResult::Nothing => pool.keep(digest, forker).await,
        // In namespaces what is there now is held by a mount of its own, in forkers that start from here on.
        OfferResult::PutBack => {
            forker.finish().await;
            pool.end_all().await;
        }
    }
}
