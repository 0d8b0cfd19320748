//! How much is done at a time.
//!
//! Tool calls, other requests and streams each have their own number, so that calls that wait for a person keep nobody
//! from listing tools. What finds no room waits in line; what finds the line full is told to come again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Duration, timeout};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Bounds;
use super::message::Message;

/// The numbers.
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

/// Room for one; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    _permit: OwnedSemaphorePermit,
    _under_way: Option<TaskTrackerToken>,
}

/// How full the places of connections are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crowd {
    Loose,
    /// What is left is for what waits for nothing; nobody else keeps it for long.
    Dense,
}

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// Too many wait already.
    Full,
    /// Nothing is begun any more.
    Draining,
}

impl Load {
    pub(super) fn new(bounds: &Bounds, places: usize) -> Self {
        let semaphore = |most: usize| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self {
            calls: semaphore(bounds.calls),
            others: semaphore(bounds.others),
            streams: semaphore(bounds.streams.min((places / 2).max(1))),
            waiting: AtomicUsize::new(0),
            most_waiting: bounds.waiting,
            crowded: bounds.crowded,
            under_way: TaskTracker::new(),
        }
    }

    /// Room for a request, at once or after others; none is needed for what only helps a request along.
    pub(super) async fn request(&self, message: Message, crowd: Crowd) -> Result<Option<Room>, NoRoom> {
        let semaphore = match message {
            Message::Notice => return Ok(None),
            Message::Listen => return self.stream(crowd).map(Some),
            Message::Call => &self.calls,
            Message::Initialize | Message::Other => &self.others,
        };
        let at_once = Arc::clone(semaphore).try_acquire_owned();
        let permit = if let Ok(permit) = at_once {
            permit
        } else {
            let _in_line = InLine::behind(&self.waiting, self.most_waiting)?;
            let waiting = Arc::clone(semaphore).acquire_owned();
            let waited = match crowd {
                Crowd::Loose => waiting.await,
                Crowd::Dense => timeout(self.crowded, waiting).await.map_err(|_late| NoRoom::Full)?,
            };
            waited.map_err(|_closed| NoRoom::Draining)?
        };
        Ok(Some(Room {
            _permit: permit,
            _under_way: Some(self.under_way.token()),
        }))
    }

    /// Room for a stream that only listens; nobody waits for it.
    pub(super) fn stream(&self, crowd: Crowd) -> Result<Room, NoRoom> {
        if crowd == Crowd::Dense && !self.is_draining() {
            return Err(NoRoom::Full);
        }
        let permit = Arc::clone(&self.streams).try_acquire_owned();
        let permit = permit.map_err(|error| match error {
            tokio::sync::TryAcquireError::Closed => NoRoom::Draining,
            tokio::sync::TryAcquireError::NoPermits => NoRoom::Full,
        })?;
        Ok(Room {
            _permit: permit,
            _under_way: None,
        })
    }

    /// Lets nothing begin any more, what waits included.
    pub(super) fn drain(&self) {
        for semaphore in [&self.calls, &self.others, &self.streams] {
            semaphore.close();
        }
        self.under_way.close();
    }

    pub(super) fn is_draining(&self) -> bool {
        self.under_way.is_closed()
    }

    /// Waits, once draining, until nothing is under way.
    pub(super) async fn done(&self) {
        self.under_way.wait().await;
    }
}

/// A place in line.
struct InLine<'a>(&'a AtomicUsize);

impl<'a> InLine<'a> {
    fn behind(waiting: &'a AtomicUsize, most: usize) -> Result<Self, NoRoom> {
        if waiting.fetch_add(1, Ordering::AcqRel) >= most {
            waiting.fetch_sub(1, Ordering::AcqRel);
            return Err(NoRoom::Full);
        }
        Ok(Self(waiting))
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
