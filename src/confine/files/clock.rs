//! How long a request may go on.

use std::time::{Duration, Instant};

/// When a request's time is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    end: Option<Instant>,
}

impl Clock {
    /// Starts now; a time too long to express never ends.
    pub(super) fn start(milliseconds: u64) -> Self {
        Self {
            end: Instant::now().checked_add(Duration::from_millis(milliseconds)),
        }
    }

    /// Whether the time is over.
    pub(super) fn is_over(self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }
}
