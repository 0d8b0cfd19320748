//! Replies of a forker → the calls that wait for them.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::unix::OwnedReadHalf;
use tokio::sync::oneshot;

use crate::confine::error::ConfineError;
use crate::confine::parent::channel::{next_message, next_with_descriptors};
use crate::confine::wire::attempted::Attempted;
use crate::confine::wire::protocol::{End, Ended, Loopback, ProtectSetup, PutBack, Reply, StartFailure, Watch};
use crate::policy::path::escape;

/// Shared by the waiting calls and the reader.
pub(crate) type Pending = Arc<Mutex<PendingReplies>>;

/// The replies that a forker still owes.
#[derive(Debug, Default)]
pub(crate) struct PendingReplies {
    pub(crate) calls: HashMap<u64, Waiter>,
    pub(crate) way_out: Option<oneshot::Sender<Result<Sockets, ConfineError>>>,
    pub(crate) closed: bool,
    /// Why the forker ended itself, if it reported that.
    pub(crate) refusal: Option<StartFailure>,
}

impl PendingReplies {
    /// Notes that the forker begins with this call; `false` where it was not launched, or has begun already.
    fn accept(&mut self, call: u64) -> bool {
        let accepted = self.calls.get_mut(&call).and_then(|waiter| waiter.accepted.take());
        // Whoever launched it may have given up.
        accepted.map(|accepted| accepted.send(())).is_some()
    }
}

/// How long the supervisor may take for its last reply after the forker's: it compares all that is protected.
const LAST_REPLY_TIMEOUT: Duration = Duration::from_secs(15);

/// A call that waits for its end.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// Whether protected names are settled after it.
    pub(crate) watch: Watch,
    /// Notified, once, when the forker begins with it.
    pub(crate) accepted: Option<oneshot::Sender<()>>,
    pub(crate) sender: oneshot::Sender<Result<Ended, ConfineError>>,
}

/// Whether a supervisor puts protected names back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restores {
    ProtectedNames,
    Nothing,
}

impl Restores {
    pub(crate) fn of(protect: Option<&ProtectSetup>) -> Self {
        match protect {
            Some(_) => Self::ProtectedNames,
            None => Self::Nothing,
        }
    }
}

/// The report where the supervisor was killed, and nothing was restored.
const NOT_PUT_BACK: &str = "the process that puts them back was killed; what the command changed among them is as it left it until \
                            Stockade starts here again, which puts it back then";

/// The sockets of a way out, not yet verified.
pub(crate) type Sockets = (Loopback, Vec<OwnedFd>);

/// How long an ending supervisor may take to report what it restored, which may be tens of thousands of names.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The last reports of a supervisor.
#[derive(Debug, Default)]
pub struct FinalReport {
    /// Why it ended itself, if it did.
    pub refusal: Option<StartFailure>,
    /// What it restored after an earlier session.
    pub recovered: PutBack,
}

/// Reads the replies of a supervisor to the end. No command has run.
pub(crate) async fn drain_replies(reader: &OwnedReadHalf) -> FinalReport {
    let mut last = FinalReport::default();
    let drain = async {
        while let Ok(Some(reply)) = next_message(reader.as_ref()).await {
            match reply {
                Reply::Refused(failure) => drop(last.refusal.get_or_insert(failure)),
                Reply::Recovered(put_back) => last.recovered = put_back,
                // Progress that is not needed any more.
                Reply::ToCover(_)
                | Reply::Ready
                | Reply::SelfTestFailed(_)
                | Reply::Ended(_)
                | Reply::WayOut(_)
                | Reply::Accepted(_)
                | Reply::ForkerExited(_) => {}
            }
        }
    };
    let _timeout = tokio::time::timeout(DRAIN_TIMEOUT, drain).await;
    last
}

async fn receive_ready(reader: &OwnedReadHalf) -> Result<(), ConfineError> {
    match next_message(reader.as_ref()).await {
        Ok(Some(Reply::Ready)) => Ok(()),
        Ok(Some(Reply::Refused(failure))) => Err(ConfineError::Step(failure)),
        Ok(Some(Reply::SelfTestFailed(hole))) => Err(ConfineError::SelfTest(escape(hole.as_bytes()))),
        Ok(Some(Reply::Ended(_) | Reply::ToCover(_) | Reply::WayOut(_) | Reply::Accepted(_) | Reply::Recovered(_))) => {
            Err(ConfineError::Malformed)
        }
        Ok(Some(Reply::ForkerExited(_)) | None) => Err(ConfineError::ForkerDied),
        Err(error) => Err(error),
    }
}

/// Reads the replies of a forker to the end, and passes each to the call that waits for it.
pub(crate) async fn dispatch(
    reader: OwnedReadHalf,
    ready: oneshot::Sender<Result<(), ConfineError>>,
    pending: Pending,
    restores: Restores,
) {
    let readiness = receive_ready(&reader).await;
    let failed = readiness.is_err();
    // A session that is given up before its first launch waits for nothing.
    let _unread = ready.send(readiness);
    if failed {
        pending.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        return;
    }
    let mut put_back = None;
    let last = loop {
        let (reply, sockets) = match next_with_descriptors(reader.as_ref()).await {
            Ok(Some(message)) => message,
            Ok(None) => break ConfineError::ForkerDied,
            Err(error) => break error,
        };
        match (reply, sockets) {
            (Reply::WayOut(made), sockets) => {
                let mut pending_replies = pending.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(sender) = pending_replies.way_out.take() else {
                    break ConfineError::Malformed;
                };
                let made = made.map(|addresses| (addresses, sockets));
                // If the caller gave up, the sockets are closed with the receiver.
                let _unread = sender.send(made.map_err(ConfineError::Step));
            }
            // Nothing else has descriptors.
            (_, sockets) if !sockets.is_empty() => break ConfineError::Malformed,
            (Reply::Ended(ended), _) => {
                let mut pending_replies = pending.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(Waiter { sender, accepted, .. }) = pending_replies.calls.remove(&ended.call) else {
                    break ConfineError::Malformed;
                };
                // It could not begin, and no other forker is to try.
                let _unread = accepted.map(|accepted| accepted.send(()));
                // Nobody waits for it any more: its outcome is dropped with the receiver.
                let _unread = sender.send(Ok(ended));
            }
            (Reply::Accepted(call), _) => {
                let mut pending_replies = pending.lock().unwrap_or_else(PoisonError::into_inner);
                if !pending_replies.accept(call) {
                    break ConfineError::Malformed;
                }
            }
            (Reply::Refused(failure), _) => break ConfineError::Step(failure),
            (Reply::ForkerExited(outcome), _) => {
                put_back = Some(outcome);
                break ConfineError::ForkerDied;
            }
            (Reply::Ready | Reply::SelfTestFailed(_) | Reply::ToCover(_) | Reply::Recovered(_), _) => {
                break ConfineError::Malformed;
            }
        }
    };
    // Without protected names a missing last reply does not matter.
    let is_watched = pending
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .calls
        .values()
        .any(|waiter| waiter.watch == Watch::ProtectedNames);
    let not_restored = || is_watched.then(|| PutBack::failed(NOT_PUT_BACK.to_owned()));
    match (&last, &put_back, restores) {
        // The forker ended itself and reported why; the supervisor restores and reports next.
        (ConfineError::Step(_), None, Restores::ProtectedNames) => {
            let received = tokio::time::timeout(LAST_REPLY_TIMEOUT, next_message(reader.as_ref())).await;
            put_back = match received {
                Ok(Ok(Some(Reply::ForkerExited(outcome)))) => Some(outcome),
                Ok(Ok(_) | Err(_)) | Err(_) => not_restored(),
            };
        }
        (ConfineError::ForkerDied, None, Restores::ProtectedNames) => {
            put_back = not_restored();
        }
        (_, Some(_), _) | (_, None, Restores::ProtectedNames | Restores::Nothing) => {}
    }
    let why = if let ConfineError::Step(failure) = &last {
        End::Aborted(failure.clone())
    } else {
        End::Lost
    };
    let mut pending_replies = pending.lock().unwrap_or_else(PoisonError::into_inner);
    pending_replies.closed = true;
    if let ConfineError::Step(failure) = &last {
        pending_replies.refusal = Some(failure.clone());
    }
    // Dropping the sender ends the wait.
    pending_replies.way_out = None;
    let mut last = Some(last);
    for (call, Waiter { watch, sender, .. }) in pending_replies.calls.drain() {
        let end = match (watch, &put_back) {
            // An end like others, with a report of what was restored.
            (Watch::ProtectedNames, Some(put_back)) => Ok(Ended {
                call,
                end: why.clone(),
                put_back: put_back.clone(),
                attempted: Attempted::default(),
            }),
            (Watch::Nothing, _) | (Watch::ProtectedNames, None) => Err(last.take().unwrap_or(ConfineError::ForkerDied)),
        };
        let _unread = sender.send(end);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::confine::parent::channel::registered;
    use crate::confine::wire;
    use crate::confine::wire::protocol::{Covered, Step};

    async fn final_report(replies: Vec<Reply>) -> FinalReport {
        let (ours, theirs) = UnixStream::pair().unwrap();
        // More than the socket holds is sent piece by piece, as it is read.
        let sender = std::thread::spawn(move || {
            for reply in replies {
                wire::send(&theirs, &reply, &[]).unwrap();
            }
        });
        let (reader, _writer) = registered(ours).unwrap().into_split();
        let last = drain_replies(&reader).await;
        sender.join().unwrap();
        last
    }

    fn refused(detail: &str) -> Reply {
        Reply::Refused(StartFailure::new(Step::Session, nix::errno::Errno::EPERM, detail))
    }

    #[tokio::test]
    async fn replies_are_read_to_the_end_and_the_first_refusal_counts() {
        let long = || {
            Reply::ToCover(vec![
                Covered {
                    path: "x".repeat(4000).into(),
                    copy: None
                };
                200
            ])
        };
        let put_back = PutBack::failed("no room".to_owned());
        let recovered = Reply::Recovered(put_back.clone());
        let last = final_report(vec![long(), recovered, refused("first"), long(), refused("second")]).await;
        assert_eq!(last.refusal.unwrap().detail, "first");
        assert_eq!(last.recovered, put_back);
    }

    #[tokio::test]
    async fn without_a_refusal_there_is_no_reason() {
        assert_eq!(final_report(vec![Reply::Ready]).await.refusal, None);
        assert_eq!(final_report(Vec::new()).await.refusal, None);
    }
}
