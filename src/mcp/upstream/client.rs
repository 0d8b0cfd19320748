//! The client of a third party's server.
//!
//! Every step has a timeout. A server that has ended is not started again: later calls report how it ended.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
    Implementation, JsonObject, ListToolsRequest, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
    ServerResult, SubscriptionFilter, Tool,
};
use rmcp::service::{
    ClientLifecycleMode, PeerRequestOptions, RequestHandle, RunningService, ServiceError, Subscription,
    serve_client_with_lifecycle,
};
use rmcp::{ClientHandler, Peer, RoleClient};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::bounds::{LIST_TIMEOUT, MAX_CALLS, MAX_PAGES, MAX_TOOLS, START_TIMEOUT};
use super::wire::{LOCAL_ERROR, Shared, Wire};
use crate::policy::path::escape;
use crate::tools::{Ending, ServedStreams};

/// How long to wait for the exit status of a server that closed its output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long sending a cancellation may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// The most bytes of a server's message that are shown.
const MAX_EXCERPT: usize = 2_000;

/// Why a request to a server failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UpstreamError {
    /// It has ended.
    #[error("the MCP server has ended ({0}); it is not started again")]
    Ended(String),
    /// It closed its output, or speaks something else.
    #[error("the MCP server cannot be spoken with: {0}")]
    Protocol(String),
    /// It did not answer in time.
    #[error("the MCP server did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It answered with an error.
    #[error("the MCP server says: {0}")]
    Reported(String),
    /// It answered with something that cannot be read, or is no answer to what was asked.
    #[error("the MCP server gave no answer that counts: {0}")]
    Malformed(String),
    /// It asks for input, which is never passed on.
    #[error("the MCP server asks for input of its own, which is passed on to nobody; the call was given up")]
    AsksForInput,
    /// The caller cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
}

/// A client without capabilities that a server could use.
#[derive(Debug, Clone, Copy)]
struct NoCapabilities;

impl ClientHandler for NoCapabilities {
    fn get_info(&self) -> ClientConfig {
        let myself = Implementation::new("stockade", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), myself)
    }
}

/// A connection to an initialized server.
pub(super) struct Client {
    service: RunningService<RoleClient, NoCapabilities>,
    /// Kept open for notifications of changed tools.
    _subscription: Option<Subscription>,
    shared: Arc<Shared>,
    ending: Ending,
    under_way: Semaphore,
}

/// The tools that a server says it has.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) tools: Vec<Tool>,
    /// Why the list is incomplete.
    pub(super) cut: Option<String>,
}

/// One call.
#[derive(Debug)]
pub(super) struct ToolCall {
    pub(super) name: String,
    pub(super) arguments: JsonObject,
    pub(super) time: Duration,
}

impl Client {
    /// Connects in the protocol revision of the server.
    pub(super) async fn connect(streams: ServedStreams, ending: Ending) -> Result<Self, UpstreamError> {
        let shared = Arc::new(Shared::default());
        let wire = Wire::new(streams, Arc::clone(&shared));
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        let connected = timeout(
            START_TIMEOUT,
            serve_client_with_lifecycle(NoCapabilities, wire, lifecycle),
        )
        .await;
        let service = match connected {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(disconnected(ending, excerpt(&error.to_string())).await),
            Err(_elapsed) => return Err(UpstreamError::TimedOut(START_TIMEOUT)),
        };
        Ok(Self {
            _subscription: subscribe(service.peer()).await,
            service,
            shared,
            ending,
            under_way: Semaphore::new(MAX_CALLS),
        })
    }

    /// The name and version of the server, escaped.
    pub(super) fn server_name(&self) -> Option<String> {
        let info = self.service.peer().peer_info()?;
        let server = info.server_info.as_ref()?;
        Some(excerpt(&format!("{} {}", server.name, server.version)))
    }

    /// Waits until the server reports changed tools.
    pub(super) async fn changed(&self) {
        self.shared.changed.notified().await;
    }

    /// Waits until the connection is closed.
    pub(super) async fn closed(&self) {
        self.shared.closed.notified().await;
    }

    /// Lists the tools.
    pub(super) async fn tools(&self) -> Result<Listed, UpstreamError> {
        match timeout(LIST_TIMEOUT, self.pages()).await {
            Ok(listed) => listed,
            Err(_elapsed) => Err(UpstreamError::TimedOut(LIST_TIMEOUT)),
        }
    }

    async fn pages(&self) -> Result<Listed, UpstreamError> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
            let answer = self.service.peer().send_request(request).await;
            let ServerResult::ListToolsResult(page) = self.result_of(answer).await? else {
                return Err(unexpected_result());
            };
            tools.extend(page.tools);
            if tools.len() > MAX_TOOLS {
                let cut = format!("it has more than {MAX_TOOLS} tools; the rest is left out");
                tools.truncate(MAX_TOOLS);
                return Ok(Listed { tools, cut: Some(cut) });
            }
            match page.next_cursor {
                None => return Ok(Listed { tools, cut: None }),
                next if next == cursor => {
                    let cut = "its list of tools leads back to where it was; the rest is left out".to_owned();
                    return Ok(Listed { tools, cut: Some(cut) });
                }
                next => cursor = next,
            }
        }
        let cut = format!("its list of tools has more than {MAX_PAGES} pages; the rest is left out");
        Ok(Listed { tools, cut: Some(cut) })
    }

    /// Calls a tool; its progress goes to `progress`.
    pub(super) async fn call(
        &self,
        call: ToolCall,
        cancelled: impl Future<Output = ()>,
        progress: impl Fn(&ProgressNotificationParam),
    ) -> Result<CallToolResult, UpstreamError> {
        let ToolCall { name, arguments, time } = call;
        let mut cancelled = std::pin::pin!(cancelled);
        let mut deadline = std::pin::pin!(tokio::time::sleep_until(Instant::now() + time));
        let params = CallToolRequestParams::new(name).with_arguments(arguments);
        let connected = async {
            let permit = self
                .under_way
                .acquire()
                .await
                .map_err(|_closed| ServiceError::TransportClosed)?;
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            let options = PeerRequestOptions::no_options();
            Ok((
                permit,
                self.service.peer().send_cancellable_request(request, options).await?,
            ))
        };
        let (_permit, mut handle) = tokio::select! {
            connected = connected => match connected {
                Ok(connected) => connected,
                Err(error) => return Err(self.failed(error).await),
            },
            () = &mut cancelled => return Err(UpstreamError::Cancelled),
            () = &mut deadline => return Err(UpstreamError::TimedOut(time)),
        };
        let (_subscription, mut updates) = self.shared.subscribe_progress(handle.progress_token.clone());
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break answer.unwrap_or(Err(ServiceError::TransportClosed)),
                () = &mut cancelled => {
                    self.abandon(handle, "the call was cancelled");
                    return Err(UpstreamError::Cancelled);
                }
                () = &mut deadline => {
                    self.abandon(handle, "the time of the call is over");
                    return Err(UpstreamError::TimedOut(time));
                }
                Some(step) = updates.recv() => progress(&step),
            }
        };
        match self.result_of(answer).await? {
            ServerResult::CallToolResult(result) => Ok(result),
            ServerResult::InputRequiredResult(_) => Err(UpstreamError::AsksForInput),
            _ => Err(unexpected_result()),
        }
    }

    /// Cancels a request.
    fn abandon(&self, handle: RequestHandle<RoleClient>, why: &'static str) {
        self.shared.forget(&handle.id);
        tokio::spawn(async move {
            // The server may not read it.
            let _unread_cancel = timeout(CANCEL_TIMEOUT, handle.cancel(Some(why.to_owned()))).await;
        });
    }

    async fn result_of(&self, answer: Result<ServerResult, ServiceError>) -> Result<ServerResult, UpstreamError> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.failed(error).await),
        }
    }

    async fn failed(&self, error: ServiceError) -> UpstreamError {
        match error {
            ServiceError::McpError(text) if text.code == LOCAL_ERROR => {
                UpstreamError::Malformed(excerpt(&text.message))
            }
            ServiceError::McpError(text) => UpstreamError::Reported(excerpt(&text.message)),
            ServiceError::UnexpectedResponse => unexpected_result(),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                disconnected(self.ending.clone(), "it closed its output".to_owned()).await
            }
            other => UpstreamError::Protocol(excerpt(&other.to_string())),
        }
    }

    /// Closes the connection and the input of the server.
    pub(super) fn end(&self) {
        self.service.cancellation_token().cancel();
        // Waiting callers fail.
        self.under_way.close();
    }
}

/// Subscribes to changes of the tools, with a server of a newer revision. Older ones report them unasked.
async fn subscribe(peer: &Peer<RoleClient>) -> Option<Subscription> {
    let info = peer.peer_info()?;
    let tells = info.capabilities.tools.as_ref()?.list_changed == Some(true);
    if !tells || info.protocol_version.has_initialize() {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    timeout(CANCEL_TIMEOUT, peer.listen(filter)).await.ok()?.ok()
}

fn unexpected_result() -> UpstreamError {
    UpstreamError::Malformed("it is none to what was asked".to_owned())
}

/// The error for a closed connection: how the server ended, if that is known.
async fn disconnected(mut ending: Ending, why: String) -> UpstreamError {
    match timeout(EXIT_TIMEOUT, ending.wait()).await {
        Ok(Some(end)) => UpstreamError::Ended(end.message()),
        Ok(None) | Err(_) => UpstreamError::Protocol(why),
    }
}

/// The beginning of a server's text, escaped.
pub(super) fn excerpt(text: &str) -> String {
    if text.len() <= MAX_EXCERPT {
        return escape(text.as_bytes());
    }
    let cut = text.floor_char_boundary(MAX_EXCERPT);
    format!("{}…", escape(&text.as_bytes()[..cut]))
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
