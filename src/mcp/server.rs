//! Requests → calls of tools.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, ConstString as _, CustomRequest, CustomResult, ElicitRequest, ErrorCode, ErrorData, Implementation,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::approver::{self, CallApprover, ElicitationMode, ReturnedAnswer};
use super::head::BUSY;
use super::http::sessions::SessionEnd;
use super::notices::Notices;
use super::state::{self, StateError, States};
use super::{describe, form, params};
use crate::approval::RequestMessage;
use crate::tools::serving::{ApproverChain, ServeError};
use crate::tools::{ApprovalContext, CallRequest, Output, Progress, ProvidedCall, Provider, ToolError};

/// The most calls that are under way or wait; others are refused as busy.
pub(super) const MAX_CALLS: usize = 4_096;
/// The name of the question in a result that asks for an answer.
const QUESTION: &str = "approval";
/// How often progress is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Answers the requests of any number of clients.
#[derive(Clone)]
pub(super) struct Server(Arc<Inner>);

struct Inner {
    provider: Arc<dyn Provider>,
    /// The tools as last listed.
    tools: RwLock<Listed>,
    asking: ApproverChain,
    states: States,
    calls: Semaphore,
    notices: Arc<Notices>,
    /// Cancelled when the server ends; it stops every call.
    shutdown: CancellationToken,
}

/// Tools in the form of the protocol, and their revision.
#[derive(Clone)]
struct Listed {
    revision: u64,
    tools: Arc<Vec<Tool>>,
}

impl Listed {
    fn of(provider: &dyn Provider) -> Self {
        Self {
            revision: provider.revision(),
            tools: Arc::new(provider.list().into_iter().map(describe::tool).collect()),
        }
    }
}

impl Server {
    /// A server with these tools.
    pub(super) fn new(
        provider: Arc<dyn Provider>,
        asking: ApproverChain,
        notices: Arc<Notices>,
        shutdown: CancellationToken,
    ) -> Result<Self, ServeError> {
        let tools = RwLock::new(Listed::of(&*provider));
        let states = States::new(asking.patience)?;
        Ok(Self(Arc::new(Inner {
            provider,
            tools,
            asking,
            states,
            calls: Semaphore::new(MAX_CALLS),
            notices,
            shutdown,
        })))
    }

    /// The current tools.
    fn tools(&self) -> Arc<Vec<Tool>> {
        let Inner { provider, tools, .. } = &*self.0;
        let listed = tools.read().unwrap_or_else(PoisonError::into_inner).clone();
        if listed.revision == provider.revision() {
            return listed.tools;
        }
        let listed = Listed::of(&**provider);
        tools
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(&listed);
        listed.tools
    }

    async fn call(
        &self,
        params: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ok(_room) = self.0.calls.try_acquire() else {
            return Err(ErrorData::new(
                ErrorCode(BUSY),
                format!(
                    "busy: {MAX_CALLS} calls are under way or wait, and nothing of this one was done; call again when some have ended"
                ),
                Some(json!({"retry": true})),
            ));
        };
        let name = params.name.into_owned();
        if !self.tools().iter().any(|tool| tool.name == name) {
            return Err(ErrorData::invalid_params(
                format!(
                    "no tool `{}`; tools/list names those that the config allows",
                    crate::policy::path::escape(name.as_bytes())
                ),
                None,
            ));
        }
        let arguments = Value::Object(params.arguments.unwrap_or_default());
        let binding = state::binding(&name, &arguments);
        let returned_answer = match self.returned_answer(&binding, params.request_state, params.input_responses)? {
            Ok(returned_answer) => returned_answer,
            Err(why) => return Ok(describe::result(Err(why)).into()),
        };
        let client = ElicitationMode::of(context);
        let CallApprover {
            approver,
            withdraw,
            another,
            questions,
            question_to_return,
        } = approver::call_approver(&self.0.asking, &self.0.notices, client, returned_answer);
        let cancelled = self.0.shutdown.child_token();
        let progress_text = Arc::new(Mutex::new(None));
        let work = self.0.provider.call(ProvidedCall {
            context: ApprovalContext {
                request: Some(call_request(context)),
                ..ApprovalContext::new(name, arguments)
            },
            approver,
            withdraw,
            extra_approver: another,
            cancelled: cancelled.clone(),
            progress: Some(progress_sink(&progress_text)),
        });
        let done: Result<Output, ToolError> = tokio::select! {
            done = work => done,
            () = approver::forward_questions(questions, context, self.0.asking.patience, &cancelled) => Err(ToolError::Pending),
            () = relay_cancellation(context, &cancelled) => Err(ToolError::Pending),
            () = report_progress(context, &progress_text) => Err(ToolError::Pending),
        };
        let question = question_to_return
            .lock()
            .ok()
            .and_then(|mut question_to_return| question_to_return.take());
        match (done, question) {
            (Err(ToolError::Pending), Some(question)) => self.return_question(&binding, &question),
            (done, _) => Ok(describe::result(done).into()),
        }
    }

    /// Returns a call with its question.
    fn return_question(&self, binding: &[u8], question: &RequestMessage) -> Result<CallToolResponse, ErrorData> {
        let failed = |error: &dyn fmt::Display| {
            ErrorData::internal_error(format!("the question cannot be asked: {error}"), None)
        };
        let form = match form::elicitation(question) {
            Ok(form) => form,
            Err(error) => {
                let denied = ToolError::Denied(format!("permission denied: {error}"));
                return Ok(describe::result(Err(denied)).into());
            }
        };
        let sealed = self
            .0
            .states
            .seal(binding, &question.fingerprint)
            .map_err(|error| failed(&error))?;
        let elicitation = InputRequest::Elicitation(ElicitRequest::new(form));
        let questions = InputRequests::from([(QUESTION.to_owned(), elicitation)]);
        Ok(InputRequiredResult::new(Some(questions), Some(sealed)).into())
    }

    /// The answer that came with a call, if one did. Without a state there is none, and the question is asked again. A state of another
    /// call is an error of the client, not an answer.
    fn returned_answer(
        &self,
        binding: &[u8],
        sealed: Option<String>,
        responses: Option<InputResponses>,
    ) -> Result<Result<Option<ReturnedAnswer>, ToolError>, ErrorData> {
        let Some(sealed) = sealed else {
            return Ok(Ok(None));
        };
        let answer = responses.and_then(|mut responses| responses.remove(QUESTION));
        let fingerprint = match &answer {
            Some(_) => self.0.states.open_once(binding, &sealed).map(Some),
            None => self.0.states.verify(binding, &sealed).map(|()| None),
        };
        let denied = |why: &str| Ok(Err(ToolError::Denied(format!("permission denied: {why}"))));
        match (fingerprint, answer) {
            (Err(StateError::Forged), _) => Err(ErrorData::invalid_params(
                "`requestState` was not made for this call, or was changed; send it back as it came, with the same tool and arguments",
                None,
            )),
            (Err(StateError::Expired), Some(_)) => denied(
                "the answer belongs to no open question of this call (it came too late, or came before); call again without \
                 it to be asked anew",
            ),
            (Ok(Some(fingerprint)), Some(answer)) => match serde_json::from_value(answer) {
                Ok(answer) => Ok(Ok(Some(ReturnedAnswer { fingerprint, answer }))),
                Err(_) => denied("the answer was not understood"),
            },
            (Ok(_) | Err(StateError::Expired), None) | (Ok(None), Some(_)) => Ok(Ok(None)),
        }
    }
}

/// The request that a call came with, for the audit log.
fn call_request(context: &RequestContext<RoleServer>) -> CallRequest {
    let parts = context.extensions.get::<http::request::Parts>();
    let session = parts.and_then(|parts| parts.headers.get(super::http::gate::SESSION));
    CallRequest {
        method: CallToolRequestMethod::VALUE,
        session: session.and_then(|session| session.to_str().ok().map(str::to_owned)),
        id: context.id.to_string(),
    }
}

/// Cancels the call when the client cancels it or ends its session; never ends.
async fn relay_cancellation(context: &RequestContext<RoleServer>, cancelled: &CancellationToken) {
    let parts = context.extensions.get::<http::request::Parts>();
    let session = parts.and_then(|parts| parts.extensions.get::<SessionEnd>());
    let ended = async {
        match session {
            Some(SessionEnd(session)) => session.cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = ended => {}
    }
    cancelled.cancel();
    std::future::pending::<()>().await;
}

/// The latest progress text of a call.
type ProgressText = Mutex<Option<String>>;

/// Stores the latest progress text.
fn progress_sink(progress_text: &Arc<ProgressText>) -> Progress {
    let progress_text = Arc::clone(progress_text);
    Arc::new(move |message| *progress_text.lock().unwrap_or_else(PoisonError::into_inner) = Some(message))
}

/// Reports progress to a client that asked for it; never ends.
async fn report_progress(context: &RequestContext<RoleServer>, progress_text: &ProgressText) {
    let Some(token) = context.meta.get_progress_token() else {
        return std::future::pending().await;
    };
    let started = Instant::now();
    loop {
        tokio::time::sleep(PROGRESS_INTERVAL).await;
        let seconds = u32::try_from(started.elapsed().as_secs()).unwrap_or(u32::MAX);
        let mut notification = ProgressNotificationParam::new(token.clone(), f64::from(seconds));
        let message = progress_text.lock().unwrap_or_else(PoisonError::into_inner).take();
        notification.message = Some(message.unwrap_or_else(|| format!("under way for {seconds} s")));
        // A client that disconnects cancels the call.
        let _sent = context.peer.notify_progress(notification).await;
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("stockade", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.0.provider.instructions())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            let why = "Invalid params: `params.cursor` is of no list; all tools are on one page, so ask without it";
            return Err(ErrorData::invalid_params(why, None));
        }
        Ok(ListToolsResult::with_all_items(self.tools().to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, &context).await
    }

    // Not supported, and not declared. rmcp would answer with empty lists.

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    /// A method that rmcp does not know, or parameters that it could not parse.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if params::is_served(&method) {
            let why = format!("Invalid params: the parameters of `{method}` cannot be read");
            return Err(ErrorData::invalid_params(why, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}
