//! Whose the keys are that are typed at the user's terminal, among all processes of Stockade's that serve it.
//!
//! Two commands of one script may run at once, or the one may be asked about while the other runs. Were the keys whosever
//! reads first, an answer could go to a command, and the settings of the one would be undone in the midst of the other.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::backend::host::turn::{Queue, Turn};

/// Leave to read what is typed, until it is dropped.
#[derive(Debug)]
pub(super) enum Permit {
    /// Nobody else has it meanwhile.
    Turn { _held: Turn },
    /// There is no controlling terminal, or its device is not to be had: there is nothing to agree on.
    Alone,
}

impl Permit {
    /// Leave, unless somebody else has it.
    pub(super) fn now() -> Option<Self> {
        match Queue::of_own_device().map(Queue::try_take) {
            None | Some(Err(_)) => Some(Self::Alone),
            Some(Ok(Ok(pipes))) => Some(Self::Turn { _held: pipes }),
            Some(Ok(Err(_anothers))) => None,
        }
    }
}

/// The keyboard, for one that keeps its leave over many keys.
#[derive(Debug, Default)]
pub(super) struct Keyboard(Mutex<Option<Permit>>);

impl Keyboard {
    /// Takes it, unless somebody else has it; whether it is this one's now.
    pub(super) fn take(&self) -> bool {
        let mut permit = self.permit();
        if permit.is_none() {
            *permit = Permit::now();
        }
        permit.is_some()
    }

    /// Whether it is this one's.
    pub(super) fn is_taken(&self) -> bool {
        self.permit().is_some()
    }

    /// Leaves it to others.
    pub(super) fn release(&self) {
        *self.permit() = None;
    }

    fn permit(&self) -> MutexGuard<'_, Option<Permit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
