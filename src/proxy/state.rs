//! The shared state of the connections of a proxy.

use std::sync::Arc;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::bounds::Bounds;
use super::file_budget::{FileBudget, Share};
use super::gate::Gate;
use super::resolve::Resolve;

/// The shared state of the connections of a proxy.
pub(super) struct ProxyState {
    pub(super) gate: Arc<dyn Gate>,
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) bounds: Bounds,
    pub(super) stop: CancellationToken,
    slots: Arc<Semaphore>,
    share: Share,
    crowded: Notify,
}

impl ProxyState {
    /// The state of a new proxy.
    pub(super) fn new(files: &FileBudget, gate: Arc<dyn Gate>, resolver: Arc<dyn Resolve>, bounds: Bounds) -> Self {
        let share = files.share(bounds.connections);
        Self {
            gate,
            resolver,
            bounds,
            stop: CancellationToken::new(),
            slots: Arc::new(Semaphore::new(share.most())),
            share,
            crowded: Notify::new(),
        }
    }

    /// Waits for a free connection slot. Until then connections wait in the listener's queue.
    pub(super) async fn slot(&self) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        if self.is_full() {
            self.crowded.notify_waiters();
        }
        let slot = Arc::clone(&self.slots).acquire_owned().await.ok()?;
        Some((slot, self.share.room().await?))
    }

    /// Whether a connection may be waiting, so that idle ones should close.
    pub(super) fn is_full(&self) -> bool {
        self.slots.available_permits() == 0 || self.share.is_exhausted()
    }

    /// Returns when a connection waits for a slot.
    pub(super) async fn crowded(&self) {
        self.crowded.notified().await;
    }
}
