//! How many commands and changes of one server are under way at once, and which of them run alone.

use std::sync::Arc;

use nix::sys::signal::Signal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::call::ToolError;

/// Room for so many commands and changes at once.
///
/// A yes to a command is bound to the content of files that it names, and another command that is alive could change them,
/// or make them, after they were looked at for the last time. So an approved command has all the room for itself.
#[derive(Debug, Clone)]
pub(super) struct CommandSlots {
    semaphore: Arc<Semaphore>,
    width: u32,
}

/// How many slots a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotCount {
    /// One slot.
    One,
    /// All of them.
    All,
}

impl CommandSlots {
    pub(super) fn new(width: u32) -> Self {
        let width = width.max(1);
        Self {
            semaphore: Arc::new(Semaphore::new(usize::try_from(width).unwrap_or(usize::MAX))),
            width,
        }
    }

    /// Waits for free slots in order of arrival, unless the call is stopped.
    pub(super) async fn acquire(
        &self,
        slots: SlotCount,
        stops: &mut mpsc::Receiver<Signal>,
    ) -> Result<OwnedSemaphorePermit, ToolError> {
        let count = match slots {
            SlotCount::One => 1,
            SlotCount::All => self.width,
        };
        tokio::select! {
            biased;
            Some(signal) = stops.recv() => Err(ToolError::Stopped(signal)),
            permit = Arc::clone(&self.semaphore).acquire_many_owned(count) => {
                permit.map_err(|_closed| ToolError::Refused("the server is ending".to_owned()))
            }
        }
    }
}
