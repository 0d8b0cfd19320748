//! How much of a command's output its reader has not taken, when the relay gives up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the bytes of all streams of one command. Copies count together.
#[derive(Debug, Clone, Default)]
pub struct Delivery(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    queued: AtomicU64,
    written: AtomicU64,
    dropped: AtomicU64,
}

impl Delivery {
    /// Counts bytes on their way to the reader.
    pub(super) fn queued(&self, bytes: usize) {
        self.0.queued.fetch_add(bytes as u64, Ordering::SeqCst);
    }

    /// Counts bytes that the reader's pipe or terminal took.
    pub(super) fn written(&self, bytes: usize) {
        self.0.written.fetch_add(bytes as u64, Ordering::SeqCst);
    }

    /// Counts bytes that were never sent.
    pub(super) fn dropped(&self, bytes: u64) {
        self.0.dropped.fetch_add(bytes, Ordering::SeqCst);
    }

    /// The bytes that a stuck reader did not get. None where everything on its way arrived: then the rest was dropped for another
    /// reason.
    pub fn undelivered(&self) -> u64 {
        let Counts {
            queued,
            written,
            dropped,
        } = &*self.0;
        let stuck = queued
            .load(Ordering::SeqCst)
            .saturating_sub(written.load(Ordering::SeqCst));
        match stuck {
            0 => 0,
            stuck => stuck.saturating_add(dropped.load(Ordering::SeqCst)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_bytes_count_only_where_the_reader_left_some_unread() {
        let delivery = Delivery::default();
        delivery.queued(10);
        delivery.dropped(5);
        delivery.clone().written(4);
        assert_eq!(delivery.undelivered(), 11);
        delivery.written(6);
        assert_eq!(delivery.undelivered(), 0);
    }
}
