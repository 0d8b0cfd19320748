//! Checks each request before rmcp sees it.

use std::sync::Arc;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use http::{Extensions, Method, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::body::{self, BodyError};
use super::bounds::Bounds;
use super::load::{Load, Pressure, Rejected};
use super::message::{InvalidMessage, Message};
use super::permits::Permits;
use super::reply::{Reply, closing, empty, retry_later, rpc_error, text_reply, unauthorized};
use super::sessions::Sessions;
use super::settings::HttpSettings;
use super::token::HttpToken;
use super::{health, origin};
use crate::mcp::head::{self, Head, INVALID_REQUEST, Kind};
use crate::mcp::params::{self, INVALID_PARAMS};

/// The header that names a session of the older revisions.
pub(in crate::mcp) const SESSION: &str = "mcp-session-id";

/// The first revision without sessions; revisions are dates.
const STATELESS: &str = "2026-07-28";

/// Headers that may occur once: with two, a proxy might use the other one.
const SINGLE_HEADERS: [&str; 8] = [
    "host",
    "origin",
    "authorization",
    "content-type",
    "content-length",
    SESSION,
    "mcp-protocol-version",
    "last-event-id",
];

/// Whether calls can be confined.
type Ready = Box<dyn Fn() -> bool + Send + Sync>;

/// What every request passes.
pub(super) struct Gate<S> {
    token: HttpToken,
    origins: Vec<origin::Origin>,
    pub(super) bounds: Bounds,
    large: Arc<Semaphore>,
    ready: Ready,
    /// The connection slots, and how many of them are reserved.
    slots: (Arc<Semaphore>, usize),
    rmcp: StreamableHttpService<S, LocalSessionManager>,
    pub(super) load: Load,
    pub(super) sessions: Sessions,
}

impl<S: ServerHandler + Send + 'static> Gate<S> {
    pub(super) fn new(
        settings: HttpSettings,
        port: u16,
        service: impl Fn() -> S + Send + Sync + 'static,
        ready: Ready,
        withdraw: CancellationToken,
        slots: &Arc<Semaphore>,
    ) -> Self {
        let sessions = Sessions::new(&settings.bounds);
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(settings.all_hosts())
            .with_allowed_origins(settings.all_origins(port))
            .enforce_origin_validation()
            .with_json_response(true)
            .with_max_request_body_bytes(settings.bounds.body_bytes)
            .with_cancellation_token(withdraw);
        Self {
            rmcp: StreamableHttpService::new(move || Ok(service()), sessions.manager(), config),
            large: Arc::new(Semaphore::new(settings.bounds.large_bodies)),
            load: Load::new(&settings.bounds, slots.available_permits()),
            sessions,
            ready,
            slots: (Arc::clone(slots), reserved_slots(slots.available_permits())),
            token: settings.token,
            origins: settings.origins,
            bounds: settings.bounds,
        }
    }

    /// The pressure for a request: high only if its connection came under high pressure, and as long as that lasts.
    fn pressure_for(&self, extensions: &Extensions) -> Pressure {
        match extensions.get() {
            Some(Pressure::High) => self.pressure(),
            Some(Pressure::Low) | None => Pressure::Low,
        }
    }

    /// High where only reserved slots are free.
    pub(super) fn pressure(&self) -> Pressure {
        let (slots, reserved_slots) = &self.slots;
        if slots.available_permits() < *reserved_slots {
            Pressure::High
        } else {
            Pressure::Low
        }
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Reply {
        match request.uri().path() {
            "/healthz" => health::live(request.method()),
            "/readyz" => {
                let is_ready = !self.load.is_draining() && (self.ready)();
                health::ready(request.method(), is_ready)
            }
            path if path == "/mcp" || path.starts_with("/mcp/") => self.mcp(request).await,
            _ => empty(StatusCode::NOT_FOUND),
        }
    }

    async fn mcp(&self, mut request: Request<Incoming>) -> Reply {
        let headers = request.headers();
        if let Some(reply) = ambiguous(headers) {
            return reply;
        }
        if request.method() == Method::OPTIONS
            && let Some(reply) = origin::preflight(&self.origins, headers)
        {
            return reply;
        }
        let origin_header = origin::allowed_origin(&self.origins, headers);
        let mut reply = if !self.token.is_in(headers) {
            unauthorized()
        } else if request.uri().path() != "/mcp" {
            empty(StatusCode::NOT_FOUND)
        } else {
            // Nothing behind this gate needs the token.
            request.headers_mut().remove(AUTHORIZATION);
            self.admit(request).await
        };
        if let Some(origin_header) = origin_header {
            origin::allow_reading(&mut reply, origin_header);
        }
        reply
    }

    async fn admit(&self, request: Request<Incoming>) -> Reply {
        match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => {
                let room = match self.load.stream(self.pressure_for(request.extensions())) {
                    Ok(room) => room,
                    Err(rejected) => return rejection(rejected),
                };
                let session = session_id(request.headers()).and_then(|id| self.sessions.acquire(id));
                let permits = Permits::new(Some(room), None, session);
                permits.until_sent(self.rmcp.handle(request).await)
            }
            Method::DELETE => {
                let ends = session_id(request.headers()).and_then(|id| self.sessions.acquire(id));
                let reply = self.rmcp.handle(request).await;
                if reply.status().is_success()
                    && let Some(ends) = ends
                {
                    // rmcp would not stop its calls at once.
                    ends.end.0.cancel();
                }
                reply
            }
            _ => self.rmcp.handle(request).await,
        }
    }

    async fn post(&self, request: Request<Incoming>) -> Reply {
        if !is_json(request.headers()) {
            return text_reply(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a message is application/json\n");
        }
        let (mut parts, body) = request.into_parts();
        let (bytes, large_permit) = match body::read(body, &self.bounds, &self.large).await {
            Ok(whole) => whole,
            Err(unread) => return body_error(unread),
        };
        let message = match Message::of(&bytes) {
            Ok(message) => message,
            Err(rejected) => return invalid_message(&bytes, rejected),
        };
        // An unknown method is reported before wrong parameters.
        let is_unknown = message == Message::Initialize && is_stateless(&parts.headers);
        if message != Message::OneWay
            && !is_unknown
            && let Some(reply) = wrong_params(&bytes)
        {
            return reply;
        }
        let room = match self.load.request(message, self.pressure_for(&parts.extensions)).await {
            Ok(room) => room,
            Err(rejected) => return rejection(rejected),
        };
        let named = session_id(&parts.headers);
        let pending = match (message, named) {
            (Message::Initialize, None) => match self.sessions.reserve().await {
                Some(pending) => Some(pending),
                None => return retry_later("5", "there are too many sessions, and all are in use\n"),
            },
            _ => None,
        };
        let session = named.and_then(|id| self.sessions.acquire(id));
        if let Some(session) = &session {
            parts.extensions.insert(session.end.clone());
        }
        let permits = Permits::new(room, large_permit, session);
        parts.extensions.insert(permits.clone());
        let text = bytes.clone();
        let reply = self.rmcp.handle(Request::from_parts(parts, Full::new(bytes))).await;
        if let (Some(pending), Some(id)) = (pending, session_id(reply.headers())) {
            self.sessions.created(pending, id);
        }
        // rmcp's status for JSON that is no message.
        if reply.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return invalid_message(&text, InvalidMessage::NotRpc);
        }
        drop(text);
        permits.until_sent(reply)
    }
}

/// How many slots are reserved for cancellations, answers and ends of sessions.
const fn reserved_slots(slots: usize) -> usize {
    let part = slots / 8;
    if part > 64 { 64 } else { part }
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).and_then(|id| id.to_str().ok())
}

fn ambiguous(headers: &HeaderMap) -> Option<Reply> {
    let twice = SINGLE_HEADERS
        .iter()
        .any(|name| headers.get_all(*name).iter().nth(1).is_some());
    twice.then(|| closing(text_reply(StatusCode::BAD_REQUEST, "a header is there twice\n")))
}

/// Whether the revision of a request has no sessions.
fn is_stateless(headers: &HeaderMap) -> bool {
    let revision = headers
        .get("mcp-protocol-version")
        .and_then(|version| version.to_str().ok());
    revision.is_some_and(|version| version >= STATELESS)
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let essence = content_type.and_then(|kind| kind.split(';').next());
    essence.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn rejection(rejected: Rejected) -> Reply {
    match rejected {
        Rejected::Full => retry_later("1", "too much is asked of this server at once\n"),
        Rejected::Draining => closing(retry_later("5", "this server is about to end\n")),
    }
}

/// The error for a malformed body, with the id of its request if it has one.
fn invalid_message(body: &[u8], invalid: InvalidMessage) -> Reply {
    let kind = Head::of(body).kind();
    let (code, why) = match invalid {
        InvalidMessage::NotJson | InvalidMessage::NotRpc => head::error_of(body, &kind),
        InvalidMessage::TooMany => (
            INVALID_REQUEST,
            "Invalid Request: the message has more than 200000 values",
        ),
    };
    rpc_error(head::error_reply(head::reply_id(&kind, code), code, why))
}

/// The JSON-RPC error for wrong parameters; HTTP reports success.
fn wrong_params(body: &[u8]) -> Option<Reply> {
    let why = params::wrong(body)?;
    let Kind::Request(Some(id)) = Head::of(body).kind() else {
        return None;
    };
    let mut reply = rpc_error(head::error_reply(Some(&id), INVALID_PARAMS, &why));
    *reply.status_mut() = StatusCode::OK;
    Some(reply)
}

fn body_error(unread: BodyError) -> Reply {
    closing(match unread {
        BodyError::TooLarge => text_reply(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large\n"),
        BodyError::TooSlow => text_reply(StatusCode::REQUEST_TIMEOUT, "the body took too long\n"),
        BodyError::Broken => text_reply(StatusCode::BAD_REQUEST, "the body broke off\n"),
    })
}
