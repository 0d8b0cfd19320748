//! Standard input and output as the transport.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::sieve::Sieve;
use super::streams::{self, Input, Output};

/// The longest message that is read.
const LONGEST: usize = 16 * 1024 * 1024 + 64 * 1024;

/// The most requests that are not answered yet. With more, nothing is read until some are, so that a client that does not
/// read its answers waits, and Stockade does not grow.
const MOST_OPEN: usize = 1_024;
/// The most requests that were given up and whose names are known.
const MOST_GIVEN_UP: usize = 4_096;

/// The transport over the process's own streams.
pub(super) struct Stdio {
    inner: AsyncRwTransport<RoleServer, Sieve<Input>, Output>,
    begun: Begun,
    open: Arc<Open>,
    /// Cancelled when the client has closed its end, a moment after.
    gone: CancellationToken,
}

/// The requests whose answers are not written yet. One that bears the name of another could not be told from it: neither
/// its answer nor its cancellation would find it.
#[derive(Debug, Default)]
struct Open {
    ids: Mutex<Ids>,
    fewer: Notify,
}

#[derive(Debug, Default)]
struct Ids {
    open: HashSet<RequestId>,
    /// Those that were given up: nothing says when what they began has ended, so their names are not free again.
    given_up: HashSet<RequestId>,
    /// The same, oldest first; the oldest is forgotten when there are too many.
    oldest: VecDeque<RequestId>,
}

impl Open {
    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request of this name may begin.
    fn begin(&self, id: &RequestId) -> bool {
        let mut ids = self.ids();
        !ids.given_up.contains(id) && ids.open.insert(id.clone())
    }

    /// It is answered.
    fn close(&self, id: &RequestId) {
        self.ids().open.remove(id);
        self.fewer.notify_one();
    }

    /// It was cancelled, and is not answered.
    fn give_up(&self, id: &RequestId) {
        let mut ids = self.ids();
        if ids.open.remove(id) && ids.given_up.insert(id.clone()) {
            ids.oldest.push_back(id.clone());
        }
        if ids.oldest.len() > MOST_GIVEN_UP
            && let Some(oldest) = ids.oldest.pop_front()
        {
            ids.given_up.remove(&oldest);
        }
        drop(ids);
        self.fewer.notify_one();
    }

    /// Waits until there is room for another.
    async fn room(&self) {
        while self.ids().open.len() >= MOST_OPEN {
            self.fewer.notified().await;
        }
    }
}

/// How long what is under way may still take when the client has closed its end: whoever pipes requests in closes it at
/// once, and a client that goes waits two seconds at most.
const GRACE: Duration = Duration::from_millis(700);

/// Whether a request has come. What comes before the first one speaks of nothing, and a server that is not told whom it
/// serves would end over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    NotYet,
    Yes,
}

impl Stdio {
    /// Over the streams that the client holds the other ends of.
    pub(super) fn new(gone: CancellationToken) -> Self {
        Self {
            inner: AsyncRwTransport::new(Sieve::new(streams::input()), streams::output()).with_max_line_length(LONGEST),
            begun: Begun::NotYet,
            open: Arc::default(),
            gone,
        }
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let open = Arc::clone(&self.open);
        let sending = self.inner.send(item);
        async move {
            let sent = sending.await;
            if let Some(id) = answered {
                open.close(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.open.room().await;
            let Some(message) = self.inner.receive().await else {
                let gone = self.gone.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(GRACE).await;
                    gone.cancel();
                });
                return None;
            };
            match (&message, self.begun) {
                (JsonRpcMessage::Request(request), _) => {
                    self.begun = Begun::Yes;
                    if !self.open.begin(&request.id) {
                        let why = ErrorData::invalid_request("there was a request with this id", None);
                        // Not in the name of the other, whose answer is still to come.
                        self.inner.send(JsonRpcMessage::error(why, None)).await.ok()?;
                        continue;
                    }
                }
                (JsonRpcMessage::Notification(notification), Begun::Yes) => {
                    // What is cancelled is not answered.
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.open.give_up(id);
                    }
                }
                (_, Begun::Yes) => {}
                (_, Begun::NotYet) => continue,
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
