//! The parent's handle on a confined forker.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::backend::Plan;
use crate::confine::error::ConfineError;
use crate::confine::files::FileServer;
use crate::confine::group::Group;
use crate::confine::io::InputKind;
use crate::confine::parent::channel::{next_message, send};
use crate::confine::parent::child::Child;
use crate::confine::parent::dispatch::{Pending, Waiter, dispatch};
use crate::confine::parent::running::Running;
use crate::confine::parent::supervisor::SupervisorHandle;
use crate::confine::parent::watchdog::Watchdog;
use crate::confine::session::{self, Session};
use crate::confine::way_out::outside::Namespace;
use crate::confine::way_out::{self, WayOut};
use crate::confine::wire::protocol::{
    CommandLimits, Counting, ForkerFor, Offer, OfferReply, OfferRequest, Request, SetupMessage, Start, Work,
};

/// How long the forker may take to accept a call.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(15);

/// What a session is started with.
#[derive(Debug)]
pub struct Setup {
    /// How the forker and each command are confined; `None` only where the config permits running unconfined.
    pub plan: Option<Plan>,
    /// What it is started for.
    pub forker_for: ForkerFor,
    /// The session directory; the supervisor removes it.
    pub session: Session,
}

/// One command to launch.
#[derive(Debug)]
pub struct Launch {
    /// What it does.
    pub work: Work,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub directory: OsString,
    /// Its bounds.
    pub limits: CommandLimits,
    /// Standard input, output and error.
    pub streams: [OwnedFd; 3],
    /// What standard input is.
    pub input: InputKind,
}

/// Why a command is not under way, and the streams that it was to have.
#[derive(Debug)]
pub struct FailedLaunch {
    /// Why.
    pub error: ConfineError,
    /// For another forker; `None` where they were used.
    pub streams: Option<[OwnedFd; 3]>,
}

/// A forker for one profile: it confines itself, and serves once it has passed its self-test.
///
/// Dropping it ends every command and removes the session directory, but does not wait for that;
/// [`finish`](Self::finish) does.
#[derive(Debug)]
pub struct Confinement {
    writer: OwnedWriteHalf,
    side_channel: UnixStream,
    reader: JoinHandle<()>,
    readiness: Option<oneshot::Receiver<Result<(), ConfineError>>>,
    pending: Pending,
    supervisor: Child,
    _watchdog: Watchdog,
    calls: u64,
    session: Session,
    /// The network namespace of its ways out, once one is known.
    namespace: Option<Namespace>,
    /// The file server for what only looks.
    pub(crate) files: Option<(FileServer, Running)>,
}

impl Confinement {
    /// Sends the forker its plan. It confines itself meanwhile, and starts no command before its self-test has passed.
    ///
    /// # Errors
    /// The supervisor ended before it had the plan; the error is its own report where it sent one.
    pub async fn start(supervisor: SupervisorHandle, setup: Setup) -> Result<Self, ConfineError> {
        let Setup {
            plan,
            forker_for,
            session,
        } = setup;
        if let Err(error) = supervisor.send_message(&SetupMessage { plan, forker_for }, &[]).await {
            return Err(supervisor.end().await.refusal.map_or(error, ConfineError::Step));
        }
        let SupervisorHandle {
            reader,
            writer,
            side_channel,
            child: supervisor,
            watchdog,
            restores,
            ..
        } = supervisor;
        let (ready, readiness) = oneshot::channel();
        let pending = Pending::default();
        let reader = tokio::spawn(dispatch(reader, ready, Arc::clone(&pending), restores));
        Ok(Self {
            writer,
            side_channel,
            reader,
            readiness: Some(readiness),
            pending,
            supervisor,
            _watchdog: watchdog,
            calls: 0,
            session,
            namespace: None,
            files: None,
        })
    }

    /// Whether the forker can take another command, as far as is known here.
    pub fn is_serving(&self) -> bool {
        !self.pending.lock().unwrap_or_else(PoisonError::into_inner).closed
    }

    /// Waits until the forker is confined and has passed its self-test.
    pub async fn ready(&mut self) -> Result<(), ConfineError> {
        match self.readiness.take() {
            Some(readiness) => readiness.await.unwrap_or(Err(ConfineError::ForkerDied)),
            None => Ok(()),
        }
    }

    /// The session directory.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The process id of the supervisor, for a caller that must know its children.
    pub fn supervisor_pid(&self) -> u32 {
        self.supervisor.id()
    }

    /// A way out of the forker's network namespace, for the next command alone; the plan must have one.
    ///
    /// # Errors
    /// The forker could not make it, or what it passed out is something else.
    pub async fn way_out(&mut self) -> Result<WayOut, ConfineError> {
        let (sender, sockets) = oneshot::channel();
        {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            if pending.closed || pending.way_out.is_some() {
                return Err(ConfineError::ForkerExited(pending.refusal.clone()));
            }
            pending.way_out = Some(sender);
        }
        match send(self.writer.as_ref(), &Request::WayOut, &[]).await {
            // The reason that the forker reported is returned below.
            Ok(()) | Err(ConfineError::ForkerDied) => {}
            Err(error) => return Err(error),
        }
        let Ok(made) = sockets.await else {
            self.ready().await?;
            return Err(self.forker_exited());
        };
        let (addresses, sockets) = made?;
        let (way, namespace) = way_out::outside::take(sockets, addresses, self.namespace)?;
        self.namespace = Some(namespace);
        Ok(way)
    }

    fn forker_exited(&self) -> ConfineError {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        ConfineError::ForkerExited(pending.refusal.clone())
    }

    /// Starts a command. The forker reads of it once it has passed its self-test.
    pub async fn launch(&mut self, launch: Launch) -> Result<Running, ConfineError> {
        self.try_launch(launch).await.map_err(|unlaunched| unlaunched.error)
    }

    /// The same, with the streams given back where no command has them.
    pub async fn try_launch(&mut self, launch: Launch) -> Result<Running, FailedLaunch> {
        let Launch {
            work,
            environment,
            directory,
            limits,
            streams,
            input,
        } = launch;
        self.calls += 1;
        let start = Start {
            call: self.calls,
            work,
            environment,
            directory,
            limits,
            input,
        };
        let mut descriptors: Vec<OwnedFd> = streams.into();
        self.begin(start, &mut descriptors).await.map_err(|error| {
            descriptors.truncate(3);
            FailedLaunch {
                error,
                streams: descriptors.try_into().ok(),
            }
        })
    }

    /// Sends a call to the forker, and waits until it is accepted.
    async fn begin(&mut self, start: Start, descriptors: &mut Vec<OwnedFd>) -> Result<Running, ConfineError> {
        let group = match start.limits.counting {
            Counting::Group => Some(Arc::new(Group::make(start.limits)?)),
            Counting::Namespace | Counting::Sampled => None,
        };
        descriptors.extend(group.as_deref().map(Group::procs_file).transpose()?);
        let call = start.call;
        let (sender, ended) = oneshot::channel();
        let (accept, accepted) = oneshot::channel();
        {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            if !pending.closed {
                let watch = start.work.watch();
                let accepted = Some(accept);
                pending.calls.insert(
                    call,
                    Waiter {
                        watch,
                        accepted,
                        sender,
                    },
                );
            }
        }
        let sent = send(self.writer.as_ref(), &Request::Start(start), descriptors).await;
        // The reason why there is no forker comes before a failed send.
        self.ready().await?;
        match sent {
            Ok(()) | Err(ConfineError::ForkerDied) => {}
            Err(error) => return Err(error),
        }
        // A stopped forker does not answer; the wait for the end of the call handles that.
        match tokio::time::timeout(ACCEPT_TIMEOUT, accepted).await {
            Ok(Ok(())) | Err(_) => return Ok(Running { call, ended, group }),
            Ok(Err(_)) => {}
        }
        // The forker is dead. What was restored is reported, if anything was.
        match ended.await {
            Ok(Ok(outcome)) if outcome.put_back.is_something() => {
                let (sender, ended) = oneshot::channel();
                // The receiver is here.
                let _sent = sender.send(Ok(outcome));
                Ok(Running { call, ended, group })
            }
            Ok(_) | Err(_) => Err(self.forker_exited()),
        }
    }

    /// Stops a command: `signal` now, SIGKILL for its whole tree after the grace period, or at once when called again. Without a
    /// forker the command has ended already.
    pub async fn cancel(&self, running: &Running, signal: Signal) -> Result<(), ConfineError> {
        let request = Request::Cancel {
            call: running.call,
            signal: signal as i32,
        };
        match send(self.writer.as_ref(), &request, &[]).await {
            Err(ConfineError::ForkerDied) => Ok(()),
            sent => sent,
        }
    }

    /// The restored changes of the last command to protected names that a person may still accept.
    pub async fn offer(&mut self) -> Result<Option<Offer>, ConfineError> {
        match self.request_offer(OfferRequest::Offer).await? {
            OfferReply::Offer(offer) => Ok(offer),
            OfferReply::PutBack(_) => Err(ConfineError::Malformed),
        }
    }

    /// Makes the changes of an offer, exactly as shown; returns a result for each entry.
    pub async fn put_back(&mut self, offer: &Offer) -> Result<Vec<Result<(), String>>, ConfineError> {
        let digest = offer.digest;
        match self.request_offer(OfferRequest::PutBack { digest }).await? {
            OfferReply::PutBack(done) if done.len() == offer.entries.len() => Ok(done),
            OfferReply::PutBack(_) | OfferReply::Offer(_) => Err(ConfineError::Malformed),
        }
    }

    async fn request_offer(&mut self, request: OfferRequest) -> Result<OfferReply, ConfineError> {
        send(&self.side_channel, &request, &[]).await?;
        next_message(&self.side_channel).await?.ok_or(ConfineError::ForkerDied)
    }

    /// Ends every command, waits until nothing of the session is left.
    pub async fn finish(self) {
        let Self {
            writer,
            reader,
            mut supervisor,
            session,
            ..
        } = self;
        drop(writer);
        reader.abort();
        // The reader's half of the socket is closed with its task.
        let _aborted = reader.await;
        supervisor.wait_async().await;
        session::remove(session.path());
    }
}
