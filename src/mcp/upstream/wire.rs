//! Messages to and from a server that nobody vouches for, one a line.
//!
//! What it says is bounded before it is parsed: so many bytes, so many values. An answer that cannot be understood, or
//! to nothing that was asked, answers nothing; where it is known what it was to answer, that fails at once. What the
//! server itself asks never reaches anybody: it is answered here, with a no.

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

use super::bounds::{MOST_GARBAGE, MOST_MESSAGE, MOST_SKIPPED};
use crate::mcp::values::too_many;
use crate::tools::{Pipe, ServedStreams};

/// How many messages may wait for the server to read.
const MOST_UNREAD: usize = 64;

/// Bytes read at once.
const PIECE: usize = 64 * 1024;

/// What the connection and whoever calls over it both know.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// What was asked and is not answered.
    asked: Mutex<Vec<RequestId>>,
    /// Who wants to hear how a call gets on.
    progress: Mutex<HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>>,
    /// The server says that its tools are others now.
    pub(super) changed: Notify,
    /// The connection is no more.
    pub(super) gone: Notify,
}

/// The code of errors that are Stockade's own words about an answer.
pub(super) const OURS: ErrorCode = ErrorCode(i32::MIN);

impl Shared {
    fn asked(&self) -> MutexGuard<'_, Vec<RequestId>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on what the server says of the progress of a call, until the listener is dropped.
    pub(super) fn listen(
        self: &Arc<Self>,
        token: ProgressToken,
    ) -> (Listening, mpsc::Receiver<ProgressNotificationParam>) {
        let (tell, told) = mpsc::channel(16);
        self.progress().insert(token.clone(), tell);
        let listening = Listening {
            shared: Arc::clone(self),
            token,
        };
        (listening, told)
    }

    /// Nobody waits for this answer any more.
    pub(super) fn forget(&self, id: &RequestId) {
        self.asked().retain(|asked| asked != id);
    }
}

/// Somebody listens to the progress of a call.
#[derive(Debug)]
pub(super) struct Listening {
    shared: Arc<Shared>,
    token: ProgressToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.shared.progress().remove(&self.token);
    }
}

/// The connection.
#[derive(Debug)]
pub(super) struct Wire {
    output: Pipe,
    piece: Vec<u8>,
    line: Vec<u8>,
    /// How much of a line that is longer than anything that is read was skipped; its end is still to come.
    skipped: Option<usize>,
    /// How many lines in a row were no messages.
    garbage: usize,
    understood: VecDeque<ServerJsonRpcMessage>,
    outbox: Option<mpsc::Sender<Outgoing>>,
    writer: JoinHandle<()>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Outgoing {
    line: Vec<u8>,
    written: Option<oneshot::Sender<io::Result<()>>>,
}

/// As much of a message as can be understood of any.
#[derive(Debug, Deserialize)]
struct Head {
    id: Option<RequestId>,
    method: Option<String>,
}

impl Wire {
    pub(super) fn new(streams: ServedStreams, shared: Arc<Shared>) -> Self {
        let ServedStreams { input, output } = streams;
        let (outbox, lines) = mpsc::channel(MOST_UNREAD);
        Self {
            output,
            piece: vec![0; PIECE],
            line: Vec::new(),
            skipped: None,
            garbage: 0,
            understood: VecDeque::new(),
            outbox: Some(outbox),
            writer: tokio::spawn(write(input, lines)),
            shared,
        }
    }

    /// Takes the bytes that were read.
    fn take(&mut self, count: usize) {
        let piece = std::mem::take(&mut self.piece);
        let mut rest = piece.get(..count).unwrap_or_default();
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.keep(&rest[..end]);
            self.line_is_over();
            rest = &rest[end + 1..];
        }
        self.keep(rest);
        self.piece = piece;
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(skipped) = &mut self.skipped {
            *skipped += bytes.len();
        } else if self.line.len() + bytes.len() > MOST_MESSAGE {
            self.skipped = Some(self.line.len() + bytes.len());
            self.line = Vec::new();
            self.nothing_understood("it sent a message that is longer than anything that is read");
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    /// Whether nothing that it says will ever be a message.
    fn is_no_conversation(&self) -> bool {
        self.garbage > MOST_GARBAGE || self.skipped.is_some_and(|skipped| skipped > MOST_SKIPPED)
    }

    fn line_is_over(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.skipped.take().is_some() {
            return;
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        if too_many(line) {
            self.nothing_understood("it sent a message of more values than anything that is read");
            return;
        }
        if let Ok(message) = serde_json::from_slice::<ServerJsonRpcMessage>(line) {
            self.garbage = 0;
            self.sort(message);
        } else {
            self.garbage += 1;
            self.guess(line);
        }
    }

    /// Nothing says whose answer that was: whatever waits for one fails.
    fn nothing_understood(&mut self, why: &str) {
        for id in std::mem::take(&mut *self.shared.asked()) {
            let failed = ErrorData::new(OURS, why.to_owned(), None);
            self.understood.push_back(ServerJsonRpcMessage::error(failed, Some(id)));
        }
    }

    fn sort(&mut self, message: ServerJsonRpcMessage) {
        match message {
            JsonRpcMessage::Response(mut response) => {
                if let Some(id) = self.answered(&response.id) {
                    response.id = id;
                    self.understood.push_back(JsonRpcMessage::Response(response));
                }
            }
            JsonRpcMessage::Error(mut error) => match error.id.take() {
                // It could not read something, and does not say what.
                None => self.understood.push_back(JsonRpcMessage::Error(error)),
                Some(id) => {
                    if let Some(id) = self.answered(&id) {
                        error.id = Some(id);
                        self.understood.push_back(JsonRpcMessage::Error(error));
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
                        // Who does not keep up misses some.
                        let _missed = listener.try_send(progress.params);
                    }
                }
                ServerNotification::ToolListChangedNotification(_) => self.shared.changed.notify_one(),
                ServerNotification::SubscriptionsAcknowledgedNotification(_) => {
                    self.understood.push_back(JsonRpcMessage::Notification(notification));
                }
                _ => {}
            },
        }
    }

    /// What was asked under this id, now answered.
    fn answered(&self, id: &RequestId) -> Option<RequestId> {
        let mut asked = self.shared.asked();
        // Some servers answer to 1 with "1".
        let at = asked
            .iter()
            .position(|sent| sent == id || sent.to_string() == id.to_string())?;
        Some(asked.swap_remove(at))
    }

    /// What is no message of the protocol, and may still say what it was to be.
    fn guess(&mut self, line: &[u8]) {
        match serde_json::from_slice::<Head>(line) {
            Ok(Head {
                id: Some(id),
                method: Some(method),
            }) => self.refuse(&id, &method),
            Ok(Head {
                id: Some(id),
                method: None,
            }) => {
                if let Some(id) = self.answered(&id) {
                    let failed = ErrorData::new(OURS, "its answer is no message of the protocol", None);
                    self.understood.push_back(ServerJsonRpcMessage::error(failed, Some(id)));
                }
            }
            Ok(Head { id: None, .. }) | Err(_) => {}
        }
    }

    /// Answers what the server asks, which is never passed on to anybody.
    fn refuse(&self, id: &RequestId, method: &str) {
        let answer = match method {
            "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
            "elicitation/create" => json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}}),
            _ => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}}),
        };
        if let Some(outbox) = &self.outbox {
            // A server that asks more than it reads answers of is owed none.
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

/// Writes one line after the other; the server's input ends with it.
async fn write(input: Pipe, mut lines: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { line, written }) = lines.recv().await {
        let done = input.write_all(&line).await;
        let failed = done.is_err();
        if let Some(written) = written {
            // Whoever sent it may have given up.
            let _unheard = written.send(done);
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
            let mut asked = self.shared.asked();
            if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                // Whatever was tried before is given up; a late answer to it is none to this.
                asked.clear();
            }
            asked.push(request.id.clone());
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

    /// The next message that answers something. Loses nothing when dropped before it is done.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.understood.pop_front() {
                return Some(message);
            }
            if self.is_no_conversation() {
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
        // It may wait for a server that reads nothing.
        self.writer.abort();
        self.shared.gone.notify_one();
    }
}
