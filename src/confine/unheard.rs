//! What became of protected names while nobody waited to hear of it.
//!
//! A stage puts back what a session that was killed left changed, before it is known whether a command will start. Where one
//! does, its outcome tells of that, and where one was to start, why it did not. What is left is kept here for the end of the
//! program: whoever embeds this as a library takes it when it likes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::protocol::{PutBack, Reply, Violation};

/// How long a stage may take to say what it put back: that may be tens of thousands of names.
pub(super) const HEARD_OUT: Duration = Duration::from_secs(30);

/// How long the end of a session waits to hear what no call was told. It was put back long before; but a keeper whose worker a
/// command has stopped hears of the end only when all of the socket is closed.
pub(super) const PROMPTLY: Duration = Duration::from_secs(2);

static UNHEARD: Mutex<Unheard> = Mutex::new(Unheard::nothing());

/// What was done, for whoever tells a person.
#[derive(Debug, Default)]
pub struct Unheard {
    /// What was put back.
    pub violations: Vec<Violation>,
    /// Why the rest could not be.
    pub unsettled: Option<String>,
}

impl Unheard {
    const fn nothing() -> Self {
        Self {
            violations: Vec::new(),
            unsettled: None,
        }
    }

    /// Takes what there is by now.
    pub fn take() -> Self {
        std::mem::take(&mut *UNHEARD.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Keeps what a stage said at its end, which no call is told.
pub(super) fn hear(reply: Reply) {
    match reply {
        Reply::Lost(put_back) => keep(put_back),
        // These say how far it came with what nobody needs any more.
        Reply::Present(_)
        | Reply::Ready
        | Reply::Refused(_)
        | Reply::Leaky(_)
        | Reply::Ended(_)
        | Reply::WayOut(_)
        | Reply::Taken(_) => {}
    }
}

/// Keeps what was put back, and why the rest was not.
pub(super) fn keep(put_back: PutBack) {
    let mut unheard = UNHEARD.lock().unwrap_or_else(PoisonError::into_inner);
    unheard.violations.extend(put_back.violations);
    unheard.unsettled = unheard.unsettled.take().or(put_back.unsettled);
}
