//! The parent's handle on a supervisor that has no plan yet.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::sync::Once;

use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::confine::error::ConfineError;
use crate::confine::group;
use crate::confine::parent::channel::{next_message, registered, send};
use crate::confine::parent::child::Child;
use crate::confine::parent::dispatch::{FinalReport, Restores, drain_replies};
use crate::confine::parent::watchdog::Watchdog;
use crate::confine::session::{self, SessionName};
use crate::confine::wire::protocol::{Announcement, Covered, ForkerLocation, ProtectSetup, PutBack, Reply};

/// A supervisor that was started and waits for its plan.
///
/// Dropping it ends it, and removes the session directory if that exists and it had not ended before.
#[derive(Debug)]
pub struct SupervisorHandle {
    pub(crate) reader: OwnedReadHalf,
    pub(crate) writer: OwnedWriteHalf,
    pub(crate) side_channel: UnixStream,
    pub(crate) child: Child,
    pub(crate) watchdog: Watchdog,
    pub(crate) restores: Restores,
    /// What it restored after an earlier session, once reported, until it is taken.
    recovered: Option<PutBack>,
    /// Where the session is, or will be.
    session: PathBuf,
}

impl SupervisorHandle {
    /// A new supervisor for the session of that name.
    pub async fn spawn(
        session: &SessionName,
        protect: Option<ProtectSetup>,
        location: ForkerLocation,
    ) -> Result<Self, ConfineError> {
        let spawned = Self::spawn_and_announce(session, protect, location).await;
        if spawned.is_err() {
            // The base of the session was made already.
            session::remove(session.path());
        }
        spawned
    }

    async fn spawn_and_announce(
        session: &SessionName,
        protect: Option<ProtectSetup>,
        location: ForkerLocation,
    ) -> Result<Self, ConfineError> {
        let (side_channel, theirs) = StdUnixStream::pair().map_err(ConfineError::Spawn)?;
        let (control, child) = start()?;
        let (reader, writer) = registered(control)?.into_split();
        let supervisor = Self {
            reader,
            writer,
            side_channel: registered(side_channel)?,
            watchdog: child.watchdog(),
            child,
            restores: Restores::of(protect.as_ref()),
            recovered: None,
            session: session.path().to_owned(),
        };
        let announcement = Announcement {
            session: session.path().as_os_str().to_owned(),
            protect,
            location,
        };
        match supervisor.send_message(&announcement, &[theirs.into()]).await {
            Ok(()) => Ok(supervisor),
            // It does not know any protected names yet.
            Err(error) => Err(supervisor.end().await.refusal.map_or(error, ConfineError::Step)),
        }
    }

    /// Sends it a message.
    pub(crate) async fn send_message<T: serde::Serialize>(
        &self,
        message: &T,
        fds: &[OwnedFd],
    ) -> Result<(), ConfineError> {
        send(self.writer.as_ref(), message, fds).await
    }

    /// Ends it before it has a plan, and waits for that.
    ///
    /// If it had ended itself it has removed the session, which may be why something else failed.
    pub async fn end(self) -> FinalReport {
        let Self {
            reader,
            writer,
            mut child,
            watchdog: _watchdog,
            recovered,
            session,
            ..
        } = self;
        drop(writer);
        let mut last = drain_replies(&reader).await;
        last.recovered = recovered.unwrap_or(last.recovered);
        drop(reader);
        child.wait_async().await;
        // One that ended before the session was made could not remove it.
        session::remove(&session);
        last
    }

    /// Waits for the report of what it restored after an earlier session, and takes it.
    pub async fn recovered(&mut self) -> Result<PutBack, ConfineError> {
        self.receive_recovered().await?;
        Ok(self.recovered.replace(PutBack::default()).unwrap_or_default())
    }

    async fn receive_recovered(&mut self) -> Result<(), ConfineError> {
        if self.recovered.is_none() {
            self.recovered = match self.next_reply().await? {
                Reply::Recovered(put_back) => Some(put_back),
                _ => return Err(ConfineError::Malformed),
            };
        }
        Ok(())
    }

    /// The next reply; an error where it ends.
    async fn next_reply(&self) -> Result<Reply, ConfineError> {
        match next_message(self.reader.as_ref()).await? {
            Some(Reply::Refused(failure)) => Err(ConfineError::Step(failure)),
            Some(Reply::ForkerExited(_)) | None => Err(ConfineError::ForkerDied),
            Some(reply) => Ok(reply),
        }
    }

    /// The protected names that mounts are to cover; reported once, and only where the forker is [behind mounts](ForkerLocation::is_behind_mounts).
    pub async fn present(&mut self) -> Result<Vec<Covered>, ConfineError> {
        self.receive_recovered().await?;
        match self.next_reply().await? {
            Reply::ToCover(paths) => Ok(paths),
            _ => Err(ConfineError::Malformed),
        }
    }
}

/// Starts the process; returns its control socket.
fn start() -> Result<(StdUnixStream, Child), ConfineError> {
    static MOVED: Once = Once::new();
    let (control, theirs) = StdUnixStream::pair().map_err(ConfineError::Spawn)?;
    // Before the first child, which would have to move as well.
    MOVED.call_once(group::leave_delegated);
    let child = Child::start(theirs.into()).map_err(ConfineError::Spawn)?;
    Ok((control, child))
}
