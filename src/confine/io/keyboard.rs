//! Which Stockade process reads the keys of the user's terminal.
//!
//! Two commands of one script may run at once, or one may run during a question about the other. Without a lock an answer could go to
//! a command, and one process would reset the terminal settings of the other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::backend::host::terminal_lock::{ControllingTerminal, TerminalLock};

/// The permission to read keys, until it is dropped.
#[derive(Debug)]
pub(super) enum Permit {
    /// The lock of the terminal.
    Turn { _held: TerminalLock },
    /// There is no controlling terminal, or its device cannot be opened, so there is no lock.
    Alone,
}

impl Permit {
    /// Takes it, unless another process has it.
    pub(super) fn now() -> Option<Self> {
        match ControllingTerminal::find_device().map(ControllingTerminal::try_lock) {
            None | Some(Err(_)) => Some(Self::Alone),
            Some(Ok(Ok(lock))) => Some(Self::Turn { _held: lock }),
            Some(Ok(Err(_anothers))) => None,
        }
    }
}

/// The keyboard, for a relay that keeps the permission over many keys.
#[derive(Debug, Default)]
pub(super) struct Keyboard(Mutex<Option<Permit>>);

impl Keyboard {
    /// Takes it, unless another process has it; whether it is taken now.
    pub(super) fn take(&self) -> bool {
        let mut permit = self.permit();
        if permit.is_none() {
            *permit = Permit::now();
        }
        permit.is_some()
    }

    pub(super) fn is_taken(&self) -> bool {
        self.permit().is_some()
    }

    pub(super) fn release(&self) {
        *self.permit() = None;
    }

    fn permit(&self) -> MutexGuard<'_, Option<Permit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
