//! Limits on concurrent requests.
//!
//! Tool calls, other requests and streams have separate limits, so that calls that wait for a person do not block others. Beyond a
//! limit requests wait in a queue; beyond the queue they are refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Duration, timeout};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Bounds;
use super::message::Message;

/// The limits, and the requests under way.
#[derive(Debug)]
pub(super) struct Load {
    calls: Arc<Semaphore>,
    others: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    waiting: AtomicUsize,
    most_waiting: usize,
    crowded: Duration,
    under_way: TaskTracker,
}

/// A permit for one request; released when dropped.
#[derive(Debug)]
pub(super) struct LoadPermit {
    _permit: OwnedSemaphorePermit,
    _under_way: Option<TaskTrackerToken>,
}

/// How full the connection slots are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pressure {
    Low,
    /// Only reserved slots are free: other requests must not keep them for long.
    High,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejected {
    /// The queue is full.
    Full,
    /// The server ends.
    Draining,
}

impl Load {
    pub(super) fn new(bounds: &Bounds, slots: usize) -> Self {
        let semaphore = |most: usize| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self {
            calls: semaphore(bounds.calls),
            others: semaphore(bounds.others),
            streams: semaphore(bounds.streams.min((slots / 2).max(1))),
            waiting: AtomicUsize::new(0),
            most_waiting: bounds.waiting,
            crowded: bounds.crowded,
            under_way: TaskTracker::new(),
        }
    }

    /// Waits for a permit. Notifications and answers need none.
    pub(super) async fn request(&self, message: Message, pressure: Pressure) -> Result<Option<LoadPermit>, Rejected> {
        let semaphore = match message {
            Message::OneWay => return Ok(None),
            Message::Listen => return self.stream(pressure).map(Some),
            Message::Call => &self.calls,
            Message::Initialize | Message::Other => &self.others,
        };
        let at_once = Arc::clone(semaphore).try_acquire_owned();
        let permit = if let Ok(permit) = at_once {
            permit
        } else {
            let _slot = QueueSlot::take(&self.waiting, self.most_waiting)?;
            let waiting = Arc::clone(semaphore).acquire_owned();
            let waited = match pressure {
                Pressure::Low => waiting.await,
                Pressure::High => timeout(self.crowded, waiting).await.map_err(|_late| Rejected::Full)?,
            };
            waited.map_err(|_closed| Rejected::Draining)?
        };
        Ok(Some(LoadPermit {
            _permit: permit,
            _under_way: Some(self.under_way.token()),
        }))
    }

    /// A permit for a stream, without waiting.
    pub(super) fn stream(&self, pressure: Pressure) -> Result<LoadPermit, Rejected> {
        if pressure == Pressure::High && !self.is_draining() {
            return Err(Rejected::Full);
        }
        let permit = Arc::clone(&self.streams).try_acquire_owned();
        let permit = permit.map_err(|error| match error {
            tokio::sync::TryAcquireError::Closed => Rejected::Draining,
            tokio::sync::TryAcquireError::NoPermits => Rejected::Full,
        })?;
        Ok(LoadPermit {
            _permit: permit,
            _under_way: None,
        })
    }

    /// Refuses new and waiting requests from now on.
    pub(super) fn drain(&self) {
        for semaphore in [&self.calls, &self.others, &self.streams] {
            semaphore.close();
        }
        self.under_way.close();
    }

    pub(super) fn is_draining(&self) -> bool {
        self.under_way.is_closed()
    }

    /// Waits, once draining, until no request is under way.
    pub(super) async fn done(&self) {
        self.under_way.wait().await;
    }
}

/// A place in the queue.
struct QueueSlot<'a>(&'a AtomicUsize);

impl<'a> QueueSlot<'a> {
    fn take(waiting: &'a AtomicUsize, most: usize) -> Result<Self, Rejected> {
        if waiting.fetch_add(1, Ordering::AcqRel) >= most {
            waiting.fetch_sub(1, Ordering::AcqRel);
            return Err(Rejected::Full);
        }
        Ok(Self(waiting))
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
