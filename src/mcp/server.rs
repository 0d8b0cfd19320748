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

use super::asking::{self, Answering, Brought, Client};
use super::head::BUSY;
use super::http::sessions::Ending;
use super::state::{self, States, Unopened};
use super::voice::Voice;
use super::{describe, form, params};
use crate::approval::Asked;
use crate::tools::serving::{ApproverChain, ServeError};
use crate::tools::{ApprovalContext, CallRequest, Output, Progress, ProvidedCall, Provider, ToolError};

/// The most calls that are under way or wait for their turn. Whoever calls beyond that is told to wait.
pub(super) const MOST_CALLS: usize = 4_096;
/// The name of the question in a result that asks for an answer.
const QUESTION: &str = "approval";
/// How often a client that wants to know hears of a call that takes long.
const BEAT: Duration = Duration::from_secs(1);

/// Answers the requests of any number of clients.
#[derive(Clone)]
pub(super) struct Server(Arc<Inner>);

struct Inner {
    provider: Arc<dyn Provider>,
    /// As they were listed last.
    tools: RwLock<Listed>,
    asking: ApproverChain,
    states: States,
    calls: Semaphore,
    voice: Arc<Voice>,
    /// Cancelled when the server ends: every call is then stopped at once.
    ending: CancellationToken,
}

/// Tools in the words of the protocol.
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
        voice: Arc<Voice>,
        ending: CancellationToken,
    ) -> Result<Self, ServeError> {
        let tools = RwLock::new(Listed::of(&*provider));
        let states = States::new(asking.patience)?;
        Ok(Self(Arc::new(Inner {
            provider,
            tools,
            asking,
            states,
            calls: Semaphore::new(MOST_CALLS),
            voice,
            ending,
        })))
    }

    /// The tools as they are now.
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
                    "busy: {MOST_CALLS} calls are under way or wait, and nothing of this one was done; call again when some have ended"
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
        let brought = match self.brought(&binding, params.request_state, params.input_responses)? {
            Ok(brought) => brought,
            Err(why) => return Ok(describe::result(Err(why)).into()),
        };
        let client = Client::of(context);
        let Answering {
            approver,
            withdraw,
            another,
            questions,
            returned,
        } = asking::answering(&self.0.asking, &self.0.voice, client, brought);
        let cancelled = self.0.ending.child_token();
        let step = Arc::new(Mutex::new(None));
        let work = self.0.provider.call(ProvidedCall {
            context: ApprovalContext {
                request: Some(told_by(context)),
                ..ApprovalContext::new(name, arguments)
            },
            approver,
            withdraw,
            extra_approver: another,
            cancelled: cancelled.clone(),
            progress: Some(latest(&step)),
        });
        let done: Result<Output, ToolError> = tokio::select! {
            done = work => done,
            () = asking::pass_on(questions, context, self.0.asking.patience, &cancelled) => Err(ToolError::Pending),
            () = relay(context, &cancelled) => Err(ToolError::Pending),
            () = beat(context, &step) => Err(ToolError::Pending),
        };
        let asked = returned.lock().ok().and_then(|mut returned| returned.take());
        match (done, asked) {
            (Err(ToolError::Pending), Some(asked)) => self.hand_back(&binding, &asked),
            (done, _) => Ok(describe::result(done).into()),
        }
    }

    /// Gives a call back with the question that it asks.
    fn hand_back(&self, binding: &[u8], asked: &Asked) -> Result<CallToolResponse, ErrorData> {
        let failed = |error: &dyn fmt::Display| {
            ErrorData::internal_error(format!("the question cannot be asked: {error}"), None)
        };
        let form = match form::ask(asked) {
            Ok(form) => form,
            Err(error) => {
                let denied = ToolError::Denied(format!("permission denied: {error}"));
                return Ok(describe::result(Err(denied)).into());
            }
        };
        let sealed = self
            .0
            .states
            .seal(binding, &asked.fingerprint)
            .map_err(|error| failed(&error))?;
        let question = InputRequest::Elicitation(ElicitRequest::new(form));
        let questions = InputRequests::from([(QUESTION.to_owned(), question)]);
        Ok(InputRequiredResult::new(Some(questions), Some(sealed)).into())
    }

    /// The answer that came with a call, if one did. What comes without the state of its question answers none: the call is
    /// asked about anew. A state that is none of this call is an error of the client's, and no answer that a person gave.
    fn brought(
        &self,
        binding: &[u8],
        sealed: Option<String>,
        responses: Option<InputResponses>,
    ) -> Result<Result<Option<Brought>, ToolError>, ErrorData> {
        let Some(sealed) = sealed else {
            return Ok(Ok(None));
        };
        let answer = responses.and_then(|mut responses| responses.remove(QUESTION));
        let fingerprint = match &answer {
            Some(_) => self.0.states.open_once(binding, &sealed).map(Some),
            None => self.0.states.check(binding, &sealed).map(|()| None),
        };
        let denied = |why: &str| Ok(Err(ToolError::Denied(format!("permission denied: {why}"))));
        match (fingerprint, answer) {
            (Err(Unopened::Forged), _) => Err(ErrorData::invalid_params(
                "`requestState` was not made for this call, or was changed; send it back as it came, with the same tool and arguments",
                None,
            )),
            (Err(Unopened::Over), Some(_)) => denied(
                "the answer belongs to no open question of this call (it came too late, or came before); call again without \
                 it to be asked anew",
            ),
            (Ok(Some(fingerprint)), Some(answer)) => match serde_json::from_value(answer) {
                Ok(answer) => Ok(Ok(Some(Brought { fingerprint, answer }))),
                Err(_) => denied("the answer was not understood"),
            },
            (Ok(_) | Err(Unopened::Over), None) | (Ok(None), Some(_)) => Ok(Ok(None)),
        }
    }
}

/// The request that a call came with, for the audit log.
fn told_by(context: &RequestContext<RoleServer>) -> CallRequest {
    let parts = context.extensions.get::<http::request::Parts>();
    let session = parts.and_then(|parts| parts.headers.get(super::http::gate::SESSION));
    CallRequest {
        method: CallToolRequestMethod::VALUE,
        session: session.and_then(|session| session.to_str().ok().map(str::to_owned)),
        id: context.id.to_string(),
    }
}

/// Has a call stopped that its client gave up, alone or with its session; never ends.
async fn relay(context: &RequestContext<RoleServer>, cancelled: &CancellationToken) {
    let parts = context.extensions.get::<http::request::Parts>();
    let session = parts.and_then(|parts| parts.extensions.get::<Ending>());
    let ended = async {
        match session {
            Some(Ending(session)) => session.cancelled().await,
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

/// What was said last of how far a call has come.
type Step = Mutex<Option<String>>;

/// Keeps what is said of how far a call has come.
fn latest(step: &Arc<Step>) -> Progress {
    let step = Arc::clone(step);
    Arc::new(move |said| *step.lock().unwrap_or_else(PoisonError::into_inner) = Some(said))
}

/// Tells a client that wants to know that its call is still under way, and how far it has come; never ends.
async fn beat(context: &RequestContext<RoleServer>, step: &Step) {
    let Some(token) = context.meta.get_progress_token() else {
        return std::future::pending().await;
    };
    let started = Instant::now();
    loop {
        tokio::time::sleep(BEAT).await;
        let seconds = u32::try_from(started.elapsed().as_secs()).unwrap_or(u32::MAX);
        let mut told = ProgressNotificationParam::new(token.clone(), f64::from(seconds));
        let said = step.lock().unwrap_or_else(PoisonError::into_inner).take();
        told.message = Some(said.unwrap_or_else(|| format!("under way for {seconds} s")));
        // A client that is gone ends the call by itself.
        let _told = context.peer.notify_progress(told).await;
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

    // There is none of this, and none is declared. rmcp would answer with empty lists.

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

    /// What rmcp does not know, or could not read.
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
