//! A permitted command → one under way in a forker.
//!
//! A forker ends itself when somebody on the host replaces what it holds by a mount, as `git config` does. Where that is before a
//! command started, the command starts in another one, and nobody is told.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::call::{ShellCall, ToolError, argv, words};
use super::deciding::Deciding;
use super::environment::environment;
use super::explain::forker_plan::ForkerPlan;
use super::limits::{command_limits, counting};
use super::network::{About, Asker, Bounds, ProxySession};
use super::on_record::{failed_under_way, record_start};
use super::permit::Permit;
use super::pool::Pool;
use super::profiles::Derived;
use super::recorder::CallId;
use super::run_command::{unless_stopped, with_stop_timeout};
use crate::confine::io::{InputKind, Pause};
use crate::confine::wire::protocol::Work;
use crate::confine::{ConfineError, Confinement, FailedLaunch, ForkerFor, Launch, Running};
use crate::policy::AbsPath;
use crate::policy::path::escape;

/// Who decides what comes up while a command runs, and what it is told of the command.
#[derive(Debug)]
pub(super) struct CommandContext {
    /// Without it nobody is asked.
    pub(super) deciding: Option<Deciding>,
    pub(super) tool_name: String,
    pub(super) caller: Option<String>,
    /// The call, as the audit log names it.
    pub(super) call: Option<CallId>,
}

/// A command to start, with its profile and streams.
pub(super) struct StartRequest<'a> {
    pub(super) call: &'a mut ShellCall,
    pub(super) directory: &'a AbsPath,
    pub(super) permit: &'a Permit,
    pub(super) derived: &'a Derived,
    pub(super) context: &'a CommandContext,
    /// Pauses its streams while somebody is asked.
    pub(super) hold: Pause,
    pub(super) input: InputKind,
}

/// A running command, its forker and its proxy.
pub(super) struct StartedCommand {
    pub(super) forker: Confinement,
    pub(super) running: Running,
    pub(super) proxy_session: Option<ProxySession>,
    pub(super) forker_plan: Option<Arc<ForkerPlan>>,
    pub(super) session: PathBuf,
    pub(super) started: Instant,
    pub(super) timeout: Option<Duration>,
    /// A stop that came while it was launched.
    pub(super) stop: Option<Signal>,
}

/// Why a command could not be started.
enum StartError {
    /// Another forker may begin with it; the streams for it.
    Retry([OwnedFd; 3]),
    Failed(ToolError),
}

impl From<ToolError> for StartError {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    Last,
}

/// Starts a permitted command with these streams: in the forker of its profile, or, where that has ended itself before, in a
/// new one.
pub(super) async fn start_command(
    pool: &mut Pool,
    mut request: StartRequest<'_>,
    streams: [OwnedFd; 3],
) -> Result<StartedCommand, ToolError> {
    let streams = match try_start(pool, &mut request, streams, Attempt::First).await {
        Ok(command) => return Ok(command),
        Err(StartError::Failed(error)) => return Err(error),
        Err(StartError::Retry(streams)) => streams,
    };
    match try_start(pool, &mut request, streams, Attempt::Last).await {
        Ok(command) => Ok(command),
        Err(StartError::Failed(error)) => Err(error),
        Err(StartError::Retry(_)) => Err(ConfineError::ForkerExited(None).into()),
    }
}

async fn try_start(
    pool: &mut Pool,
    request: &mut StartRequest<'_>,
    streams: [OwnedFd; 3],
    which: Attempt,
) -> Result<StartedCommand, StartError> {
    let StartRequest {
        call,
        directory,
        permit,
        derived,
        context,
        hold,
        input,
    } = request;
    let profile = &derived.profile;
    let forker_for = ForkerFor::input(*input);
    let mut forker = pool
        .ready(derived, forker_for, &permit.call.approved_roots, &mut call.stops)
        .await?;
    let digest = derived.digest();
    let name = context.call.as_deref();
    // It is recorded once that it starts.
    let recorded = match which {
        Attempt::First => {
            let profile = (&digest, pool.chosen().regime_name());
            record_start(pool.recorder(), &call.command, directory, profile, name).await
        }
        Attempt::Last => Ok(()),
    };
    let forker_plan = match recorded.and_then(|()| pool.forker_plan(profile, &forker)) {
        Ok(forker_plan) => forker_plan,
        Err(error) => return Ok(finished(forker, error).await?),
    };
    let about = About {
        call: context.call.clone(),
        tool_name: context.tool_name.clone(),
        command: escape(&words(&call.command)),
        caller: context.caller.clone(),
        digest,
        bounds: Bounds::of(&pool.session().policy, &pool.session().narrowing),
    };
    let asker = context.deciding.clone().map(|deciding| Asker {
        deciding,
        hold: hold.clone(),
    });
    let opening = ProxySession::open(&mut forker, profile, about, asker, None);
    let opened = unless_stopped(opening, &mut call.stops).await;
    let proxy_session = match opened {
        Ok(proxy_session) => proxy_session,
        Err(ToolError::Confine(ConfineError::ForkerExited(_))) if which == Attempt::First => {
            forker.finish().await;
            return Err(StartError::Retry(streams));
        }
        Err(error) => return Ok(finished(forker, error).await?),
    };
    let limits = command_limits(
        &profile.limits,
        call.timeout,
        counting(&pool.chosen().enforcement, profile),
    );
    let launch = Launch {
        work: Work::Command(argv(call.command.clone())),
        environment: environment(
            pool,
            profile,
            &permit.search,
            &forker,
            &call.environment,
            proxy_session.as_ref(),
        ),
        directory: directory.as_path().as_os_str().to_owned(),
        limits,
        input: *input,
        streams,
    };
    let started = Instant::now();
    let (launched, stop) = with_stop_timeout(forker.try_launch(launch), &mut call.stops).await?;
    let FailedLaunch { error, streams } = match launched {
        Ok(running) => {
            return Ok(StartedCommand {
                session: forker.session().path().to_owned(),
                timeout: limits.timeout_ms.map(Duration::from_millis),
                forker,
                running,
                proxy_session,
                forker_plan,
                started,
                stop,
            });
        }
        Err(unlaunched) => unlaunched,
    };
    let network = ProxySession::close(proxy_session).await;
    match (error, streams) {
        (ConfineError::ForkerExited(_), Some(streams)) if which == Attempt::First => {
            forker.finish().await;
            Err(StartError::Retry(streams))
        }
        (error, _) => {
            let error = failed_under_way(pool.recorder(), error.into(), network, name).await;
            Ok(finished(forker, error).await?)
        }
    }
}

/// Ends a forker and returns the error.
pub(super) async fn finished<T>(forker: Confinement, error: ToolError) -> Result<T, ToolError> {
    forker.finish().await;
    Err(error)
}
