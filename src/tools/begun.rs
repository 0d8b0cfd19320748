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
use super::explain::standing::Standing;
use super::limits::{command_limits, counting};
use super::network::{About, Asker, Bounds, Way};
use super::on_record::{failed_under_way, record_start};
use super::permit::Permit;
use super::pool::Pool;
use super::profiles::Derived;
use super::recorder::CallId;
use super::under_way::{unless_stopped, within_a_stop};
use crate::confine::io::{Hold, InputKind};
use crate::confine::wire::protocol::Work;
use crate::confine::{ConfineError, Confinement, ForkerFor, Launch, Running, Unlaunched};
use crate::policy::AbsPath;
use crate::policy::path::escape;

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

/// What is to run, and as what.
pub(super) struct Order<'a> {
    pub(super) call: &'a mut ShellCall,
    pub(super) directory: &'a AbsPath,
    pub(super) permit: &'a Permit,
    pub(super) derived: &'a Derived,
    pub(super) meanwhile: &'a Meanwhile,
    /// What holds its streams up while somebody is asked.
    pub(super) hold: Hold,
    /// What its standard input is.
    pub(super) input: InputKind,
}

/// A command under way, and what is around it.
pub(super) struct Begun {
    pub(super) forker: Confinement,
    pub(super) running: Running,
    pub(super) way: Option<Way>,
    pub(super) standing: Option<Arc<Standing>>,
    /// The session directory of its forker.
    pub(super) session: PathBuf,
    pub(super) started: Instant,
    pub(super) timeout: Option<Duration>,
    /// A stop that came while it was launched.
    pub(super) stop: Option<Signal>,
}

/// Why none is under way.
enum Unbegun {
    /// Another forker may begin with it; the streams for it.
    Again([OwnedFd; 3]),
    Failed(ToolError),
}

impl From<ToolError> for Unbegun {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

/// Which forker is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Try {
    First,
    Last,
}

/// Starts a permitted command with these streams: in the forker of its profile, or, where that has ended itself before, in a
/// new one.
pub(super) async fn begin(pool: &mut Pool, mut order: Order<'_>, streams: [OwnedFd; 3]) -> Result<Begun, ToolError> {
    let streams = match try_to_begin(pool, &mut order, streams, Try::First).await {
        Ok(begun) => return Ok(begun),
        Err(Unbegun::Failed(error)) => return Err(error),
        Err(Unbegun::Again(streams)) => streams,
    };
    match try_to_begin(pool, &mut order, streams, Try::Last).await {
        Ok(begun) => Ok(begun),
        Err(Unbegun::Failed(error)) => Err(error),
        Err(Unbegun::Again(_)) => Err(ConfineError::GoneBefore(None).into()),
    }
}

async fn try_to_begin(
    pool: &mut Pool,
    order: &mut Order<'_>,
    streams: [OwnedFd; 3],
    which: Try,
) -> Result<Begun, Unbegun> {
    let Order {
        call,
        directory,
        permit,
        derived,
        meanwhile,
        hold,
        input,
    } = order;
    let profile = &derived.profile;
    let forker_for = ForkerFor::input(*input);
    let mut forker = pool
        .ready(derived, forker_for, &permit.call.asked, &mut call.stops)
        .await?;
    let digest = derived.digest();
    let name = meanwhile.call.as_deref();
    // It is recorded once that it starts.
    let recorded = match which {
        Try::First => {
            let profile = (&digest, pool.chosen().regime_name());
            record_start(pool.recorder(), &call.command, directory, profile, name).await
        }
        Try::Last => Ok(()),
    };
    let standing = match recorded.and_then(|()| pool.standing(profile, &forker)) {
        Ok(standing) => standing,
        Err(error) => return finished(forker, error).await,
    };
    let about = About {
        call: meanwhile.call.clone(),
        tool_name: meanwhile.tool_name.clone(),
        command: escape(&words(&call.command)),
        caller: meanwhile.caller.clone(),
        digest,
        bounds: Bounds::of(&pool.session().policy, &pool.session().narrowing),
    };
    let asker = meanwhile.deciding.clone().map(|deciding| Asker {
        deciding,
        hold: hold.clone(),
    });
    let opened = unless_stopped(Way::open(&mut forker, profile, about, asker, None), &mut call.stops).await;
    let way = match opened {
        Ok(way) => way,
        Err(ToolError::Confine(ConfineError::GoneBefore(_))) if which == Try::First => {
            forker.finish().await;
            return Err(Unbegun::Again(streams));
        }
        Err(error) => return finished(forker, error).await,
    };
    let limits = command_limits(&profile.limits, call.timeout, counting(&pool.chosen().footing, profile));
    let launch = Launch {
        work: Work::Command(argv(call.command.clone())),
        environment: environment(pool, profile, &permit.search, &forker, &call.environment, way.as_ref()),
        directory: directory.as_path().as_os_str().to_owned(),
        limits,
        input: *input,
        streams,
    };
    let started = Instant::now();
    let (launched, stop) = within_a_stop(forker.try_launch(launch), &mut call.stops).await?;
    let Unlaunched { error, streams } = match launched {
        Ok(running) => {
            return Ok(Begun {
                session: forker.session().path().to_owned(),
                timeout: limits.timeout_ms.map(Duration::from_millis),
                forker,
                running,
                way,
                standing,
                started,
                stop,
            });
        }
        Err(unlaunched) => unlaunched,
    };
    let network = match way {
        Some(way) => Some(way.close().await),
        None => None,
    };
    match (error, streams) {
        (ConfineError::GoneBefore(_), Some(streams)) if which == Try::First => {
            forker.finish().await;
            Err(Unbegun::Again(streams))
        }
        (error, _) => {
            let error = failed_under_way(pool.recorder(), error.into(), network, name).await;
            finished(forker, error).await
        }
    }
}

/// Ends a forker for which there is no more to do than to say why.
async fn finished<T>(forker: Confinement, error: ToolError) -> Result<T, Unbegun> {
    forker.finish().await;
    Err(Unbegun::Failed(error))
}
