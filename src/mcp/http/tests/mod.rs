//! Every bound, made small enough to be reached, against a server that says what becomes of its calls.

mod client;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::{Bounds, End, HttpServer, HttpSettings, HttpToken};
use client::{Answer, Asked, Client};

/// A tool `wait` that takes until it is told to go on, or withdrawn; and one that says its word.
#[derive(Clone, Default)]
struct Tools(Arc<Seen>);

#[derive(Default)]
struct Seen {
    begun: AtomicUsize,
    withdrawn: AtomicUsize,
    done: AtomicUsize,
    go: Notify,
    stubborn: bool,
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::default())
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let said = |text: String| CallToolResult::success(vec![ContentBlock::text(text)]).into();
        if params.name == "headers" {
            let parts = context.extensions.get::<http::request::Parts>().unwrap();
            return Ok(said(format!("{:?}", parts.headers)));
        }
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        let went = async {
            self.0.go.notified().await;
            self.0.done.fetch_add(1, Ordering::SeqCst);
            Ok(said("done".to_owned()))
        };
        if self.0.stubborn {
            return went.await;
        }
        tokio::select! {
            went = went => went,
            () = context.ct.cancelled() => {
                self.0.withdrawn.fetch_add(1, Ordering::SeqCst);
                Ok(said("withdrawn".to_owned()))
            }
        }
    }
}

/// A server on a thread of its own.
struct Running {
    client: Client,
    seen: Arc<Seen>,
    stop: mpsc::Sender<Signal>,
    thread: Option<JoinHandle<End>>,
}

fn small() -> Bounds {
    Bounds {
        header_time: Duration::from_millis(500),
        body_time: Duration::from_millis(500),
        withdrawal: Duration::from_millis(500),
        ..Bounds::default()
    }
}

fn started(bounds: Bounds, origins: &[&str], stubborn: bool) -> Running {
    let token = HttpToken::made().unwrap();
    let words = token.token.words().to_owned();
    let origins: Vec<String> = origins.iter().map(|origin| (*origin).to_owned()).collect();
    let settings = HttpSettings::new("127.0.0.1:0", &[], &origins, token)
        .unwrap()
        .within(bounds)
        .draining_for(Duration::from_secs(1));
    let (stop, stops) = mpsc::channel(4);
    let tools = Tools(Arc::new(Seen {
        stubborn,
        ..Seen::default()
    }));
    let seen = Arc::clone(&tools.0);
    let (told, hears) = std::sync::mpsc::channel::<SocketAddr>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let server = HttpServer::bind(settings).unwrap();
            told.send(server.address()).unwrap();
            server
                .serve(move || tools.clone(), || true, CancellationToken::new(), stops)
                .await
                .unwrap()
        })
    });
    Running {
        client: Client {
            address: hears.recv().unwrap(),
            token: words,
        },
        seen,
        stop,
        thread: Some(thread),
    }
}

#[track_caller]
fn becomes(what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Running {
    fn begun(&self) -> usize {
        self.seen.begun.load(Ordering::SeqCst)
    }

    fn withdrawn(&self) -> usize {
        self.seen.withdrawn.load(Ordering::SeqCst)
    }

    /// Begins a call that waits, on a connection of its own.
    fn waiting(&self) -> std::net::TcpStream {
        use std::io::Write as _;
        let begun = self.begun();
        let mut stream = self.client.connect();
        stream.write_all(&self.client.call("wait", &json!({})).bytes()).unwrap();
        becomes("the call begins", || self.begun() > begun);
        stream
    }

    fn signal(&self) {
        self.stop.blocking_send(Signal::SIGTERM).unwrap();
    }

    fn ended(mut self) -> End {
        self.thread.take().unwrap().join().unwrap()
    }
}

#[test]
fn a_call_is_answered() {
    let server = started(small(), &[], false);
    let stream = server.waiting();
    server.seen.go.notify_one();
    assert_eq!(Answer::read(stream).whole().said(), "done");
}

#[test]
fn the_token_does_not_reach_the_handler() {
    let server = started(small(), &[], false);
    let asked = server.client.call("headers", &json!({})).with("X-Kept", "yes");
    let said = server.client.ask(&asked).said();
    assert!(said.contains("x-kept"), "{said}");
    assert!(
        !said.contains("authorization") && !said.contains(&server.client.token),
        "{said}"
    );
}

#[test]
fn a_client_that_goes_away_withdraws_its_call() {
    let server = started(small(), &[], false);
    drop(server.waiting());
    becomes("the call is withdrawn", || server.withdrawn() == 1);
}

#[test]
fn a_session_s_call_outlives_the_connection_and_ends_when_it_is_cancelled() {
    use std::io::Write as _;
    let server = started(small(), &[], false);
    let session = server.client.session(&json!({}));
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}}});
    let mut stream = server.client.connect();
    stream
        .write_all(&server.client.in_session(&session, &call).bytes())
        .unwrap();
    becomes("the call begins", || server.begun() == 1);
    drop(stream);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(server.withdrawn(), 0, "these revisions resume a stream");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(
        server.client.ask(&server.client.in_session(&session, &cancel)).status,
        202
    );
    becomes("the call is withdrawn", || server.withdrawn() == 1);
}

#[test]
fn a_session_s_answer_waits_for_a_client_that_comes_back() {
    let server = started(small(), &[], false);
    let session = server.client.session(&json!({}));
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}}});
    let begun = server.client.send(&server.client.in_session(&session, &call));
    becomes("the call begins", || server.begun() == 1);
    drop(begun);
    let back = server
        .client
        .asked("GET", "/mcp")
        .with("Accept", "text/event-stream")
        .with("MCP-Protocol-Version", client::LEGACY)
        .with("Mcp-Session-Id", &session)
        .with("Last-Event-ID", "0/0");
    let mut back = server.client.send(&back);
    assert_eq!(back.status, 200);
    server.seen.go.notify_one();
    assert_eq!(back.event().unwrap()["result"]["content"][0]["text"], "done");
}

#[test]
fn calls_beyond_the_bound_wait_and_all_are_answered() {
    let server = started(Bounds { calls: 2, ..small() }, &[], false);
    let (first, _second) = (server.waiting(), server.waiting());
    let client = server.client.clone();
    let third = std::thread::spawn(move || client.ask(&client.call("wait", &json!({}))).said());
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(server.begun(), 2);
    // Other requests do not wait behind them.
    let listed = server.client.ask(&server.client.current("tools/list", json!({})));
    assert_eq!(listed.status, 200);
    server.seen.go.notify_one();
    assert_eq!(Answer::read(first).whole().said(), "done");
    becomes("the third begins", || server.begun() == 3);
    server.seen.go.notify_waiters();
    assert_eq!(third.join().unwrap(), "done");
}

#[test]
fn what_finds_the_line_full_is_told_to_come_again() {
    use std::io::Write as _;
    let server = started(
        Bounds {
            calls: 1,
            waiting: 1,
            ..small()
        },
        &[],
        false,
    );
    let _first = server.waiting();
    let mut second = server.client.connect();
    let call = server.client.call("wait", &json!({}));
    second.write_all(&call.bytes()).unwrap();
    let mut third = server.client.ask(&call);
    let start = Instant::now();
    // Until the second stands in line, the third does.
    while third.status != 503 && start.elapsed() < Duration::from_secs(10) {
        third = server.client.ask(&call);
    }
    assert_eq!(third.status, 503);
    assert_eq!(third.header("retry-after"), Some("1"));
    // Its place is given up with the connection.
    drop(second);
    std::thread::sleep(Duration::from_millis(200));
    let mut fourth = server.client.connect();
    fourth.write_all(&call.bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    server.seen.go.notify_one();
    becomes("the fourth begins", || server.begun() == 2);
}

#[test]
fn a_call_under_way_is_finished_before_it_ends() {
    let server = started(small(), &[], false);
    let stream = server.waiting();
    server.signal();
    becomes("it is not ready", || {
        server
            .client
            .ask(&Asked::new("GET", "/readyz").with("Host", "x"))
            .status
            == 503
    });
    assert_eq!(
        server
            .client
            .ask(&Asked::new("GET", "/healthz").with("Host", "x"))
            .status,
        200
    );
    let refused = server.client.ask(&server.client.call("wait", &json!({})));
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    server.seen.go.notify_one();
    assert_eq!(Answer::read(stream).whole().said(), "done");
    assert_eq!(server.ended(), End::Drained(Signal::SIGTERM));
}

#[test]
fn a_call_that_takes_longer_is_withdrawn() {
    let server = started(small(), &[], false);
    let _stream = server.waiting();
    let start = Instant::now();
    server.signal();
    let seen = Arc::clone(&server.seen);
    assert_eq!(server.ended(), End::Withdrawn(Signal::SIGTERM));
    assert_eq!(seen.withdrawn.load(Ordering::SeqCst), 1);
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn a_call_that_will_not_end_is_not_waited_for_longer() {
    let server = started(small(), &[], true);
    let _stream = server.waiting();
    let start = Instant::now();
    server.signal();
    assert_eq!(server.ended(), End::Withdrawn(Signal::SIGTERM));
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let server = started(small(), &[], true);
    let _stream = server.waiting();
    server.signal();
    let start = Instant::now();
    server.signal();
    assert_eq!(server.ended(), End::Cut(Signal::SIGTERM));
    assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
}

#[test]
fn what_only_listens_does_not_hold_it_up() {
    let server = started(small(), &[], false);
    let session = server.client.session(&json!({}));
    let listen = server
        .client
        .asked("GET", "/mcp")
        .with("Accept", "text/event-stream")
        .with("MCP-Protocol-Version", client::LEGACY)
        .with("Mcp-Session-Id", &session);
    let listening = server.client.send(&listen);
    assert_eq!(listening.status, 200);
    let start = Instant::now();
    server.signal();
    assert_eq!(server.ended(), End::Drained(Signal::SIGTERM));
    assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
}

#[test]
fn the_longest_idle_session_makes_room_for_another() {
    let server = started(Bounds { sessions: 2, ..small() }, &[], false);
    let listed = |session: &str| {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        server.client.ask(&server.client.in_session(session, &list)).status
    };
    let (first, second) = (server.client.session(&json!({})), server.client.session(&json!({})));
    assert_eq!((listed(&second), listed(&first)), (200, 200));
    let third = server.client.session(&json!({}));
    assert_eq!((listed(&first), listed(&second), listed(&third)), (200, 404, 200));
}

#[test]
fn sessions_in_use_make_no_room() {
    use std::io::Write as _;
    let server = started(Bounds { sessions: 1, ..small() }, &[], false);
    let session = server.client.session(&json!({}));
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}}});
    let mut stream = server.client.connect();
    stream
        .write_all(&server.client.in_session(&session, &call).bytes())
        .unwrap();
    becomes("the call begins", || server.begun() == 1);
    // Its client is gone; its call is not.
    drop(stream);
    std::thread::sleep(Duration::from_millis(200));
    let refused = server.client.ask(&server.client.initialize(&json!({})));
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    server.seen.go.notify_one();
    becomes("the call is done", || {
        server.client.ask(&server.client.initialize(&json!({}))).status == 200
    });
}

#[test]
fn a_session_that_nobody_uses_is_closed_and_one_with_a_call_is_not() {
    use std::io::Write as _;
    let server = started(
        Bounds {
            session_idle: Duration::from_millis(400),
            ..small()
        },
        &[],
        false,
    );
    let (idle, busy) = (server.client.session(&json!({})), server.client.session(&json!({})));
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}}});
    let mut stream = server.client.connect();
    stream
        .write_all(&server.client.in_session(&busy, &call).bytes())
        .unwrap();
    becomes("the call begins", || server.begun() == 1);
    std::thread::sleep(Duration::from_millis(1200));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let listed = |session: &str| server.client.ask(&server.client.in_session(session, &list)).status;
    assert_eq!((listed(&idle), listed(&busy)), (404, 200));
    server.seen.go.notify_one();
    assert_eq!(Answer::read(stream).whole().said(), "done");
}

#[test]
fn streams_beyond_the_bound_are_refused() {
    let server = started(Bounds { streams: 1, ..small() }, &[], false);
    let session = server.client.session(&json!({}));
    let listen = server
        .client
        .asked("GET", "/mcp")
        .with("Accept", "text/event-stream")
        .with("MCP-Protocol-Version", client::LEGACY)
        .with("Mcp-Session-Id", &session);
    let first = server.client.send(&listen);
    assert_eq!(first.status, 200);
    assert_eq!(server.client.ask(&listen).status, 503);
    drop(first);
    becomes("there is room again", || server.client.send(&listen).status == 200);
}

#[test]
fn idle_connections_make_room_for_others() {
    let server = started(
        Bounds {
            connections: 2,
            header_time: Duration::from_secs(30),
            ..small()
        },
        &[],
        false,
    );
    let health = Asked::new("GET", "/healthz").with("Host", "x");
    let idle = server.client.send(&health);
    assert_eq!((idle.status, idle.header("connection")), (200, None));
    let busy = server.waiting();
    let start = Instant::now();
    let third = server.client.ask(&health);
    assert_eq!(third.status, 200);
    // It leaves as soon as it is answered.
    assert_eq!(third.header("connection"), Some("close"));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    server.seen.go.notify_one();
    assert_eq!(Answer::read(busy).whole().said(), "done");
}

#[test]
fn a_connection_that_has_not_asked_yet_keeps_its_place() {
    use std::io::Write as _;
    let server = started(
        Bounds {
            connections: 1,
            header_time: Duration::from_secs(1),
            ..small()
        },
        &[],
        false,
    );
    let health = Asked::new("GET", "/healthz").with("Host", "x");
    let (mut first, mut second) = (server.client.connect(), server.client.connect());
    second.write_all(&health.bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    first.write_all(&health.bytes()).unwrap();
    assert_eq!(Answer::read(first).status, 200);
    assert_eq!(Answer::read(second).status, 200);
}

#[test]
fn a_header_that_takes_too_long_ends_its_connection() {
    use std::io::{Read as _, Write as _};
    let server = started(small(), &[], false);
    let mut stream = server.client.connect();
    let start = Instant::now();
    stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n").unwrap();
    let mut rest = Vec::new();
    let _closed = stream.read_to_end(&mut rest);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_body_that_takes_too_long_is_refused() {
    use std::io::Write as _;
    let server = started(small(), &[], false);
    let call = server.client.call("wait", &json!({}));
    let mut stream = server.client.connect();
    stream.write_all(&call.head()).unwrap();
    stream.write_all(b"{").unwrap();
    assert_eq!(Answer::read(stream).status, 408);
    assert_eq!(server.begun(), 0);
}

#[test]
fn a_large_body_waits_for_another_and_both_are_read() {
    use std::io::Write as _;
    let server = started(
        Bounds {
            large_bodies: 1,
            body_time: Duration::from_secs(10),
            ..small()
        },
        &[],
        false,
    );
    let large = server
        .client
        .call("headers", &json!({"x": "y".repeat(2 * Bounds::SMALL_BODY)}));
    let bytes = large.bytes();
    let (most, rest) = bytes.split_at(bytes.len() - 10);
    let mut first = server.client.connect();
    first.write_all(most).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let client = server.client.clone();
    let second = std::thread::spawn(move || client.ask(&large).status);
    // A small one does not wait.
    assert_eq!(
        server.client.ask(&server.client.call("headers", &json!({}))).status,
        200
    );
    std::thread::sleep(Duration::from_millis(200));
    assert!(!second.is_finished());
    first.write_all(rest).unwrap();
    assert_eq!(Answer::read(first).whole().status, 200);
    assert_eq!(second.join().unwrap(), 200);
}

#[test]
fn a_page_of_an_allowed_origin_may_ask_and_read() {
    let server = started(small(), &["https://app.example"], false);
    let asks = |origin: &str| {
        Asked::new("OPTIONS", "/mcp")
            .with("Host", "localhost")
            .with("Origin", origin)
            .with("Access-Control-Request-Method", "POST")
            .with("Access-Control-Request-Headers", "authorization")
    };
    let told = server.client.ask(&asks("https://app.example"));
    assert_eq!(told.status, 204);
    assert_eq!(told.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(told.header("access-control-allow-headers"), Some("authorization"));
    let other = server.client.ask(&asks("https://evil.example"));
    assert_eq!((other.status, other.header("access-control-allow-origin")), (401, None));

    let call = |origin: &str| {
        server
            .client
            .ask(&server.client.call("headers", &json!({})).with("Origin", origin))
    };
    let read = call("https://app.example");
    assert_eq!(read.status, 200);
    assert_eq!(read.header("access-control-allow-origin"), Some("https://app.example"));
    let other = call("https://evil.example");
    assert_eq!((other.status, other.header("access-control-allow-origin")), (403, None));
}
