//! The transport to an untrusted server: one message per line.
//!
//! Bytes and values of a message are bounded before it is parsed. An answer that is malformed or has an unknown id is dropped; if its
//! request is known, that request fails at once. Requests of the server are answered here, with a refusal.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, ProgressNotificationParam, ProgressToken, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::bounds::{MAX_GARBAGE, MAX_MESSAGE, MAX_SKIPPED};
use crate::mcp::values::too_many;
use crate::tools::{Pipe, ServedStreams};

/// The most messages queued for the server.
const MAX_QUEUED: usize = 64;

/// Bytes read at once.
const READ_SIZE: usize = 64 * 1024;

/// State shared by the transport and the callers.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The requests without an answer.
    pending: Mutex<Vec<RequestId>>,
    /// The receivers of progress, by token.
    progress: Mutex<HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>>,
    /// The server reported changed tools.
    pub(super) changed: Notify,
    /// The connection is closed.
    pub(super) closed: Notify,
}

/// The code of errors that Stockade makes for malformed answers.
pub(super) const LOCAL_ERROR: ErrorCode = ErrorCode(i32::MIN);

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Vec<RequestId>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forwards the progress of a call until the subscription is dropped.
    pub(super) fn subscribe_progress(
        self: &Arc<Self>,
        token: ProgressToken,
    ) -> (ProgressSubscription, mpsc::Receiver<ProgressNotificationParam>) {
        let (sender, updates) = mpsc::channel(16);
        self.progress().insert(token.clone(), sender);
        let subscription = ProgressSubscription {
            shared: Arc::clone(self),
            token,
        };
        (subscription, updates)
    }

    /// Drops a request: its answer is ignored.
    pub(super) fn forget(&self, id: &RequestId) {
        self.pending().retain(|pending| pending != id);
    }
}

/// A subscription to the progress of a call.
#[derive(Debug)]
pub(super) struct ProgressSubscription {
    shared: Arc<Shared>,
    token: ProgressToken,
}

impl Drop for ProgressSubscription {
    fn drop(&mut self) {
        self.shared.progress().remove(&self.token);
    }
}

#[derive(Debug)]
pub(super) struct Wire {
    output: Pipe,
    piece: Vec<u8>,
    line: Vec<u8>,
    /// How many bytes of an overlong line were skipped so far.
    skipped: Option<usize>,
    /// How many lines in a row were no messages.
    garbage: usize,
    received: VecDeque<ServerJsonRpcMessage>,
    outbox: Option<mpsc::Sender<Outgoing>>,
    writer: JoinHandle<()>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Outgoing {
    line: Vec<u8>,
    written: Option<oneshot::Sender<io::Result<()>>>,
}

/// The fields that identify a malformed message.
#[derive(Debug, Deserialize)]
struct Head {
    id: Option<RequestId>,
    method: Option<String>,
}

impl Wire {
    pub(super) fn new(streams: ServedStreams, shared: Arc<Shared>) -> Self {
        let ServedStreams { input, output } = streams;
        let (outbox, lines) = mpsc::channel(MAX_QUEUED);
        Self {
            output,
            piece: vec![0; READ_SIZE],
            line: Vec::new(),
            skipped: None,
            garbage: 0,
            received: VecDeque::new(),
            outbox: Some(outbox),
            writer: tokio::spawn(write(input, lines)),
            shared,
        }
    }

    /// Splits the bytes that were read into lines.
    fn take(&mut self, count: usize) {
        let piece = std::mem::take(&mut self.piece);
        let mut rest = piece.get(..count).unwrap_or_default();
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.keep(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.keep(rest);
        self.piece = piece;
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(skipped) = &mut self.skipped {
            *skipped += bytes.len();
        } else if self.line.len() + bytes.len() > MAX_MESSAGE {
            self.skipped = Some(self.line.len() + bytes.len());
            self.line = Vec::new();
            self.fail_all_pending("it sent a message that is longer than anything that is read");
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    /// Whether the server sends too much that is no message.
    fn exceeds_bounds(&self) -> bool {
        self.garbage > MAX_GARBAGE || self.skipped.is_some_and(|skipped| skipped > MAX_SKIPPED)
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.skipped.take().is_some() {
            return;
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        if too_many(line) {
            self.fail_all_pending("it sent a message of more values than anything that is read");
            return;
        }
        if let Ok(message) = serde_json::from_slice::<ServerJsonRpcMessage>(line) {
            self.garbage = 0;
            self.dispatch(message);
        } else {
            self.garbage += 1;
            self.reject(line);
        }
    }

    /// Fails all pending requests: the answer to one of them is lost.
    fn fail_all_pending(&mut self, why: &str) {
        for id in std::mem::take(&mut *self.shared.pending()) {
            let failed = ErrorData::new(LOCAL_ERROR, why.to_owned(), None);
            self.received.push_back(ServerJsonRpcMessage::error(failed, Some(id)));
        }
    }

    fn dispatch(&mut self, message: ServerJsonRpcMessage) {
        match message {
            JsonRpcMessage::Response(mut response) => {
                if let Some(id) = self.take_pending(&response.id) {
                    response.id = id;
                    self.received.push_back(JsonRpcMessage::Response(response));
                }
            }
            JsonRpcMessage::Error(mut error) => match error.id.take() {
                // An error about an unknown request.
                None => self.received.push_back(JsonRpcMessage::Error(error)),
                Some(id) => {
                    if let Some(id) = self.take_pending(&id) {
                        error.id = Some(id);
                        self.received.push_back(JsonRpcMessage::Error(error));
                    }
                }
            },
            JsonRpcMessage::Request(request) => {
                let method = serde_json::to_value(&request.request).ok();
                let method = method.as_ref().and_then(|request| request.get("method")?.as_str());
                self.refuse(&request.id, method.unwrap_or_default());
            }
            JsonRpcMessage::Notification(notification) => match notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    let listener = self.shared.progress().get(&progress.params.progress_token).cloned();
                    if let Some(listener) = listener {
                        // A slow receiver misses some.
                        let _missed = listener.try_send(progress.params);
                    }
                }
                ServerNotification::ToolListChangedNotification(_) => self.shared.changed.notify_one(),
                ServerNotification::SubscriptionsAcknowledgedNotification(_) => {
                    self.received.push_back(JsonRpcMessage::Notification(notification));
                }
                _ => {}
            },
        }
    }

    /// Removes the pending request with this id.
    fn take_pending(&self, id: &RequestId) -> Option<RequestId> {
        let mut pending = self.shared.pending();
        // Some servers answer to 1 with "1".
        let at = pending
            .iter()
            .position(|sent| sent == id || sent.to_string() == id.to_string())?;
        Some(pending.swap_remove(at))
    }

    /// Answers a malformed message, or fails its request, if it has an id.
    fn reject(&mut self, line: &[u8]) {
        match serde_json::from_slice::<Head>(line) {
            Ok(Head {
                id: Some(id),
                method: Some(method),
            }) => self.refuse(&id, &method),
            Ok(Head {
                id: Some(id),
                method: None,
            }) => {
                if let Some(id) = self.take_pending(&id) {
                    let failed = ErrorData::new(LOCAL_ERROR, "its answer is no message of the protocol", None);
                    self.received.push_back(ServerJsonRpcMessage::error(failed, Some(id)));
                }
            }
            Ok(Head { id: None, .. }) | Err(_) => {}
        }
    }

    /// Refuses a request of the server.
    fn refuse(&self, id: &RequestId, method: &str) {
        let answer = match method {
            "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
            "elicitation/create" => json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}}),
            _ => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}}),
        };
        if let Some(outbox) = &self.outbox {
            // Dropped if the server does not read.
            let _unread = outbox.try_send(Outgoing {
                line: line(&answer),
                written: None,
            });
        }
    }
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Writes the lines in order, then closes the server's input.
async fn write(input: Pipe, mut lines: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { line, written }) = lines.recv().await {
        let done = input.write_all(&line).await;
        let failed = done.is_err();
        if let Some(written) = written {
            // The sender may be gone.
            let _dropped = written.send(done);
        }
        if failed {
            return;
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the server reads nothing any more")
}

impl Transport<RoleClient> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message {
            let mut pending = self.shared.pending();
            if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                // A late answer to an earlier attempt must not match this one.
                pending.clear();
            }
            pending.push(request.id.clone());
        }
        let outbox = self.outbox.clone();
        let message = serde_json::to_value(&message);
        async move {
            let (written, done) = oneshot::channel();
            let outgoing = Outgoing {
                line: line(&message?),
                written: Some(written),
            };
            let outbox = outbox.ok_or_else(closed)?;
            outbox.send(outgoing).await.map_err(|_closed| closed())?;
            done.await.map_err(|_gone| closed())?
        }
    }

    /// The next message. Cancel safe.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.received.pop_front() {
                return Some(message);
            }
            if self.exceeds_bounds() {
                return None;
            }
            match self.output.read(&mut self.piece).await {
                Ok(count) if count > 0 => self.take(count),
                Ok(_) | Err(_) => return None,
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.outbox = None;
        self.writer.abort();
        Ok(())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // The writer may wait for a server that does not read.
        self.writer.abort();
        self.shared.closed.notify_one();
    }
}
