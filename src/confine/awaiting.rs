//! The parent's handle on a stage that has no plan yet.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::sync::Once;

use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::channel::{next_message, registered, send};
use super::child::Child;
use super::dispatch::{Keeps, hear_out};
use super::error::ConfineError;
use super::group;
use super::protocol::{Announcement, Covered, Place, ProtectSetup, Reply, StartFailure};
use super::session::{self, Named};
use super::unheard;
use super::vigil::Vigil;

/// A stage that was started and waits for its plan; what must be computed meanwhile costs no time then.
///
/// Dropping it ends it, and removes the session directory if that exists and it had not ended before.
#[derive(Debug)]
pub struct Stage {
    pub(super) reader: OwnedReadHalf,
    pub(super) writer: OwnedWriteHalf,
    pub(super) aside: UnixStream,
    pub(super) child: Child,
    pub(super) vigil: Vigil,
    pub(super) keeps: Keeps,
    /// Where the session is, or will be.
    session: PathBuf,
}

impl Stage {
    /// A new stage for the session of that name.
    pub async fn spawn(session: &Named, protect: Option<ProtectSetup>, place: Place) -> Result<Self, ConfineError> {
        let spawned = Self::spawn_and_tell(session, protect, place).await;
        if spawned.is_err() {
            // What it was to lie in is there.
            session::remove(session.path());
        }
        spawned
    }

    async fn spawn_and_tell(
        session: &Named,
        protect: Option<ProtectSetup>,
        place: Place,
    ) -> Result<Self, ConfineError> {
        let (aside, theirs) = StdUnixStream::pair().map_err(ConfineError::Spawn)?;
        let (control, child) = start()?;
        let (reader, writer) = registered(control)?.into_split();
        let stage = Self {
            reader,
            writer,
            aside: registered(aside)?,
            vigil: child.watched(),
            child,
            keeps: Keeps::of(protect.as_ref()),
            session: session.path().to_owned(),
        };
        let announcement = Announcement {
            session: session.path().as_os_str().to_owned(),
            protect,
            place,
        };
        match stage.tell(&announcement, &[theirs.into()]).await {
            Ok(()) => Ok(stage),
            Err(error) => Err(stage.end().await.map_or(error, ConfineError::Step)),
        }
    }

    /// Sends it a message.
    pub(super) async fn tell<T: serde::Serialize>(&self, message: &T, fds: &[OwnedFd]) -> Result<(), ConfineError> {
        send(self.writer.as_ref(), message, fds).await
    }

    /// Ends it before it was given a plan, and waits until nothing of it is left. What it put back is [kept](super::unheard).
    ///
    /// Gives back why it ended itself, if it had before it was told to: it has removed the session then, which may be why something
    /// else failed.
    pub async fn end(self) -> Option<StartFailure> {
        let Self {
            reader,
            writer,
            mut child,
            vigil: _vigil,
            keeps,
            session,
            ..
        } = self;
        drop(writer);
        let refusal = hear_out(&reader, keeps).await;
        drop(reader);
        child.gone().await;
        // One that ended before the session was made could not remove it.
        session::remove(&session);
        refusal
    }

    /// The protected names that mounts are to cover; a stage says it once, and only where it is [behind mounts](Place::is_behind_mounts).
    pub async fn present(&mut self) -> Result<Vec<Covered>, ConfineError> {
        match next_message(self.reader.as_ref()).await? {
            Some(Reply::Present(paths)) => Ok(paths),
            Some(Reply::Refused(failure)) => Err(ConfineError::Step(failure)),
            Some(Reply::Ready | Reply::Leaky(_) | Reply::Ended(_) | Reply::WayOut(_) | Reply::Taken(_)) => {
                Err(ConfineError::Malformed)
            }
            Some(lost @ Reply::Lost(..)) => {
                unheard::hear(lost);
                Err(ConfineError::WorkerDied)
            }
            None => Err(ConfineError::WorkerDied),
        }
    }
}

/// Starts the process, and gives the socket that it listens to.
fn start() -> Result<(StdUnixStream, Child), ConfineError> {
    static SETTLED: Once = Once::new();
    let (control, theirs) = StdUnixStream::pair().map_err(ConfineError::Spawn)?;
    // Before the first child, which would have to move as well.
    SETTLED.call_once(group::settle);
    let child = Child::start(theirs.into()).map_err(ConfineError::Spawn)?;
    Ok((control, child))
}
