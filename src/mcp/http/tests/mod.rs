//! Every bound, made small enough to be reached, against a server that says what becomes of its calls.

mod client;

use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
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
use client::{Answer, Client, PATIENCE, TestRequest};

/// A tool `wait` that takes until it is told to go on, or withdrawn; and one that says its word.
#[derive(Clone, Default)]
struct Tools(Arc<ToolCounters>);

#[derive(Default)]
struct ToolCounters {
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
        let result = |text: String| CallToolResult::success(vec![ContentBlock::text(text)]).into();
        if params.name == "headers" {
            let parts = context.extensions.get::<http::request::Parts>().unwrap();
            return Ok(result(format!("{:?}", parts.headers)));
        }
        // Whoever has seen it begin may tell all that wait to go on.
        let goes = self.0.go.notified();
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        let went = async {
            goes.await;
            self.0.done.fetch_add(1, Ordering::SeqCst);
            Ok(result("done".to_owned()))
        };
        if self.0.stubborn {
            return went.await;
        }
        tokio::select! {
            went = went => went,
            () = context.ct.cancelled() => {
                self.0.withdrawn.fetch_add(1, Ordering::SeqCst);
                Ok(result("withdrawn".to_owned()))
            }
        }
    }
}

/// A server on a thread of its own.
struct Running {
    client: Client,
    counters: Arc<ToolCounters>,
    stop: mpsc::Sender<Signal>,
    thread: Option<JoinHandle<End>>,
}

/// Bounds of time that no client meets, however slow the machine is: a test gives the one that it is about.
fn patient() -> Bounds {
    Bounds {
        header_time: PATIENCE,
        body_time: PATIENCE,
        withdrawal: PATIENCE,
        ..Bounds::default()
    }
}

/// A time that is over soon.
const SHORT: Duration = Duration::from_millis(500);

fn started(bounds: Bounds, origins: &[&str], stubborn: bool) -> Running {
    with_drain(PATIENCE, bounds, origins, stubborn)
}

fn with_drain(drain: Duration, bounds: Bounds, origins: &[&str], stubborn: bool) -> Running {
    let token = HttpToken::generate().unwrap();
    let secret = token.token.as_str().to_owned();
    let origins: Vec<String> = origins.iter().map(|origin| (*origin).to_owned()).collect();
    let settings = HttpSettings::new("127.0.0.1:0", &[], &origins, token)
        .unwrap()
        .with_bounds(bounds)
        .with_drain(drain);
    let (stop, stops) = mpsc::channel(4);
    let tools = Tools(Arc::new(ToolCounters {
        stubborn,
        ..ToolCounters::default()
    }));
    let counters = Arc::clone(&tools.0);
    let (send_address, address) = std::sync::mpsc::channel::<SocketAddr>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let server = HttpServer::bind(settings).unwrap();
            send_address.send(server.address()).unwrap();
            server
                .serve(move || tools.clone(), || true, CancellationToken::new(), stops)
                .await
                .unwrap()
        })
    });
    Running {
        client: Client {
            address: address.recv().unwrap(),
            token: secret,
        },
        counters,
        stop,
        thread: Some(thread),
    }
}

#[track_caller]
fn becomes(what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Running {
    fn begun(&self) -> usize {
        self.counters.begun.load(Ordering::SeqCst)
    }

    fn withdrawn(&self) -> usize {
        self.counters.withdrawn.load(Ordering::SeqCst)
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

    /// Begins two calls where the queue has room for one, until the server refuses one of them. Returns the other.
    fn in_line(&self) -> std::net::TcpStream {
        use std::io::Write as _;
        let call = self.client.call("wait", &json!({})).bytes();
        let (mut one, mut other) = (self.client.connect(), self.client.connect());
        one.write_all(&call).unwrap();
        other.write_all(&call).unwrap();
        let mut fds = [&one, &other].map(|stream| PollFd::new(stream.as_fd(), PollFlags::POLLIN));
        poll(&mut fds, PollTimeout::NONE).unwrap();
        let (refused, waits) = match fds[0].any() {
            Some(true) => (one, other),
            _ => (other, one),
        };
        let refused = Answer::read(refused);
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
        waits
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
    let server = started(patient(), &[], false);
    let stream = server.waiting();
    server.counters.go.notify_one();
    assert_eq!(Answer::read(stream).read_all().tool_text(), "done");
}

#[test]
fn the_token_does_not_reach_the_handler() {
    let server = started(patient(), &[], false);
    let request = server.client.call("headers", &json!({})).with("X-Kept", "yes");
    let tool_text = server.client.fetch(&request).tool_text();
    assert!(tool_text.contains("x-kept"), "{tool_text}");
    assert!(
        !tool_text.contains("authorization") && !tool_text.contains(&server.client.token),
        "{tool_text}"
    );
}

#[test]
fn a_client_that_goes_away_withdraws_its_call() {
    let server = started(patient(), &[], false);
    drop(server.waiting());
    becomes("the call is withdrawn", || server.withdrawn() == 1);
}

#[test]
fn a_session_s_call_outlives_the_connection_and_ends_when_it_is_cancelled() {
    use std::io::Write as _;
    let server = started(patient(), &[], false);
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
        server.client.fetch(&server.client.in_session(&session, &cancel)).status,
        202
    );
    becomes("the call is withdrawn", || server.withdrawn() == 1);
}

#[test]
fn a_session_s_answer_waits_for_a_client_that_comes_back() {
    let server = started(patient(), &[], false);
    let session = server.client.session(&json!({}));
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}}});
    let begun = server.client.send(&server.client.in_session(&session, &call));
    becomes("the call begins", || server.begun() == 1);
    drop(begun);
    let back = server
        .client
        .request("GET", "/mcp")
        .with("Accept", "text/event-stream")
        .with("MCP-Protocol-Version", client::LEGACY)
        .with("Mcp-Session-Id", &session)
        .with("Last-Event-ID", "0/0");
    let mut back = server.client.send(&back);
    assert_eq!(back.status, 200);
    server.counters.go.notify_one();
    assert_eq!(back.event().unwrap()["result"]["content"][0]["text"], "done");
}

#[test]
fn calls_beyond_the_bound_wait_and_all_are_answered() {
    let server = started(Bounds { calls: 2, ..patient() }, &[], false);
    let (first, _second) = (server.waiting(), server.waiting());
    let client = server.client.clone();
    let third = std::thread::spawn(move || client.fetch(&client.call("wait", &json!({}))).tool_text());
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(server.begun(), 2);
    // Other requests do not wait behind them.
    let listed = server.client.fetch(&server.client.current("tools/list", json!({})));
    assert_eq!(listed.status, 200);
    server.counters.go.notify_one();
    assert_eq!(Answer::read(first).read_all().tool_text(), "done");
    becomes("the third begins", || server.begun() == 3);
    server.counters.go.notify_waiters();
    assert_eq!(third.join().unwrap(), "done");
}

#[test]
fn a_request_beyond_the_queue_is_told_to_retry() {
    use std::io::Read as _;
    let server = started(
        Bounds {
            calls: 1,
            waiting: 1,
            ..patient()
        },
        &[],
        false,
    );
    let _first = server.waiting();
    let mut second = server.in_line();
    // Its place is given up with the connection: when the server has closed its end, another call takes it.
    second.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(second.read(&mut [0]).unwrap(), 0);
    let _third = server.in_line();
    assert_eq!(server.begun(), 1);
    server.counters.go.notify_one();
    becomes("the third begins", || server.begun() == 2);
}

#[test]
fn what_only_waits_leaves_connections_for_what_steers_it() {
    use std::io::Write as _;
    let bounds = Bounds {
        connections: 16,
        calls: 1,
        crowded: SHORT,
        ..patient()
    };
    let server = started(bounds, &[], false);
    let session = server.client.session(&json!({}));
    let call = server.client.in_session(
        &session,
        &json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}}}),
    );
    let mut first = server.client.connect();
    first.write_all(&call.bytes()).unwrap();
    becomes("the call begins", || server.begun() == 1);
    let waits = server.client.call("wait", &json!({})).bytes();
    let mut others: Vec<_> = (0..15).map(|_| server.client.connect()).collect();
    for other in &mut others {
        other.write_all(&waits).unwrap();
    }
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(
        server.client.fetch(&server.client.in_session(&session, &cancel)).status,
        202
    );
    becomes("the call is withdrawn", || server.withdrawn() == 1);
    becomes("the next begins", || server.begun() == 2);
}

#[test]
fn a_call_under_way_is_finished_before_it_ends() {
    let server = started(patient(), &[], false);
    let stream = server.waiting();
    server.signal();
    becomes("it is not ready", || {
        server
            .client
            .fetch(&TestRequest::new("GET", "/readyz").with("Host", "x"))
            .status
            == 503
    });
    assert_eq!(
        server
            .client
            .fetch(&TestRequest::new("GET", "/healthz").with("Host", "x"))
            .status,
        200
    );
    let refused = server.client.fetch(&server.client.call("wait", &json!({})));
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    server.counters.go.notify_one();
    assert_eq!(Answer::read(stream).read_all().tool_text(), "done");
    assert_eq!(server.ended(), End::Drained(Signal::SIGTERM));
}

#[test]
fn a_call_that_takes_longer_is_withdrawn() {
    let server = with_drain(Duration::from_secs(1), patient(), &[], false);
    let _stream = server.waiting();
    let start = Instant::now();
    server.signal();
    let counters = Arc::clone(&server.counters);
    assert_eq!(server.ended(), End::Withdrawn(Signal::SIGTERM));
    assert_eq!(counters.withdrawn.load(Ordering::SeqCst), 1);
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn a_call_that_will_not_end_is_not_waited_for_longer() {
    let bounds = Bounds {
        withdrawal: SHORT,
        ..patient()
    };
    let server = with_drain(SHORT, bounds, &[], true);
    let _stream = server.waiting();
    server.signal();
    assert_eq!(server.ended(), End::Withdrawn(Signal::SIGTERM));
}

#[test]
fn a_second_signal_ends_it_without_waiting() {
    let server = started(patient(), &[], true);
    let _stream = server.waiting();
    server.signal();
    server.signal();
    assert_eq!(server.ended(), End::Cut(Signal::SIGTERM));
}

#[test]
fn what_only_listens_does_not_hold_it_up() {
    let server = started(patient(), &[], false);
    let session = server.client.session(&json!({}));
    let listen = server
        .client
        .request("GET", "/mcp")
        .with("Accept", "text/event-stream")
        .with("MCP-Protocol-Version", client::LEGACY)
        .with("Mcp-Session-Id", &session);
    let listening = server.client.send(&listen);
    assert_eq!(listening.status, 200);
    server.signal();
    assert_eq!(server.ended(), End::Drained(Signal::SIGTERM));
}

#[test]
fn the_longest_idle_session_makes_room_for_another() {
    let server = started(
        Bounds {
            sessions: 2,
            ..patient()
        },
        &[],
        false,
    );
    let listed = |session: &str| {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        server.client.fetch(&server.client.in_session(session, &list)).status
    };
    let (first, second) = (server.client.session(&json!({})), server.client.session(&json!({})));
    assert_eq!((listed(&second), listed(&first)), (200, 200));
    let third = server.client.session(&json!({}));
    assert_eq!((listed(&first), listed(&second), listed(&third)), (200, 404, 200));
}

#[test]
fn sessions_in_use_make_no_room() {
    use std::io::Write as _;
    let server = started(
        Bounds {
            sessions: 1,
            ..patient()
        },
        &[],
        false,
    );
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
    let refused = server.client.fetch(&server.client.initialize(&json!({})));
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    server.counters.go.notify_one();
    becomes("the call is done", || {
        server.client.fetch(&server.client.initialize(&json!({}))).status == 200
    });
}

#[test]
fn a_session_that_nobody_uses_is_closed_and_one_with_a_call_is_not() {
    // On a busy machine the other session may have been idle for so long before its call came.
    let with_a_call = [400, 1_600, 6_400, 25_600].into_iter().find_map(|millis| {
        let session_idle = Duration::from_millis(millis);
        let bounds = Bounds {
            session_idle,
            ..patient()
        };
        let server = started(bounds, &[], false);
        let idle = server.client.try_session(&json!({}))?;
        let busy = server.client.try_session(&json!({}))?;
        let call =
            json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}}});
        let calling = server.client.send(&server.client.in_session(&busy, &call));
        (calling.status == 200).then_some((server, session_idle, idle, busy, calling))
    });
    let (server, session_idle, idle, busy, calling) = with_a_call.expect("a session whose call comes in time");
    becomes("the call begins", || server.begun() == 1);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let listed = |session: &str| server.client.fetch(&server.client.in_session(session, &list)).status;
    becomes("the idle one is closed", || {
        std::thread::sleep(3 * session_idle);
        listed(&idle) == 404
    });
    assert_eq!(listed(&busy), 200);
    server.counters.go.notify_one();
    assert_eq!(calling.read_all().tool_text(), "done");
}

#[test]
fn streams_beyond_the_bound_are_refused() {
    let server = started(
        Bounds {
            streams: 1,
            ..patient()
        },
        &[],
        false,
    );
    let session = server.client.session(&json!({}));
    let listen = server
        .client
        .request("GET", "/mcp")
        .with("Accept", "text/event-stream")
        .with("MCP-Protocol-Version", client::LEGACY)
        .with("Mcp-Session-Id", &session);
    let first = server.client.send(&listen);
    assert_eq!(first.status, 200);
    assert_eq!(server.client.fetch(&listen).status, 503);
    drop(first);
    becomes("there is room again", || server.client.send(&listen).status == 200);
}

#[test]
fn idle_connections_make_room_for_others() {
    let server = started(
        Bounds {
            connections: 2,
            ..patient()
        },
        &[],
        false,
    );
    let health = TestRequest::new("GET", "/healthz").with("Host", "x");
    let idle = server.client.send(&health);
    assert_eq!((idle.status, idle.header("connection")), (200, None));
    let busy = server.waiting();
    let third = server.client.fetch(&health);
    assert_eq!(third.status, 200);
    // It leaves as soon as it is answered.
    assert_eq!(third.header("connection"), Some("close"));
    server.counters.go.notify_one();
    assert_eq!(Answer::read(busy).read_all().tool_text(), "done");
}

#[test]
fn a_connection_without_a_request_yet_is_kept_open() {
    use std::io::Write as _;
    let server = started(
        Bounds {
            connections: 1,
            ..patient()
        },
        &[],
        false,
    );
    let health = TestRequest::new("GET", "/healthz").with("Host", "x");
    let (mut first, mut second) = (server.client.connect(), server.client.connect());
    second.write_all(&health.bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    first.write_all(&health.bytes()).unwrap();
    assert_eq!(Answer::read(first).status, 200);
    assert_eq!(Answer::read(second).status, 200);
}

#[test]
fn a_header_that_takes_too_long_ends_its_connection() {
    use std::io::{ErrorKind, Read as _, Write as _};
    let bounds = Bounds {
        header_time: SHORT,
        ..patient()
    };
    let server = started(bounds, &[], false);
    let mut stream = server.client.connect();
    let _closed = stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n");
    // A read that waits for too long would fail otherwise.
    if let Err(error) = stream.read_to_end(&mut Vec::new()) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn a_body_that_takes_too_long_is_refused() {
    use std::io::Write as _;
    let bounds = Bounds {
        body_time: SHORT,
        ..patient()
    };
    let server = started(bounds, &[], false);
    let call = server.client.call("wait", &json!({}));
    let mut stream = server.client.connect();
    stream.write_all(&[&call.head()[..], b"{"].concat()).unwrap();
    assert_eq!(Answer::read(stream).status, 408);
    assert_eq!(server.begun(), 0);
}

#[test]
fn a_large_body_waits_for_another_and_both_are_read() {
    use std::io::Write as _;
    let server = started(
        Bounds {
            large_bodies: 1,
            ..patient()
        },
        &[],
        false,
    );
    let large = server.client.call("headers", &json!({"x": "y".repeat(15 << 20)}));
    let bytes = large.bytes();
    let (most, rest) = bytes.split_at(bytes.len() - 10);
    let mut first = server.client.connect();
    // More than lies between the two ends: the server has read what makes it a large one.
    first.write_all(most).unwrap();
    let client = server.client.clone();
    let second = std::thread::spawn(move || client.fetch(&large).status);
    // A small one does not wait.
    assert_eq!(
        server.client.fetch(&server.client.call("headers", &json!({}))).status,
        200
    );
    std::thread::sleep(Duration::from_millis(200));
    assert!(!second.is_finished());
    first.write_all(rest).unwrap();
    assert_eq!(Answer::read(first).read_all().status, 200);
    assert_eq!(second.join().unwrap(), 200);
}

#[test]
fn a_page_of_an_allowed_origin_may_ask_and_read() {
    let server = started(patient(), &["https://app.example"], false);
    let asks = |origin: &str| {
        TestRequest::new("OPTIONS", "/mcp")
            .with("Host", "localhost")
            .with("Origin", origin)
            .with("Access-Control-Request-Method", "POST")
            .with("Access-Control-Request-Headers", "authorization")
    };
    let reply = server.client.fetch(&asks("https://app.example"));
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(reply.header("access-control-allow-headers"), Some("authorization"));
    let other = server.client.fetch(&asks("https://evil.example"));
    assert_eq!((other.status, other.header("access-control-allow-origin")), (401, None));

    let call = |origin: &str| {
        server
            .client
            .fetch(&server.client.call("headers", &json!({})).with("Origin", origin))
    };
    let read = call("https://app.example");
    assert_eq!(read.status, 200);
    assert_eq!(read.header("access-control-allow-origin"), Some("https://app.example"));
    let other = call("https://evil.example");
    assert_eq!((other.status, other.header("access-control-allow-origin")), (403, None));
}
