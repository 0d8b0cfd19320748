//! A permitted command → one under way in a worker.
//!
//! A worker ends itself when somebody on the host replaces what it holds by a mount, as `git config` does. Where that is before a
//! command started, the command starts in another one, and nobody is told.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::call::{ShellCall, ToolError, argv, words};
use super::executor::Executor;
use super::explain::standing::Standing;
use super::limits::command_limits;
use super::network::{About, Asker, Bounds, Way};
use super::permission::Permit;
use super::shell::Meanwhile;
use super::under_way::{unless_stopped, within_a_stop};
use super::workers::Derived;
use crate::confine::io::{Hold, InputKind};
use crate::confine::wire::protocol::Work;
use crate::confine::{ConfineError, Confinement, ForkerFor, Launch, Running, Unlaunched};
use crate::policy::AbsPath;
use crate::policy::path::escape;

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
    pub(super) worker: Confinement,
    pub(super) running: Running,
    pub(super) way: Option<Way>,
    pub(super) standing: Option<Arc<Standing>>,
    /// The session directory of its worker.
    pub(super) session: PathBuf,
    pub(super) started: Instant,
    pub(super) timeout: Option<Duration>,
    /// A stop that came while it was launched.
    pub(super) stop: Option<Signal>,
}

/// Why none is under way.
enum Unbegun {
    /// Another worker may begin with it; the streams for it.
    Again([OwnedFd; 3]),
    Failed(ToolError),
}

impl From<ToolError> for Unbegun {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

/// Which worker is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Try {
    First,
    Last,
}

impl Executor {
    /// Starts a permitted command with these streams: in the worker of its profile, or, where that has ended itself before, in a
    /// new one.
    pub(super) async fn begin(&mut self, mut order: Order<'_>, streams: [OwnedFd; 3]) -> Result<Begun, ToolError> {
        let streams = match self.try_to_begin(&mut order, streams, Try::First).await {
            Ok(begun) => return Ok(begun),
            Err(Unbegun::Failed(error)) => return Err(error),
            Err(Unbegun::Again(streams)) => streams,
        };
        match self.try_to_begin(&mut order, streams, Try::Last).await {
            Ok(begun) => Ok(begun),
            Err(Unbegun::Failed(error)) => Err(error),
            Err(Unbegun::Again(_)) => Err(ConfineError::GoneBefore(None).into()),
        }
    }

    async fn try_to_begin(
        &mut self,
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
        let worker_for = ForkerFor::input(*input);
        let mut worker = self
            .ready_worker(derived, worker_for, &permit.call.asked, &mut call.stops)
            .await?;
        let digest = derived.digest();
        let name = meanwhile.call.as_deref();
        // It is recorded once that it starts.
        let recorded = match which {
            Try::First => self.record_start(&call.command, directory, &digest, name).await,
            Try::Last => Ok(()),
        };
        let standing = match recorded.and_then(|()| self.standing(profile, worker.session())) {
            Ok(standing) => standing,
            Err(error) => return finished(worker, error).await,
        };
        let about = About {
            call: meanwhile.call.clone(),
            tool_name: meanwhile.tool_name.clone(),
            command: escape(&words(&call.command)),
            caller: meanwhile.caller.clone(),
            digest,
            bounds: Bounds::of(&self.policy, &self.narrowing),
        };
        let asker = meanwhile.deciding.clone().map(|deciding| Asker {
            deciding,
            hold: hold.clone(),
        });
        let opened = unless_stopped(Way::open(&mut worker, profile, about, asker, None), &mut call.stops).await;
        let way = match opened {
            Ok(way) => way,
            Err(ToolError::Confine(ConfineError::GoneBefore(_))) if which == Try::First => {
                worker.finish().await;
                return Err(Unbegun::Again(streams));
            }
            Err(error) => return finished(worker, error).await,
        };
        let limits = command_limits(&profile.limits, call.timeout, self.counting(profile));
        let launch = Launch {
            work: Work::Command(argv(call.command.clone())),
            environment: self.environment(profile, &permit.search, &worker, &call.environment, way.as_ref()),
            directory: directory.as_path().as_os_str().to_owned(),
            limits,
            input: *input,
            streams,
        };
        let started = Instant::now();
        let (launched, stop) = within_a_stop(worker.try_launch(launch), &mut call.stops).await?;
        let Unlaunched { error, streams } = match launched {
            Ok(running) => {
                return Ok(Begun {
                    session: worker.session().path().to_owned(),
                    timeout: limits.timeout_ms.map(Duration::from_millis),
                    worker,
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
                worker.finish().await;
                Err(Unbegun::Again(streams))
            }
            (error, _) => {
                let error = self.failed_under_way(error.into(), network, name).await;
                finished(worker, error).await
            }
        }
    }
}

/// Ends a worker for which there is no more to do than to say why.
async fn finished<T>(worker: Confinement, error: ToolError) -> Result<T, Unbegun> {
    worker.finish().await;
    Err(Unbegun::Failed(error))
}
