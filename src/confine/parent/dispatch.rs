//! What a forker says → whoever waits for it.

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

/// What is waited for, by whoever waits and whoever hears.
pub(crate) type Pending = Arc<Mutex<Waiting>>;

/// What of a forker is still to come.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) calls: HashMap<u64, Waiter>,
    pub(crate) way_out: Option<oneshot::Sender<Result<Sockets, ConfineError>>>,
    pub(crate) closed: bool,
    /// Why the forker ended itself, if it said so.
    pub(crate) refusal: Option<StartFailure>,
}

impl Waiting {
    /// The forker begins with this call; whether it was launched, and not begun with before.
    fn begins(&mut self, call: u64) -> bool {
        let taken = self.calls.get_mut(&call).and_then(|waiter| waiter.taken.take());
        // Whoever launched it may have given up.
        taken.map(|taken| taken.send(())).is_some()
    }
}

/// How long the supervisor may take for its last word once the forker has said its own: it compares all that is protected.
const LAST_WORD: Duration = Duration::from_secs(15);

/// Who waits for the end of a call.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// Whether protected names are settled after it.
    pub(crate) watch: Watch,
    /// Told when the forker begins with it; gone then.
    pub(crate) taken: Option<oneshot::Sender<()>>,
    pub(crate) sender: oneshot::Sender<Result<Ended, ConfineError>>,
}

/// Whether a supervisor puts protected names back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeps {
    ProtectedNames,
    Nothing,
}

impl Keeps {
    pub(crate) fn of(protect: Option<&ProtectSetup>) -> Self {
        match protect {
            Some(_) => Self::ProtectedNames,
            None => Self::Nothing,
        }
    }
}

/// What is said where the supervisor had no last word: it was killed, and nobody else puts anything back.
const NOT_PUT_BACK: &str = "the process that puts them back was killed; what the command changed among them is as it left it until \
                            Stockade starts here again, which puts it back then";

/// The sockets of a way out, as they came.
pub(crate) type Sockets = (Loopback, Vec<OwnedFd>);

/// How long a supervisor that is ended may take to say what it put back: that may be tens of thousands of names.
const HEARD_OUT: Duration = Duration::from_secs(30);

/// What a supervisor says before it is gone.
#[derive(Debug, Default)]
pub struct LastWords {
    /// Why it ended itself, if it did.
    pub refusal: Option<StartFailure>,
    /// What it put back of what an earlier session left.
    pub recovered: PutBack,
}

/// Hears the rest of what a supervisor says, until it is gone. No command has run.
pub(crate) async fn hear_out(reader: &OwnedReadHalf) -> LastWords {
    let mut last = LastWords::default();
    let to_the_end = async {
        while let Ok(Some(reply)) = next_message(reader.as_ref()).await {
            match reply {
                Reply::Refused(failure) => drop(last.refusal.get_or_insert(failure)),
                Reply::Recovered(put_back) => last.recovered = put_back,
                // These say how far it came with what nobody needs any more.
                Reply::Present(_)
                | Reply::Ready
                | Reply::Leaky(_)
                | Reply::Ended(_)
                | Reply::WayOut(_)
                | Reply::Taken(_)
                | Reply::Lost(_) => {}
            }
        }
    };
    let _heard = tokio::time::timeout(HEARD_OUT, to_the_end).await;
    last
}

/// Whether the forker is ready.
async fn first_word(reader: &OwnedReadHalf) -> Result<(), ConfineError> {
    match next_message(reader.as_ref()).await {
        Ok(Some(Reply::Ready)) => Ok(()),
        Ok(Some(Reply::Refused(failure))) => Err(ConfineError::Step(failure)),
        Ok(Some(Reply::Leaky(hole))) => Err(ConfineError::SelfTest(escape(hole.as_bytes()))),
        Ok(Some(Reply::Ended(_) | Reply::Present(_) | Reply::WayOut(_) | Reply::Taken(_) | Reply::Recovered(_))) => {
            Err(ConfineError::Malformed)
        }
        Ok(Some(Reply::Lost(_)) | None) => Err(ConfineError::ForkerDied),
        Err(error) => Err(error),
    }
}

/// Hears the forker, and hands what it says to whoever waits for it, until it is gone.
pub(crate) async fn dispatch(
    reader: OwnedReadHalf,
    ready: oneshot::Sender<Result<(), ConfineError>>,
    pending: Pending,
    keeps: Keeps,
) {
    let first = first_word(&reader).await;
    let failed = first.is_err();
    // A session that is given up before its first launch waits for nothing.
    let _unread = ready.send(first);
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
                let mut waiting = pending.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(sender) = waiting.way_out.take() else {
                    break ConfineError::Malformed;
                };
                let made = made.map(|addresses| (addresses, sockets));
                // Whoever wanted it gave up: the sockets are closed with the receiver.
                let _unread = sender.send(made.map_err(ConfineError::Step));
            }
            // Nothing else has descriptors.
            (_, sockets) if !sockets.is_empty() => break ConfineError::Malformed,
            (Reply::Ended(ended), _) => {
                let mut waiting = pending.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(Waiter { sender, taken, .. }) = waiting.calls.remove(&ended.call) else {
                    break ConfineError::Malformed;
                };
                // It could not begin, and no other is to try.
                let _unread = taken.map(|taken| taken.send(()));
                // Nobody waits for it any more: its outcome is dropped with the receiver.
                let _unread = sender.send(Ok(ended));
            }
            (Reply::Taken(call), _) => {
                let mut waiting = pending.lock().unwrap_or_else(PoisonError::into_inner);
                if !waiting.begins(call) {
                    break ConfineError::Malformed;
                }
            }
            (Reply::Refused(failure), _) => break ConfineError::Step(failure),
            (Reply::Lost(told), _) => {
                put_back = Some(told);
                break ConfineError::ForkerDied;
            }
            (Reply::Ready | Reply::Leaky(_) | Reply::Present(_) | Reply::Recovered(_), _) => {
                break ConfineError::Malformed;
            }
        }
    };
    // Where nothing was to be put back, nothing is missing without the last word.
    let is_watched = pending
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .calls
        .values()
        .any(|waiter| waiter.watch == Watch::ProtectedNames);
    let not_put_back = || is_watched.then(|| PutBack::failed(NOT_PUT_BACK.to_owned()));
    match (&last, &put_back, keeps) {
        // It has ended itself, and said why; the supervisor puts back what there is to be put back.
        (ConfineError::Step(_), None, Keeps::ProtectedNames) => {
            let heard = tokio::time::timeout(LAST_WORD, next_message(reader.as_ref())).await;
            put_back = match heard {
                Ok(Ok(Some(Reply::Lost(told)))) => Some(told),
                Ok(Ok(_) | Err(_)) | Err(_) => not_put_back(),
            };
        }
        (ConfineError::ForkerDied, None, Keeps::ProtectedNames) => {
            put_back = not_put_back();
        }
        (_, Some(_), _) | (_, None, Keeps::ProtectedNames | Keeps::Nothing) => {}
    }
    let why = if let ConfineError::Step(failure) = &last {
        End::GivenUp(failure.clone())
    } else {
        End::Lost
    };
    let mut waiting = pending.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.closed = true;
    if let ConfineError::Step(failure) = &last {
        waiting.refusal = Some(failure.clone());
    }
    // Whoever waits for it finds the sender gone.
    waiting.way_out = None;
    let mut last = Some(last);
    for (call, Waiter { watch, sender, .. }) in waiting.calls.drain() {
        let end = match (watch, &put_back) {
            // It is an end like another, with what was put back after it, which is told and recorded.
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

    async fn heard(said: Vec<Reply>) -> LastWords {
        let (ours, theirs) = UnixStream::pair().unwrap();
        // More than the socket holds is sent piece by piece, as it is read.
        let saying = std::thread::spawn(move || {
            for reply in said {
                wire::send(&theirs, &reply, &[]).unwrap();
            }
        });
        let (reader, _writer) = registered(ours).unwrap().into_split();
        let last = hear_out(&reader).await;
        saying.join().unwrap();
        last
    }

    fn refused(detail: &str) -> Reply {
        Reply::Refused(StartFailure::new(Step::Session, nix::errno::Errno::EPERM, detail))
    }

    #[tokio::test]
    async fn a_stage_that_is_heard_out_is_heard_to_its_last_word_and_the_first_reason_counts() {
        let long = || {
            Reply::Present(vec![
                Covered {
                    path: "x".repeat(4000).into(),
                    copy: None
                };
                200
            ])
        };
        let put_back = PutBack::failed("no room".to_owned());
        let recovered = Reply::Recovered(put_back.clone());
        let last = heard(vec![long(), recovered, refused("first"), long(), refused("second")]).await;
        assert_eq!(last.refusal.unwrap().detail, "first");
        assert_eq!(last.recovered, put_back);
    }

    #[tokio::test]
    async fn a_stage_that_gave_no_reason_had_none() {
        assert_eq!(heard(vec![Reply::Ready]).await.refusal, None);
        assert_eq!(heard(Vec::new()).await.refusal, None);
    }
}
