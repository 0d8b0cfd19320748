//! Standard input and output as the transport.
//!
//! Input is always read, whatever is under way, so cancellations, pings, answers and the end never wait. Requests beyond a limit and
//! invalid messages are answered at once. [`lines`] reads, [`open_requests`] tracks requests without an answer, [`outbox`] writes.

mod lines;
mod open_requests;
mod outbox;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::head::{self, BUSY, INVALID_REQUEST, Kind, error_reply};
use super::params::{self, INVALID_PARAMS};
use super::streams::{self, Input};
use lines::{Line, Lines, OverBound};
use open_requests::{Admission, MAX_BYTES, MAX_CALLS, OpenRequests};
use outbox::{Outbox, Priority, is_written};

type Received = RxJsonRpcMessage<RoleServer>;
type Sent = TxJsonRpcMessage<RoleServer>;

/// The transport over the process's own streams.
pub(super) struct Stdio {
    lines: Lines<Input>,
    outbox: Arc<Outbox>,
    /// Whether a request has come. Messages before the first one are dropped: rmcp would end over them.
    has_begun: bool,
    open: Arc<OpenRequests>,
    /// When the transport ends after the client closed its end.
    deadline: Option<Instant>,
    /// Cancelled at that time.
    closed: CancellationToken,
}

/// How long calls may still take when the client has closed its end: a pipe of requests closes it at once, and a client that exits
/// waits two seconds at most.
const GRACE: Duration = Duration::from_millis(700);

impl Stdio {
    /// The transport over standard input and output. Needs a running runtime.
    pub(super) fn new(closed: CancellationToken) -> Self {
        Self {
            lines: Lines::new(streams::input()),
            outbox: Outbox::to(streams::output()),
            has_begun: false,
            open: Arc::default(),
            deadline: None,
            closed,
        }
    }

    /// Parses a line; answers it if it is no valid message.
    fn parse(&self, line: Line) -> Option<Received> {
        let Line { head, text } = line;
        let kind = head.kind();
        let bound = |why: &'static str| (INVALID_REQUEST, Cow::Borrowed(why));
        let (code, why) = match text {
            Ok(text) => {
                let read: Result<Received, _> = serde_json::from_slice(&text);
                // rmcp has parsed the parameters of most requests; the others are checked here.
                let is_read = read.as_ref().is_ok_and(|message| !may_be_wrong(message));
                let is_named = matches!(kind, Kind::Request(Some(_)));
                let wrong = (is_named && !is_read).then(|| params::wrong(&text)).flatten();
                match (read, wrong) {
                    (_, Some(why)) => (INVALID_PARAMS, Cow::Owned(why)),
                    (Ok(message), None) => return Some(message),
                    (Err(_), None) => {
                        let (code, why) = head::error_of(&text, &kind);
                        (code, Cow::Borrowed(why))
                    }
                }
            }
            Err(OverBound::Bytes) => bound("Invalid Request: the message is longer than 16 MiB"),
            Err(OverBound::Values) => bound("Invalid Request: the message has more than 200000 values"),
        };
        match &kind {
            // Notifications are never answered; an unknown one may be of a later revision.
            Kind::Notification | Kind::Answer(None) if code == INVALID_REQUEST => None,
            // The request that waits for this answer fails.
            Kind::Answer(Some(id)) if code == INVALID_REQUEST => {
                let id: RequestId = serde_json::from_str(id).ok()?;
                let error = ErrorData::new(ErrorCode(code), "the answer was not understood", None);
                Some(JsonRpcMessage::error(error, Some(id)))
            }
            Kind::Request(_) | Kind::Notification | Kind::Answer(_) | Kind::Other => {
                self.outbox
                    .send_error(error_reply(head::reply_id(&kind, code), code, &why));
                None
            }
        }
    }

    /// Whether a message of this length in bytes is passed to rmcp.
    fn admit(&mut self, message: &Received, length: usize) -> bool {
        match (message, self.has_begun) {
            (JsonRpcMessage::Request(request), _) => {
                self.has_begun = true;
                let priority = match &request.request {
                    ClientRequest::CallToolRequest(_) => Priority::Data,
                    _ => Priority::Control,
                };
                match self.open.begin(&request.id, priority, length) {
                    Admission::Yes => return true,
                    // Without the id: the other request still waits for its answer.
                    Admission::Duplicate => self.refuse(
                        None,
                        INVALID_REQUEST,
                        "Invalid Request: there was a request with this id",
                    ),
                    Admission::Busy => {
                        let why = format!(
                            "busy: {MAX_CALLS} calls or {} MiB of them are not answered yet, and nothing of this one was done; call again when some are",
                            MAX_BYTES >> 20
                        );
                        self.refuse(serde_json::to_string(&request.id).ok().as_deref(), BUSY, &why);
                    }
                }
                false
            }
            (JsonRpcMessage::Notification(notification), true) => {
                // A cancelled request is not answered.
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.cancel(id);
                }
                true
            }
            (_, true) => true,
            (_, false) => false,
        }
    }

    fn refuse(&self, id: Option<&str>, code: i32, why: &str) {
        self.outbox.send_error(error_reply(id, code, why));
    }

    /// Ends the transport after the client closed its end; queued answers are still written.
    async fn end(&mut self) {
        let deadline = *self.deadline.get_or_insert_with(|| {
            let closed = self.closed.clone();
            tokio::spawn(async move {
                tokio::time::sleep(GRACE).await;
                closed.cancel();
            });
            Instant::now() + GRACE
        });
        let _unread = timeout_at(deadline, self.outbox.written()).await;
    }
}

/// Whether rmcp may have failed to parse the parameters: it then takes the request for another one, or for one without parameters.
fn may_be_wrong(message: &Received) -> bool {
    match message {
        JsonRpcMessage::Request(request) => match &request.request {
            ClientRequest::CustomRequest(_) => true,
            ClientRequest::ListToolsRequest(list) => list.params.is_none(),
            _ => false,
        },
        JsonRpcMessage::Notification(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => false,
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = std::io::Error;

    fn send(&mut self, item: Sent) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let priority = match (&item, &answered) {
            (_, Some(id)) => self.open.priority(id),
            (JsonRpcMessage::Notification(notification), None) => match &notification.notification {
                ServerNotification::ProgressNotification(_) => Priority::Data,
                _ => Priority::Control,
            },
            (_, None) => Priority::Control,
        };
        // Queued at once, to keep the order.
        let sending = serde_json::to_vec(&item).map(|line| self.outbox.send(line, priority));
        let open = Arc::clone(&self.open);
        async move {
            let sent = match sending {
                Ok(done) => is_written(done).await,
                Err(error) => Err(error.into()),
            };
            if let Some(id) = answered {
                open.close(&id);
            }
            sent
        }
    }

    /// The next message. Cancel safe.
    async fn receive(&mut self) -> Option<Received> {
        while self.deadline.is_none()
            && let Some(line) = self.lines.next().await
        {
            let length = line.text.as_ref().map_or(0, Vec::len);
            if let Some(message) = self.parse(line)
                && self.admit(&message, length)
            {
                return Some(message);
            }
        }
        self.end().await;
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.outbox.written().await;
        self.outbox.close();
        Ok(())
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.outbox.close();
    }
}
