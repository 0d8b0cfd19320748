//! A command under way, as the parent sees it.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::confine::error::ConfineError;
use crate::confine::group::Group;
use crate::confine::wire::protocol::{End, Ended};

/// A command under way.
#[derive(Debug)]
pub struct Running {
    pub(crate) call: u64,
    pub(crate) ended: oneshot::Receiver<Result<Ended, ConfineError>>,
    pub(crate) group: Option<Arc<Group>>,
}

impl Running {
    /// Whether it has ended, as far as is known here.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.ended.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    /// How it ended; its whole tree is dead by then.
    pub async fn ended(&mut self) -> Result<Ended, ConfineError> {
        let mut ended = (&mut self.ended).await.unwrap_or(Err(ConfineError::ForkerDied))?;
        if let Some(end) = self.group.as_deref().and_then(Group::end) {
            ended.end = match ended.end {
                End::NotStarted(failure) => End::NotStarted(failure),
                End::Aborted(failure) => End::Aborted(failure),
                End::Exited(_)
                | End::Signaled(_)
                | End::TimedOut
                | End::Cancelled
                | End::OverLimit(_)
                | End::Unbounded
                | End::Lost => end,
            };
        }
        Ok(ended)
    }

    /// Completes when its control group [must end](Group::must_end).
    pub fn must_end(&self) -> impl Future<Output = ()> + use<> {
        let group = self.group.clone();
        async move {
            match group {
                Some(group) => group.must_end().await,
                None => std::future::pending().await,
            }
        }
    }
}
