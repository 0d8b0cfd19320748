//! Pausing a relay while a person answers a question on its terminal.
//!
//! Otherwise output of the command could appear in the question, or in place of it, and the answer would go to the command. Each
//! piece is moved with a [pass](Pause::pass); a pause waits until no pass is out, and none is given before it ends.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, watch};

/// Pauses a relay. Copies pause the same one.
#[derive(Debug, Clone)]
pub struct Pause {
    passes: Arc<RwLock<()>>,
    requests: watch::Sender<usize>,
}

/// Keeps the relay paused until this is dropped.
#[derive(Debug)]
pub struct Paused {
    _all: OwnedRwLockWriteGuard<()>,
    // Dropped last, so that passes are free when the pause is reported as ended.
    _request: PauseRequest,
}

/// The permission to move one piece.
pub(super) type Pass = OwnedRwLockReadGuard<()>;

/// Counts those that wait for a pause or have one.
#[derive(Debug)]
struct PauseRequest(watch::Sender<usize>);

impl Drop for PauseRequest {
    fn drop(&mut self) {
        self.0.send_modify(|requests| *requests = requests.saturating_sub(1));
    }
}

impl Default for Pause {
    fn default() -> Self {
        Self {
            passes: Arc::default(),
            requests: watch::Sender::new(0),
        }
    }
}

impl Pause {
    /// Pauses the relay; returns when nothing moves any more and the terminal has its own settings again.
    pub async fn pause(&self) -> Paused {
        self.requests
            .send_modify(|requests| *requests = requests.saturating_add(1));
        let request = PauseRequest(self.requests.clone());
        Paused {
            _all: Arc::clone(&self.passes).write_owned().await,
            _request: request,
        }
    }

    pub(super) async fn pass(&self) -> Pass {
        Arc::clone(&self.passes).read_owned().await
    }

    /// A pass, if the relay is not paused.
    pub(super) fn try_pass(&self) -> Option<Pass> {
        Arc::clone(&self.passes).try_read_owned().ok()
    }

    /// Waits until a pause is requested.
    pub(super) async fn requested(&self) {
        self.until(|requests| *requests > 0).await;
    }

    /// Waits until all pauses have ended.
    pub(super) async fn ended(&self) {
        self.until(|requests| *requests == 0).await;
    }

    async fn until(&self, is: impl FnMut(&usize) -> bool) {
        let mut requests = self.requests.subscribe();
        // The sender lives as long as this does.
        let _never_closed = requests.wait_for(is).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_pause_waits_for_the_piece_on_its_way_and_none_follows() {
        let pause = Pause::default();
        let piece = pause.pass().await;
        let pausing = tokio::spawn({
            let pause = pause.clone();
            async move { pause.pause().await }
        });
        pause.requested().await;
        assert!(!pausing.is_finished());
        drop(piece);
        let paused = pausing.await.unwrap();
        assert!(pause.try_pass().is_none());
        assert!(
            tokio::time::timeout(Duration::from_millis(20), pause.pass())
                .await
                .is_err()
        );
        drop(paused);
        pause.ended().await;
        assert!(pause.try_pass().is_some());
    }

    #[tokio::test]
    async fn a_pause_that_is_given_up_pauses_nothing() {
        let pause = Pause::default();
        let pass = pause.pass().await;
        assert!(
            tokio::time::timeout(Duration::from_millis(20), pause.pause())
                .await
                .is_err()
        );
        pause.ended().await;
        drop(pass);
        assert!(pause.try_pass().is_some());
    }
}
