//! Standard input and output as the transport.
//!
//! What comes is always read on, whatever is under way: a cancellation, a ping, an answer to a question and the end wait behind
//! nothing. What there is no room for is answered at once, and so is what is no message. [`lines`] reads, [`open`] knows what is
//! not answered yet, [`outbox`] writes.

mod lines;
mod open;
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

use super::head::{self, BUSY, Kind, NO_MESSAGE, refusal};
use super::params::{self, WRONG_PARAMS};
use super::streams::{self, Input};
use lines::{Beyond, Heard, Lines};
use open::{Begins, MOST_BYTES, MOST_CALLS, Open};
use outbox::{Outbox, Rank, is_written};

type Received = RxJsonRpcMessage<RoleServer>;
type Sent = TxJsonRpcMessage<RoleServer>;

/// The transport over the process's own streams.
pub(super) struct Stdio {
    lines: Lines<Input>,
    outbox: Arc<Outbox>,
    begun: Begun,
    open: Arc<Open>,
    /// When the client closed its end, and a moment.
    over: Option<Instant>,
    /// Cancelled then.
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
    /// Over the streams that the client holds the other ends of. Needs a running runtime.
    pub(super) fn new(gone: CancellationToken) -> Self {
        Self {
            lines: Lines::new(streams::input()),
            outbox: Outbox::to(streams::output()),
            begun: Begun::NotYet,
            open: Arc::default(),
            over: None,
            gone,
        }
    }

    /// The message that a line is; what is none is answered here, if it can be.
    fn understood(&self, heard: Heard) -> Option<Received> {
        let Heard { head, text } = heard;
        let kind = head.kind();
        let bound = |why: &'static str| (NO_MESSAGE, Cow::Borrowed(why));
        let (code, why) = match text {
            Ok(text) => {
                let read: Result<Received, _> = serde_json::from_slice(&text);
                // Of most requests rmcp has read the parameters; the others are looked at.
                let is_read = read.as_ref().is_ok_and(|message| !may_be_wrong(message));
                let is_named = matches!(kind, Kind::Request(Some(_)));
                let wrong = (is_named && !is_read).then(|| params::wrong(&text)).flatten();
                match (read, wrong) {
                    (_, Some(why)) => (WRONG_PARAMS, Cow::Owned(why)),
                    (Ok(message), None) => return Some(message),
                    (Err(_), None) => {
                        let (code, why) = head::fault(&text, &kind);
                        (code, Cow::Borrowed(why))
                    }
                }
            }
            Err(Beyond::Bytes) => bound("Invalid Request: the message is longer than 16 MiB"),
            Err(Beyond::Values) => bound("Invalid Request: the message has more than 200000 values"),
        };
        match &kind {
            // Nobody answers what is no question. One that is not known may be of a later revision.
            Kind::Notification | Kind::Answer(None) if code == NO_MESSAGE => None,
            // Whoever waits for the answer hears that it was none.
            Kind::Answer(Some(id)) if code == NO_MESSAGE => {
                let id: RequestId = serde_json::from_str(id).ok()?;
                let error = ErrorData::new(ErrorCode(code), "the answer was not understood", None);
                Some(JsonRpcMessage::error(error, Some(id)))
            }
            Kind::Request(_) | Kind::Notification | Kind::Answer(_) | Kind::Neither => {
                self.outbox.refuse(refusal(head::answered(&kind, code), code, &why));
                None
            }
        }
    }

    /// Whether a message of that length in bytes is handed on.
    fn admit(&mut self, message: &Received, length: usize) -> Admit {
        match (message, self.begun) {
            (JsonRpcMessage::Request(request), _) => {
                self.begun = Begun::Yes;
                let rank = match &request.request {
                    ClientRequest::CallToolRequest(_) => Rank::Data,
                    _ => Rank::Control,
                };
                match self.open.begin(&request.id, rank, length) {
                    Begins::Yes => return Admit::Yes,
                    // Not in the name of the other, whose answer is still to come.
                    Begins::Twice => self.refuse(None, NO_MESSAGE, "Invalid Request: there was a request with this id"),
                    Begins::Busy => {
                        let why = format!(
                            "busy: {MOST_CALLS} calls or {} MiB of them are not answered yet, and nothing of this one was done; call again when some are",
                            MOST_BYTES >> 20
                        );
                        self.refuse(serde_json::to_string(&request.id).ok().as_deref(), BUSY, &why);
                    }
                }
                Admit::No
            }
            (JsonRpcMessage::Notification(notification), Begun::Yes) => {
                // What is cancelled is not answered.
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.give_up(id);
                }
                Admit::Yes
            }
            (_, Begun::Yes) => Admit::Yes,
            (_, Begun::NotYet) => Admit::No,
        }
    }

    fn refuse(&self, id: Option<&str>, code: i32, why: &str) {
        self.outbox.refuse(refusal(id, code, why));
    }

    /// The client has closed its end: everything is about to end, and what was answered already is still written.
    async fn end(&mut self) {
        let over = *self.over.get_or_insert_with(|| {
            let gone = self.gone.clone();
            tokio::spawn(async move {
                tokio::time::sleep(GRACE).await;
                gone.cancel();
            });
            Instant::now() + GRACE
        });
        let _unread = timeout_at(over, self.outbox.written()).await;
    }
}

/// Whether it is a request whose parameters rmcp could not read: it takes it for another, or for one without any.
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

/// Whether a message is handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admit {
    Yes,
    No,
}

impl Transport<RoleServer> for Stdio {
    type Error = std::io::Error;

    fn send(&mut self, item: Sent) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let rank = match (&item, &answered) {
            (_, Some(id)) => self.open.rank(id),
            (JsonRpcMessage::Notification(notification), None) => match &notification.notification {
                ServerNotification::ProgressNotification(_) => Rank::Data,
                _ => Rank::Control,
            },
            (_, None) => Rank::Control,
        };
        // Put in line at once: what is sent first is first.
        let sending = serde_json::to_vec(&item).map(|line| self.outbox.send(line, rank));
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

    /// The next message. Loses nothing when dropped before it is done.
    async fn receive(&mut self) -> Option<Received> {
        while self.over.is_none()
            && let Some(heard) = self.lines.next().await
        {
            let length = heard.text.as_ref().map_or(0, Vec::len);
            if let Some(message) = self.understood(heard)
                && self.admit(&message, length) == Admit::Yes
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
