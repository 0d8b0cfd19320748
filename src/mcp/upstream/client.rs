//! One conversation with a server: how it begins, what it is asked, how it ends.
//!
//! Every step has a bound in time. A server that has ended is not started again: whatever is asked of it from
//! then on says how it ended.

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

use super::bounds::{LISTING, MOST_CALLS, MOST_PAGES, MOST_TOOLS, START};
use super::wire::{OURS, Shared, Wire};
use crate::policy::path::escape;
use crate::tools::{Ending, ServedStreams};

/// How long a server that closed its output may take to end, before its end is reported without saying how.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long it may take to hear that a call is cancelled.
const CANCELLING: Duration = Duration::from_secs(5);

/// What a person or an agent is shown of a server's own words about a failure.
const MOST_SAID: usize = 2_000;

/// Why a server gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UpstreamError {
    /// It has ended.
    #[error("the MCP server has ended ({0}); it is not started again")]
    Ended(String),
    /// It closed its output, or speaks something else.
    #[error("the MCP server cannot be spoken with: {0}")]
    Unspoken(String),
    /// It did not answer in time.
    #[error("the MCP server did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// It answered with an error.
    #[error("the MCP server says: {0}")]
    Said(String),
    /// It answered with something that cannot be read, or is no answer to what was asked.
    #[error("the MCP server gave no answer that counts: {0}")]
    Malformed(String),
    /// It wants somebody's input before it goes on, and that reaches nobody.
    #[error("the MCP server asks for input of its own, which is passed on to nobody; the call was given up")]
    AsksForInput,
    /// Whoever called wants no answer any more.
    #[error("the call was cancelled")]
    Cancelled,
}

/// What Stockade says of itself. It offers nothing that a server could ask for.
#[derive(Debug, Clone, Copy)]
struct Nobody;

impl ClientHandler for Nobody {
    fn get_info(&self) -> ClientConfig {
        let myself = Implementation::new("stockade", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), myself)
    }
}

/// A server that has said what it is.
pub(super) struct Client {
    service: RunningService<RoleClient, Nobody>,
    /// Kept open, so that the server goes on telling when its tools change.
    _subscription: Option<Subscription>,
    shared: Arc<Shared>,
    ending: Ending,
    under_way: Semaphore,
}

/// The tools that a server says it has.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) tools: Vec<Tool>,
    /// Why these are not all.
    pub(super) cut: Option<String>,
}

/// One call.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) arguments: JsonObject,
    pub(super) time: Duration,
}

impl Client {
    /// Begins the conversation, in whichever revision of the protocol the server speaks.
    pub(super) async fn begin(streams: ServedStreams, ending: Ending) -> Result<Self, UpstreamError> {
        let shared = Arc::new(Shared::default());
        let wire = Wire::new(streams, Arc::clone(&shared));
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        let begun = timeout(START, serve_client_with_lifecycle(Nobody, wire, lifecycle)).await;
        let service = match begun {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(lost(ending, shown(&error.to_string())).await),
            Err(_elapsed) => return Err(UpstreamError::Silent(START)),
        };
        Ok(Self {
            _subscription: subscribed(service.peer()).await,
            service,
            shared,
            ending,
            under_way: Semaphore::new(MOST_CALLS),
        })
    }

    /// What the server calls itself, escaped.
    pub(super) fn calls_itself(&self) -> Option<String> {
        let info = self.service.peer().peer_info()?;
        let server = info.server_info.as_ref()?;
        Some(shown(&format!("{} {}", server.name, server.version)))
    }

    /// Waits until the server says that its tools are others now.
    pub(super) async fn changed(&self) {
        self.shared.changed.notified().await;
    }

    /// Waits until there is no connection any more.
    pub(super) async fn gone(&self) {
        self.shared.gone.notified().await;
    }

    /// The tools it has now.
    pub(super) async fn tools(&self) -> Result<Listed, UpstreamError> {
        match timeout(LISTING, self.pages()).await {
            Ok(listed) => listed,
            Err(_elapsed) => Err(UpstreamError::Silent(LISTING)),
        }
    }

    async fn pages(&self) -> Result<Listed, UpstreamError> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
            let answer = self.service.peer().send_request(request).await;
            let ServerResult::ListToolsResult(page) = self.understood(answer).await? else {
                return Err(another());
            };
            tools.extend(page.tools);
            if tools.len() > MOST_TOOLS {
                let cut = format!("it has more than {MOST_TOOLS} tools; the rest is left out");
                tools.truncate(MOST_TOOLS);
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
        let cut = format!("its list of tools has more than {MOST_PAGES} pages; the rest is left out");
        Ok(Listed { tools, cut: Some(cut) })
    }

    /// Calls a tool. Whatever it says of its progress goes to `progress`.
    pub(super) async fn call(
        &self,
        asked: Asked,
        cancelled: impl Future<Output = ()>,
        progress: impl Fn(&ProgressNotificationParam),
    ) -> Result<CallToolResult, UpstreamError> {
        let Asked { name, arguments, time } = asked;
        let mut cancelled = std::pin::pin!(cancelled);
        let mut over = std::pin::pin!(tokio::time::sleep_until(Instant::now() + time));
        let params = CallToolRequestParams::new(name).with_arguments(arguments);
        let begun = async {
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
            begun = begun => match begun {
                Ok(begun) => begun,
                Err(error) => return Err(self.failed(error).await),
            },
            () = &mut cancelled => return Err(UpstreamError::Cancelled),
            () = &mut over => return Err(UpstreamError::Silent(time)),
        };
        let (_listening, mut told) = self.shared.listen(handle.progress_token.clone());
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break answer.unwrap_or(Err(ServiceError::TransportClosed)),
                () = &mut cancelled => {
                    self.give_up(handle, "the call was cancelled");
                    return Err(UpstreamError::Cancelled);
                }
                () = &mut over => {
                    self.give_up(handle, "the time of the call is over");
                    return Err(UpstreamError::Silent(time));
                }
                Some(step) = told.recv() => progress(&step),
            }
        };
        match self.understood(answer).await? {
            ServerResult::CallToolResult(result) => Ok(result),
            ServerResult::InputRequiredResult(_) => Err(UpstreamError::AsksForInput),
            _ => Err(another()),
        }
    }

    /// Tells the server that nobody waits for this answer any more.
    fn give_up(&self, handle: RequestHandle<RoleClient>, why: &'static str) {
        self.shared.forget(&handle.id);
        tokio::spawn(async move {
            // A server that reads nothing hears nothing.
            let _unheard = timeout(CANCELLING, handle.cancel(Some(why.to_owned()))).await;
        });
    }

    async fn understood(&self, answer: Result<ServerResult, ServiceError>) -> Result<ServerResult, UpstreamError> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.failed(error).await),
        }
    }

    async fn failed(&self, error: ServiceError) -> UpstreamError {
        match error {
            ServiceError::McpError(said) if said.code == OURS => UpstreamError::Malformed(shown(&said.message)),
            ServiceError::McpError(said) => UpstreamError::Said(shown(&said.message)),
            ServiceError::UnexpectedResponse => another(),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                lost(self.ending.clone(), "it closed its output".to_owned()).await
            }
            other => UpstreamError::Unspoken(shown(&other.to_string())),
        }
    }

    /// Ends the conversation: the server's input is closed.
    pub(super) fn end(&self) {
        self.service.cancellation_token().cancel();
        // Whoever still calls hears that it has ended.
        self.under_way.close();
    }
}

/// Has a server of the newer kind tell when its tools change. Others do so unasked.
async fn subscribed(peer: &Peer<RoleClient>) -> Option<Subscription> {
    let info = peer.peer_info()?;
    let tells = info.capabilities.tools.as_ref()?.list_changed == Some(true);
    if !tells || info.protocol_version.has_initialize() {
        return None;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    // Who does not take it is asked for its list where it is listed anyway.
    timeout(CANCELLING, peer.listen(filter)).await.ok()?.ok()
}

fn another() -> UpstreamError {
    UpstreamError::Malformed("it is none to what was asked".to_owned())
}

/// Why a server that went silent did so.
async fn lost(mut ending: Ending, why: String) -> UpstreamError {
    match timeout(LAST_WORDS, ending.wait()).await {
        Ok(Some(end)) => UpstreamError::Ended(end.message()),
        Ok(None) | Err(_) => UpstreamError::Unspoken(why),
    }
}

/// What the server says, for people: escaped, and not all of a long text.
pub(super) fn shown(said: &str) -> String {
    if said.len() <= MOST_SAID {
        return escape(said.as_bytes());
    }
    let cut = said.floor_char_boundary(MOST_SAID);
    format!("{}…", escape(&said.as_bytes()[..cut]))
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
