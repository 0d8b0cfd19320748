//! A stage that was started before anybody asked for one.
//!
//! A program that knows from its first word that it will confine something, as `stockade run` does, starts
//! the stage at once: that is loaded and waits by the time the config has been read. It is the same
//! process as one started later; it knows nothing, and ends when nobody takes it.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use nix::unistd::Pid;

use super::error::ConfineError;
use super::{spread, stage};

static AHEAD: Mutex<Option<Spawned>> = Mutex::new(None);

/// A started stage, and the socket that it listens to.
#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) control: UnixStream,
    pub(super) child: Child,
}

/// Starts a stage for whoever needs the first one.
///
/// For a program whose `main` hands a stage over to [`stage::main`]. [`end_stage`] ends it if nobody did.
pub fn start_stage() {
    // One that cannot be started now is started, or complained about, when it is needed.
    if let Ok(spawned) = Spawned::start() {
        *AHEAD.lock().unwrap_or_else(PoisonError::into_inner) = Some(spawned);
    }
}

/// Ends the stage of [`start_stage`], if nobody needed it, and waits for its end.
pub fn end_stage() {
    if let Some(Spawned { control, mut child }) = ahead() {
        drop(control);
        // One that cannot be waited for has been reaped by somebody else.
        let _reaped = child.wait();
    }
}

fn ahead() -> Option<Spawned> {
    AHEAD.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Spawned {
    /// The one that was started ahead if it is still alive, else a new one.
    pub(super) fn take() -> Result<Self, ConfineError> {
        if let Some(mut spawned) = ahead()
            && matches!(spawned.child.try_wait(), Ok(None))
        {
            return Ok(spawned);
        }
        Self::start()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts a process")]
    fn start() -> Result<Self, ConfineError> {
        let (control, theirs) = UnixStream::pair().map_err(ConfineError::Spawn)?;
        let child = Command::new("/proc/self/exe")
            .arg(stage::SUBCOMMAND)
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(ConfineError::Spawn)?;
        if let Ok(stage) = i32::try_from(child.id()) {
            spread::send_off(Pid::from_raw(stage));
        }
        Ok(Self { control, child })
    }
}
