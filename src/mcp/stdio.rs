//! Standard input and output as the transport.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::{StdioReader, StdioWriter, stdio_pipes};
use tokio_util::sync::CancellationToken;

/// The longest message that is read.
const LONGEST: usize = 16 * 1024 * 1024 + 64 * 1024;

/// The transport over the process's own streams.
pub(super) struct Stdio {
    inner: AsyncRwTransport<RoleServer, StdioReader, StdioWriter>,
    begun: Begun,
    /// The requests that are not answered yet. One that bears the name of another could not be told from it: neither its
    /// answer nor its cancellation would find it.
    open: Arc<Mutex<HashSet<RequestId>>>,
    /// Cancelled when the client has closed its end, a moment after.
    gone: CancellationToken,
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
        let (reader, writer) = stdio_pipes();
        Self {
            inner: AsyncRwTransport::new(reader, writer).with_max_line_length(LONGEST),
            begun: Begun::NotYet,
            open: Arc::default(),
            gone,
        }
    }
}

impl Stdio {
    fn open(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = answered {
            self.open().remove(id);
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
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
                    let id = request.id.clone();
                    if !self.open().insert(id) {
                        let why = ErrorData::invalid_request("a request with this id is under way", None);
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
                        self.open().remove(id);
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
