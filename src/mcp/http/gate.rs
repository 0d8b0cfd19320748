//! One request: what it must be and say before rmcp sees it.

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

use super::body::{self, Unread, Whole};
use super::bounds::Bounds;
use super::held::Held;
use super::load::{Crowd, Load, NoRoom};
use super::message::{Message, NoMessage};
use super::reply::{Reply, closing, empty, later, no_message, sentence, unauthorized};
use super::sessions::{Coming, Sessions};
use super::settings::HttpSettings;
use super::token::HttpToken;
use super::{health, origin};
use crate::mcp::head::{self, Head, Kind, NO_MESSAGE};
use crate::mcp::params::{self, WRONG_PARAMS};

/// The header that names a session of the older revisions.
pub(in crate::mcp) const SESSION: &str = "mcp-session-id";

/// The first revision without sessions; their names are dates.
const STATELESS: &str = "2026-07-28";

/// What may be there once; of two, somebody on the way might believe the other.
const ONCE: [&str; 8] = [
    "host",
    "origin",
    "authorization",
    "content-type",
    "content-length",
    SESSION,
    "mcp-protocol-version",
    "last-event-id",
];

/// Whether calls can be confined now.
type Ready = Box<dyn Fn() -> bool + Send + Sync>;

/// What every request passes.
pub(super) struct Gate<S> {
    token: HttpToken,
    origins: Vec<origin::Origin>,
    bounds: Bounds,
    large: Arc<Semaphore>,
    ready: Ready,
    /// The places of connections, and how many of them are kept for what waits for nothing.
    places: (Arc<Semaphore>, usize),
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
        places: &Arc<Semaphore>,
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
            load: Load::new(&settings.bounds, places.available_permits()),
            sessions,
            ready,
            places: (Arc::clone(places), kept(places.available_permits())),
            token: settings.token,
            origins: settings.origins,
            bounds: settings.bounds,
        }
    }

    /// How long what was withdrawn may take to end.
    pub(super) const fn withdrawal(&self) -> std::time::Duration {
        self.bounds.withdrawal
    }

    /// How full it is for a request: of the connections that came when it was crowded, as long as it is.
    fn crowd_of(&self, came: &Extensions) -> Crowd {
        match came.get() {
            Some(Crowd::Dense) => self.crowd(),
            Some(Crowd::Loose) | None => Crowd::Loose,
        }
    }

    /// Whether the places that are left are kept.
    pub(super) fn crowd(&self) -> Crowd {
        let (places, kept) = &self.places;
        if places.available_permits() < *kept {
            Crowd::Dense
        } else {
            Crowd::Loose
        }
    }

    /// Answers it.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Reply {
        match request.uri().path() {
            "/healthz" => health::lives(request.method()),
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
        let page = origin::readable(&self.origins, headers);
        let mut reply = if !self.token.is_in(headers) {
            unauthorized()
        } else if request.uri().path() != "/mcp" {
            empty(StatusCode::NOT_FOUND)
        } else {
            // Nobody behind this gate needs it, and what is not there is not told.
            request.headers_mut().remove(AUTHORIZATION);
            self.admit(request).await
        };
        if let Some(page) = page {
            origin::tell(&mut reply, page);
        }
        reply
    }

    async fn admit(&self, request: Request<Incoming>) -> Reply {
        match *request.method() {
            Method::POST => self.post(request).await,
            Method::GET => {
                let room = match self.load.stream(self.crowd_of(request.extensions())) {
                    Ok(room) => room,
                    Err(none) => return refusal(none),
                };
                let session = session(request.headers()).and_then(|id| self.sessions.enter(id));
                let held = Held::new(Some(room), None, session);
                held.until_sent(self.rmcp.handle(request).await)
            }
            Method::DELETE => {
                let ends = session(request.headers()).and_then(|id| self.sessions.enter(id));
                let reply = self.rmcp.handle(request).await;
                if reply.status().is_success()
                    && let Some(ends) = ends
                {
                    // rmcp would let its calls go on for a while.
                    ends.ending().0.cancel();
                }
                reply
            }
            _ => self.rmcp.handle(request).await,
        }
    }

    async fn post(&self, request: Request<Incoming>) -> Reply {
        if !is_json(request.headers()) {
            return sentence(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a message is application/json\n");
        }
        let (mut parts, body) = request.into_parts();
        let Whole { bytes, leave } = match body::read(body, &self.bounds, &self.large).await {
            Ok(whole) => whole,
            Err(unread) => return unreadable(unread),
        };
        let message = match Message::of(&bytes) {
            Ok(message) => message,
            Err(none) => return not_understood(&bytes, none),
        };
        // What a revision does not have is no matter of its parameters.
        let is_unknown = message == Message::Initialize && is_stateless(&parts.headers);
        if message != Message::Notice
            && !is_unknown
            && let Some(reply) = wrong_params(&bytes)
        {
            return reply;
        }
        let room = match self.load.request(message, self.crowd_of(&parts.extensions)).await {
            Ok(room) => room,
            Err(none) => return refusal(none),
        };
        let named = session(&parts.headers);
        let coming = match (message, named) {
            (Message::Initialize, None) => match self.sessions.room().await {
                Some(coming) => Some(coming),
                None => return later("5", "there are too many sessions, and all are in use\n"),
            },
            _ => None,
        };
        let session = named.and_then(|id| self.sessions.enter(id));
        if let Some(session) = &session {
            parts.extensions.insert(session.ending());
        }
        let held = Held::new(room, leave, session);
        parts.extensions.insert(held.clone());
        let text = bytes.clone();
        let reply = self.rmcp.handle(Request::from_parts(parts, Full::new(bytes))).await;
        if let Some(coming) = coming {
            self.came(coming, &reply);
        }
        // rmcp says so of JSON that is none of its messages.
        if reply.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return not_understood(&text, NoMessage::NotRpc);
        }
        drop(text);
        held.until_sent(reply)
    }

    fn came(&self, coming: Coming, reply: &Reply) {
        if let Some(id) = session(reply.headers()) {
            self.sessions.came(coming, id);
        }
    }
}

/// How many of so many places nobody keeps for long who waits: cancellations, answers and ends of sessions come in by them.
const fn kept(places: usize) -> usize {
    let part = places / 8;
    if part > 64 { 64 } else { part }
}

fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).and_then(|id| id.to_str().ok())
}

fn ambiguous(headers: &HeaderMap) -> Option<Reply> {
    let twice = ONCE.iter().any(|name| headers.get_all(*name).iter().nth(1).is_some());
    twice.then(|| closing(sentence(StatusCode::BAD_REQUEST, "a header is there twice\n")))
}

/// Whether a request says that it is of a revision without sessions.
fn is_stateless(headers: &HeaderMap) -> bool {
    let named = headers
        .get("mcp-protocol-version")
        .and_then(|version| version.to_str().ok());
    named.is_some_and(|version| version >= STATELESS)
}

fn is_json(headers: &HeaderMap) -> bool {
    let named = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let essence = named.and_then(|kind| kind.split(';').next());
    essence.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn refusal(none: NoRoom) -> Reply {
    match none {
        NoRoom::Full => later("1", "too much is asked of this server at once\n"),
        NoRoom::Draining => closing(later("5", "this server is about to end\n")),
    }
}

/// Says what is wrong with a body, in answer to the request that it was to be where it says which.
fn not_understood(body: &[u8], none: NoMessage) -> Reply {
    let kind = Head::of(body).kind();
    let (code, why) = match none {
        NoMessage::NotJson | NoMessage::NotRpc => head::fault(body, &kind),
        NoMessage::TooMany => (NO_MESSAGE, "Invalid Request: the message has more than 200000 values"),
    };
    no_message(head::refusal(head::answered(&kind, code), code, why))
}

/// The answer to a request with wrong parameters. It is one of JSON-RPC, and no failure of HTTP.
fn wrong_params(body: &[u8]) -> Option<Reply> {
    let why = params::wrong(body)?;
    let Kind::Request(Some(id)) = Head::of(body).kind() else {
        return None;
    };
    let mut reply = no_message(head::refusal(Some(&id), WRONG_PARAMS, &why));
    *reply.status_mut() = StatusCode::OK;
    Some(reply)
}

fn unreadable(unread: Unread) -> Reply {
    closing(match unread {
        Unread::TooLarge => sentence(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large\n"),
        Unread::TooSlow => sentence(StatusCode::REQUEST_TIMEOUT, "the body took too long\n"),
        Unread::Broken => sentence(StatusCode::BAD_REQUEST, "the body broke off\n"),
    })
}
