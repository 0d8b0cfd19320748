//! What all connections of a proxy share, and how many there may be at once.

use std::sync::Arc;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::bounds::Bounds;
use super::files::{Files, Share};
use super::gate::Gate;
use super::resolve::Resolve;

/// What all connections of a proxy share.
pub(super) struct Served {
    pub(super) gate: Arc<dyn Gate>,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) bounds: Bounds,
    pub(super) stop: CancellationToken,
    places: Arc<Semaphore>,
    share: Share,
    crowded: Notify,
}

impl Served {
    /// For a proxy that shares these files with the others.
    pub(super) fn new(files: &Files, gate: Arc<dyn Gate>, resolver: Arc<dyn Resolve>, bounds: Bounds) -> Self {
        let share = files.share(bounds.connections);
        Self {
            gate,
            resolver,
            bounds,
            stop: CancellationToken::new(),
            places: Arc::new(Semaphore::new(share.most())),
            share,
            crowded: Notify::new(),
        }
    }

    /// Room for one more connection, as soon as there is any. Until then connections wait in the listener's queue.
    pub(super) async fn place(&self) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        if self.is_full() {
            self.crowded.notify_waiters();
        }
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        Some((place, self.share.room().await?))
    }

    /// Whether a connection may be waiting for room, so that idle ones should make some.
    pub(super) fn is_full(&self) -> bool {
        self.places.available_permits() == 0 || self.share.is_used_up()
    }

    /// Returns when a connection waits for room.
    pub(super) async fn crowded(&self) {
        self.crowded.notified().await;
    }
}
