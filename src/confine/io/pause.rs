//! Holds a relay up while somebody is asked something on the terminal that it serves.
//!
//! What a command prints could otherwise stand in the middle of a question, or in place of it, and what is typed as an
//! answer would go to the command. Whoever moves bytes does so with a [pass](Hold::pass), for one piece; a hold waits until no
//! pass is out, and none is given before it ends.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, watch};

/// What holds a relay up. Copies hold the same one.
#[derive(Debug, Clone)]
pub struct Hold {
    passes: Arc<RwLock<()>>,
    wanted: watch::Sender<usize>,
}

/// That the relay is held up, until this is dropped.
#[derive(Debug)]
pub struct Held {
    _all: OwnedRwLockWriteGuard<()>,
    // Dropped last: who waits for the end of the hold finds the passes free.
    _wish: Wish,
}

/// Leave to move one piece.
pub(super) type Pass = OwnedRwLockReadGuard<()>;

/// That somebody waits for a hold or has it.
#[derive(Debug)]
struct Wish(watch::Sender<usize>);

impl Drop for Wish {
    fn drop(&mut self) {
        self.0.send_modify(|wanted| *wanted = wanted.saturating_sub(1));
    }
}

impl Default for Hold {
    fn default() -> Self {
        Self {
            passes: Arc::default(),
            wanted: watch::Sender::new(0),
        }
    }
}

impl Hold {
    /// Holds the relay up; returns when nothing moves any more and the terminal has its own settings again.
    pub async fn hold(&self) -> Held {
        self.wanted.send_modify(|wanted| *wanted = wanted.saturating_add(1));
        let wish = Wish(self.wanted.clone());
        Held {
            _all: Arc::clone(&self.passes).write_owned().await,
            _wish: wish,
        }
    }

    /// Waits for leave to move one piece.
    pub(super) async fn pass(&self) -> Pass {
        Arc::clone(&self.passes).read_owned().await
    }

    /// Leave to move something, if nobody holds the relay up.
    pub(super) fn try_pass(&self) -> Option<Pass> {
        Arc::clone(&self.passes).try_read_owned().ok()
    }

    /// Waits until somebody wants the relay held up.
    pub(super) async fn wanted(&self) {
        self.until(|wanted| *wanted > 0).await;
    }

    /// Waits until nobody wants it any more.
    pub(super) async fn over(&self) {
        self.until(|wanted| *wanted == 0).await;
    }

    async fn until(&self, is: impl FnMut(&usize) -> bool) {
        let mut wanted = self.wanted.subscribe();
        // The sender lives as long as this does.
        let _never_closed = wanted.wait_for(is).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_hold_waits_for_the_piece_on_its_way_and_none_follows() {
        let hold = Hold::default();
        let piece = hold.pass().await;
        let asking = tokio::spawn({
            let hold = hold.clone();
            async move { hold.hold().await }
        });
        hold.wanted().await;
        assert!(!asking.is_finished());
        drop(piece);
        let pause = asking.await.unwrap();
        assert!(hold.try_pass().is_none());
        assert!(
            tokio::time::timeout(Duration::from_millis(20), hold.pass())
                .await
                .is_err()
        );
        drop(pause);
        hold.over().await;
        assert!(hold.try_pass().is_some());
    }

    #[tokio::test]
    async fn a_hold_that_is_given_up_holds_nothing() {
        let hold = Hold::default();
        let pass = hold.pass().await;
        assert!(
            tokio::time::timeout(Duration::from_millis(20), hold.hold())
                .await
                .is_err()
        );
        hold.over().await;
        drop(pass);
        assert!(hold.try_pass().is_some());
    }
}
