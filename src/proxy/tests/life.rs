//! How connections begin, wait and end.

use std::net::Ipv4Addr;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};

use super::stage::{Origin, PATIENCE, Stage, TestGate, TestResolver, comes_to, echo, place, rest, until};
use crate::proxy::{AttemptResult, Bounds, End, Proxy, Refusal, Unreadable};

const SHORT: Duration = Duration::from_millis(150);

#[tokio::test]
async fn a_tunnel_is_recorded_when_it_is_closed() {
    let port = echo().await;
    let stage = Stage::start(Bounds::default());
    let mut stream = stage.connect().await;
    let request = format!("CONNECT open.example:{port} HTTP/1.1\r\nHost: open.example:{port}\r\n\r\nearly");
    stream.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(
        until(&mut stream, b"\r\n\r\n").await,
        "HTTP/1.1 200 Connection established\r\n\r\n"
    );
    assert_eq!(until(&mut stream, b"early").await, "early");
    assert!(stage.gate.attempts.lock().unwrap().is_empty());
    stream.shutdown().await.unwrap();
    assert_eq!(rest(&mut stream).await, b"");
    let attempts = stage.attempts(1).await;
    assert_eq!(attempts[0].outcome, AttemptResult::Passed(End::Closed));
    assert_eq!((attempts[0].up, attempts[0].down), (5, 5));
}

#[tokio::test]
async fn stopping_records_what_was_under_way() {
    let port = echo().await;
    let stage = Stage::start(Bounds::default());
    let mut tunnel = stage.connect().await;
    let request = format!("CONNECT open.example:{port} HTTP/1.0\r\n\r\nabc");
    tunnel.write_all(request.as_bytes()).await.unwrap();
    until(&mut tunnel, b"\r\n\r\nabc").await;
    let mut waiting = stage.connect().await;
    waiting
        .write_all(b"CONNECT slow.open.example:80 HTTP/1.0\r\n\r\n")
        .await
        .unwrap();
    let mut fetching = stage.connect().await;
    let request = format!("GET http://open.example:{port}/ HTTP/1.0\r\n\r\n");
    fetching.write_all(request.as_bytes()).await.unwrap();
    while stage.gate.asked.lock().unwrap().len() < 3 {
        sleep(Duration::from_millis(5)).await;
    }
    sleep(SHORT).await;
    let idle = stage.connect().await;
    let ends: Vec<_> = stage
        .stop()
        .await
        .into_iter()
        .map(|it| (it.subject.to_string(), it.outcome, it.up))
        .collect();
    // How far the third got hangs on the machine.
    assert_eq!(ends.len(), 3, "{ends:?}");
    let tunnelled = (place("open.example", port), AttemptResult::Passed(End::Stopped), 3);
    let asked = (
        place("slow.open.example", 80),
        AttemptResult::Abandoned(End::Stopped),
        0,
    );
    assert!(ends.contains(&tunnelled) && ends.contains(&asked), "{ends:?}");
    for mut stream in [tunnel, waiting, idle] {
        assert_eq!(rest(&mut stream).await, b"");
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_question_about_it() {
    let stage = Stage::start(Bounds::default());
    let mut stream = stage.connect().await;
    stream
        .write_all(b"CONNECT slow.open.example:80 HTTP/1.0\r\n\r\n")
        .await
        .unwrap();
    while stage.gate.asked.lock().unwrap().is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    drop(stream);
    let attempts = stage.attempts(1).await;
    assert_eq!(attempts[0].outcome, AttemptResult::Abandoned(End::ClientClosed));
}

#[tokio::test]
async fn whoever_sends_nothing_or_too_slowly_is_cut() {
    let origin = Origin::start(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let request = format!(
        "GET http://open.example:{0}/ HTTP/1.1\r\nHost: open.example:{0}\r\n\r\n",
        origin.port
    );
    let slow = AttemptResult::Refused(Refusal::Unreadable(Unreadable::Slow));
    let expected = (
        [
            "",
            "HTTP/1.1 408",
            r"\x05\x01\x00\x01\x00\x00\x00\x00\x00\x00",
            "HTTP/1.1 200",
        ]
        .map(str::to_owned),
        vec![slow.clone(), slow, AttemptResult::Passed(End::Closed)],
    );
    // What is sent must be there before the time is over.
    comes_to(&expected, async |time| {
        let bounds = Bounds {
            head_time: time,
            keep_alive: time,
            ..Bounds::default()
        };
        let stage = Stage::start(bounds);
        let mut answers = [const { String::new() }; 4];
        // Nothing, less than a head, less than a greeting, and a request with no other behind it.
        let sent = [b"".as_slice(), b"GET http://open", &[5, 1], request.as_bytes()];
        for (sent, answer) in sent.into_iter().zip(&mut answers) {
            let got = stage.say(sent).await;
            let is_http = got.starts_with(b"HTTP/");
            let shown = if is_http { &got[..12] } else { &got };
            *answer = shown.escape_ascii().to_string();
        }
        let outcomes: Vec<_> = stage.stop().await.into_iter().map(|it| it.outcome).collect();
        (answers, outcomes)
    })
    .await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let bounds = Bounds {
        idle: SHORT,
        ..Bounds::default()
    };
    let stage = Stage::start(bounds);
    let sent = format!("GET http://open.example:{port}/ HTTP/1.0\r\n\r\n");
    assert_eq!(stage.say(sent.as_bytes()).await, b"");
    assert_eq!(stage.stop().await[0].outcome, AttemptResult::Passed(End::Idle));
}

#[tokio::test]
async fn whoever_has_no_place_waits_and_whoever_asks_nothing_makes_room() {
    let origin = Origin::start(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let port = origin.port;
    let bounds = Bounds {
        connections: 2,
        ..Bounds::default()
    };
    let stage = Stage::start(bounds);
    let request = format!("GET http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\n\r\n");
    let mut waits = stage.connect().await;
    waits
        .write_all(b"CONNECT slow.open.example:80 HTTP/1.0\r\n\r\n")
        .await
        .unwrap();
    while stage.gate.asked.lock().unwrap().is_empty() {
        sleep(Duration::from_millis(5)).await;
    }
    let mut kept = stage.connect().await;
    kept.write_all(request.as_bytes()).await.unwrap();
    until(&mut kept, b"\r\n\r\n").await;
    // Both places are taken: one by a question, one by somebody who asks nothing.
    let mut third = stage.connect().await;
    third.write_all(request.as_bytes()).await.unwrap();
    assert!(until(&mut third, b"\r\n\r\n").await.starts_with("HTTP/1.1 200 OK"));
    assert_eq!(rest(&mut kept).await, b"");
    let mut fourth = stage.connect().await;
    let mut fifth = stage.connect().await;
    for stream in [&mut fourth, &mut fifth] {
        stream
            .write_all(b"CONNECT slow.open.example:80 HTTP/1.0\r\n\r\n")
            .await
            .unwrap();
    }
    sleep(SHORT).await;
    assert!(stage.gate.asked.lock().unwrap().len() <= 4);
    stage.stop().await;
}

#[tokio::test]
async fn a_listener_that_is_shut_down_is_served_no_more() {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let copy = listener.try_clone().unwrap();
    let gate = Arc::new(TestGate::default());
    let proxy = Proxy::start(
        vec![listener],
        gate,
        Arc::new(TestResolver::default()),
        Bounds::default(),
    )
    .unwrap();
    nix::sys::socket::shutdown(copy.as_raw_fd(), nix::sys::socket::Shutdown::Both).unwrap();
    sleep(SHORT).await;
    timeout(PATIENCE, proxy.stop()).await.unwrap();
}

#[tokio::test]
async fn dropping_the_proxy_closes_its_connections() {
    let port = echo().await;
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let gate = Arc::new(TestGate::default());
    let seen: Arc<dyn crate::proxy::Gate> = Arc::<TestGate>::clone(&gate);
    let proxy = Proxy::start(
        vec![listener],
        seen,
        Arc::new(TestResolver::default()),
        Bounds::default(),
    )
    .unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("CONNECT open.example:{port} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    until(&mut stream, b"\r\n\r\n").await;
    drop(proxy);
    assert_eq!(rest(&mut stream).await, b"");
    assert_eq!(gate.attempts.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_name_is_resolved_once_and_only_when_it_was_let_through() {
    let port = echo().await;
    let stage = Stage::start(Bounds::default());
    for host in ["open.example", "other.example", "denied.example", "127.0.0.1"] {
        let mut stream = stage.connect().await;
        let request = format!("CONNECT {host}:{port} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
    }
    let asked = stage.resolver.asked.lock().unwrap().clone();
    assert_eq!(asked.into_iter().collect::<Vec<_>>(), [("open.example".to_owned(), 1)]);
}

#[tokio::test]
async fn a_redirect_is_the_clients_to_follow_and_decided_anew() {
    let origin = Origin::start(b"HTTP/1.1 302 Found\r\nLocation: http://10.1.2.3/\r\nContent-Length: 0\r\n\r\n").await;
    let stage = Stage::start(Bounds::default());
    let mut stream = stage.connect().await;
    let request = format!(
        "GET http://open.example:{0}/ HTTP/1.1\r\nHost: open.example:{0}\r\n\r\n",
        origin.port
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(
        until(&mut stream, b"\r\n\r\n")
            .await
            .contains("location: http://10.1.2.3/")
    );
    stream
        .write_all(b"GET http://10.1.2.3/ HTTP/1.1\r\nHost: 10.1.2.3\r\n\r\n")
        .await
        .unwrap();
    assert!(until(&mut stream, b"\r\n\r\n").await.starts_with("HTTP/1.1 403 "));
}
