//! Plain HTTP that is let through: what the server hears, what the client is answered, and what is recorded.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::stage::{Origin, PATIENCE, Stage, place, rest, until};
use crate::proxy::{AttemptResult, Bounds, End, Protocol, Refusal, Unreadable};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Own: yes\r\n\r\nhello";

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn a_request_is_sent_on_as_it_was_understood() {
    let origin = Origin::start(OK).await;
    let port = origin.port;
    let stage = Stage::start(Bounds::default());
    let sent = format!(
        "GET HTTP://Open.Example.:{port}/a?b=http://c/ HTTP/1.1\r\nHOST:   OPEN.example:{port} \r\nAccept: */*\r\n\
         Connection: close, X-Gone\r\nX-Gone: 1\r\nProxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\n\
         Keep-Alive: 5\r\nTE: trailers\r\nTrailer: X\r\nUpgrade: websocket\r\nX-Kept: \u{e9}\r\nCookie: a\r\nCookie: b\r\n\r\n"
    );
    let answer = text(stage.say(sent.as_bytes()).await);
    assert_eq!(
        answer,
        "HTTP/1.1 200 OK\r\nx-own: yes\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
    );
    let expected = format!(
        "GET /a?b=http://c/ HTTP/1.1\r\nhost: open.example:{port}\r\naccept: */*\r\nx-kept: \u{e9}\r\ncookie: a\r\ncookie: b\r\n\r\n"
    );
    assert_eq!(origin.heard(), [expected]);
    let attempts = stage.stop().await;
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].subject.to_string(), place("open.example", port));
    assert_eq!(attempts[0].protocol, Some(Protocol::Http));
    assert_eq!(attempts[0].outcome, AttemptResult::Passed(End::Closed));
    let (up, down) = (origin.heard()[0].len() as u64, OK.len() as u64);
    assert_eq!((attempts[0].up, attempts[0].down), (up, down));
    assert_eq!(attempts[0].address.unwrap().port(), port);
}

#[tokio::test]
async fn bodies_go_up_in_the_framing_that_was_understood() {
    let origin = Origin::start(OK).await;
    let port = origin.port;
    let stage = Stage::start(Bounds::default());
    let head =
        format!("POST http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\nConnection: close\r\n");
    for (rest, heard) in [
        ("Content-Length: 3\r\n\r\nabc", "content-length: 3\r\n\r\nabc"),
        ("Content-Length: 0\r\n\r\n", "content-length: 0\r\n\r\n"),
        (
            "Transfer-Encoding: CHUNKED\r\n\r\n003\r\nabc\r\n0\r\n\r\n",
            "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
    ] {
        let answer = text(stage.say(format!("{head}{rest}").as_bytes()).await);
        assert!(answer.ends_with("\r\n\r\nhello"), "{rest}: {answer}");
        let last = origin.heard().pop().unwrap();
        assert_eq!(last, format!("POST / HTTP/1.1\r\nhost: open.example:{port}\r\n{heard}"));
    }
    let ups: Vec<_> = stage.stop().await.iter().map(|attempt| attempt.up).collect();
    // With head and framing: what a server was sent is what it heard.
    let lengths: Vec<_> = origin.heard().iter().map(|heard| heard.len() as u64).collect();
    assert_eq!(ups, lengths);
}

#[tokio::test]
async fn every_request_of_a_connection_is_decided_for_itself() {
    let origin = Origin::start(OK).await;
    let port = origin.port;
    let stage = Stage::start(Bounds::default());
    let get = |host: &str| format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    let mut stream = stage.connect().await;
    // All at once: what stands behind a request is the next one, and no part of it.
    let all = [
        get("open.example"),
        get("other.example"),
        get("b.open.example"),
        get("a.private.example"),
    ]
    .concat();
    stream.write_all(all.as_bytes()).await.unwrap();
    for status in ["200 OK", "403 stockade: other", "200 OK", "403 stockade: a.private"] {
        let head = until(&mut stream, b"\r\n\r\n").await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
        assert!(head.contains("Connection: keep-alive"), "{head}");
        let end: &[u8] = if status == "200 OK" { b"hello" } else { b"\n" };
        until(&mut stream, end).await;
    }
    let tunnel = format!("CONNECT other.example:{port} HTTP/1.1\r\nHost: other.example\r\n\r\n");
    stream.write_all(tunnel.as_bytes()).await.unwrap();
    assert!(text(rest(&mut stream).await).starts_with("HTTP/1.1 403 "));
    assert_eq!(origin.heard().len(), 2);
    assert_eq!(stage.gate.asked.lock().unwrap().len(), 5);
    assert_eq!(stage.stop().await.len(), 5);
}

#[tokio::test]
async fn a_request_in_the_body_of_another_is_no_request() {
    let origin = Origin::start(OK).await;
    let port = origin.port;
    let stage = Stage::start(Bounds::default());
    let inner = "GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n";
    let sent = format!(
        "POST http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{inner}",
        inner.len()
    );
    assert!(text(stage.say(sent.as_bytes()).await).starts_with("HTTP/1.1 200 OK"));
    assert_eq!(stage.stop().await.len(), 1);
    assert!(origin.heard()[0].ends_with(inner));
}

#[tokio::test]
async fn a_request_that_has_no_body_may_bring_none() {
    let origin = Origin::start(OK).await;
    let port = origin.port;
    for (method, headers, why) in [
        ("GET", "Content-Length: 5\r\n", Some(Unreadable::Body)),
        ("HEAD", "Content-Length: 5\r\n", Some(Unreadable::Body)),
        ("GET", "Transfer-Encoding: chunked\r\n", Some(Unreadable::Body)),
        ("GET", "Content-Length: 0\r\n", None),
        ("GET", "", None),
    ] {
        let stage = Stage::start(Bounds::default());
        let sent = format!(
            "{method} http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\nConnection: close\r\n{headers}\r\nGET /"
        );
        let answer = text(stage.say(sent.as_bytes()).await);
        let attempts = stage.stop().await;
        let expected = why.map(|why| AttemptResult::Refused(Refusal::Unreadable(why)));
        let refused = attempts.first().map(|attempt| attempt.outcome.clone());
        match expected {
            Some(expected) => assert_eq!(refused, Some(expected), "{method} {headers}"),
            None => assert!(answer.starts_with("HTTP/1.1 200 "), "{method} {headers}: {answer}"),
        }
    }
}

#[tokio::test]
async fn a_server_may_not_put_its_answer_off_for_ever() {
    let patient = "HTTP/1.1 102 Processing\r\n\r\n".repeat(9_000) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let endless = "HTTP/1.1 102 Processing\r\n\r\n".repeat(12_000) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for (answer, expected) in [(patient, "HTTP/1.1 200 "), (endless, "HTTP/1.1 502 ")] {
        let origin = Origin::start(answer.leak().as_bytes()).await;
        let port = origin.port;
        let stage = Stage::start(Bounds::default());
        let sent = format!(
            "GET http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\nConnection: close\r\n\r\n"
        );
        let got = text(stage.say(sent.as_bytes()).await);
        assert!(got.starts_with(expected), "{got}");
    }
}

#[tokio::test]
async fn a_body_that_can_be_read_in_two_ways_is_cut() {
    let origin = Origin::start(OK).await;
    let port = origin.port;
    for body in [
        "3\r\nabcX\r\n0\r\n\r\n",
        "3;a=b\r\nabc\r\n0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "0\r\nX: y\r\n\r\n",
    ] {
        let stage = Stage::start(Bounds::default());
        let sent = format!(
            "POST http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\nTransfer-Encoding: chunked\r\n\r\n{body}GET http://other.example/ HTTP/1.0\r\n\r\n"
        );
        let answer = text(stage.say(sent.as_bytes()).await);
        assert!(answer.starts_with("HTTP/1.1 400 ") || answer.is_empty(), "{answer}");
        let attempts = stage.stop().await;
        assert_eq!(attempts.len(), 1, "{attempts:?}");
        assert_eq!(
            attempts[0].outcome,
            AttemptResult::Refused(Refusal::Unreadable(Unreadable::Chunk))
        );
    }
}

#[tokio::test]
async fn an_answer_is_built_anew() {
    // What the server sends; whether the client speaks HTTP/1.1; what the client hears.
    let rows: &[(&'static [u8], &str, &str)] = &[
        (
            b"HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\nKeep-Alive: 5\r\nConnection: X-A\r\nX-A: 1\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
            "1.1",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "1.0",
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc",
        ),
        (
            b"HTTP/1.0 404 Nope\r\n\r\nto the end",
            "1.1",
            "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\na\r\nto the end\r\n0\r\n\r\n",
        ),
        (
            b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nX-Evil: 1\r\n\r\n",
            "1.1",
            "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\nX-Evil: 1\r\n\r\n",
            "1.1",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab",
        ),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
            "1.1",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab",
        ),
        (
            b"HTTP/1.1 200 OK\r\nConnection: ,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\r\nContent-Length: 2\r\n\r\nab",
            "1.1",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab",
        ),
        (b"HTTP/1.1 200 OK\r\nConnection: ,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\r\nContent-Length: 2\r\n\r\nab", "1.1", "502"),
        (b"HTTP/1.1 407 Password\r\nProxy-Authenticate: Basic\r\n\r\n", "1.1", "502"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nHTTP/1.1 200", "1.1", "502"),
        (b"SSH-2.0-OpenSSH\r\n", "1.1", "502"),
        (b"", "1.1", "502"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc", "1.1", "502"),
        (b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n", "1.1", "502"),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", "1.1", "502"),
    ];
    for (answer, version, heard) in rows {
        let origin = Origin::start(answer).await;
        let port = origin.port;
        let stage = Stage::start(Bounds::default());
        let sent = format!(
            "GET http://open.example:{port}/ HTTP/{version}\r\nHost: open.example:{port}\r\nConnection: close\r\n\r\n"
        );
        let got = text(stage.say(sent.as_bytes()).await);
        if *heard == "502" {
            assert!(
                got.starts_with("HTTP/1.1 502 stockade: "),
                "{}: {got}",
                answer.escape_ascii()
            );
        } else {
            assert_eq!(got, *heard, "{}", answer.escape_ascii());
        }
        assert_eq!(stage.stop().await.len(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_made_whole() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
    ] {
        let origin = Origin::start(answer).await;
        let port = origin.port;
        let stage = Stage::start(Bounds::default());
        let sent = format!("GET http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\n\r\n");
        let got = text(stage.say(sent.as_bytes()).await);
        assert!(got.contains("abc") && !got.contains("\r\n0\r\n"), "{got}");
        let attempts = stage.stop().await;
        assert_eq!(attempts[0].outcome, AttemptResult::Passed(End::ServerClosed));
        assert_eq!(attempts[0].down, answer.len() as u64);
    }
}

#[tokio::test]
async fn an_answer_to_head_has_a_length_and_no_body() {
    let origin = Origin::start(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n").await;
    let port = origin.port;
    let stage = Stage::start(Bounds::default());
    let sent =
        format!("HEAD http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\nConnection: close\r\n\r\n");
    let got = text(stage.say(sent.as_bytes()).await);
    assert_eq!(got, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\n");
}

#[tokio::test]
async fn whoever_waits_before_a_body_is_told_to_go_on_only_if_it_is_let_through() {
    let origin = Origin::start(OK).await;
    let port = origin.port;
    let stage = Stage::start(Bounds::default());
    let head = |host| {
        format!(
            "PUT http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n"
        )
    };
    let mut stream = stage.connect().await;
    stream.write_all(head("open.example").as_bytes()).await.unwrap();
    assert_eq!(until(&mut stream, b"\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"ab").await.unwrap();
    assert!(until(&mut stream, b"hello").await.starts_with("HTTP/1.1 200 OK"));
    stream.write_all(head("other.example").as_bytes()).await.unwrap();
    assert!(text(rest(&mut stream).await).starts_with("HTTP/1.1 403 "));
    assert!(!origin.heard()[0].contains("expect"));
}

#[tokio::test]
async fn a_large_body_goes_up_and_down_with_little_memory() {
    const SIZE: usize = 8 << 20;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // A server that answers while it reads, piece by piece.
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        until(&mut stream, b"\r\n\r\n").await;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut read, mut write) = stream.split();
        let _ended = tokio::io::copy(&mut read, &mut write).await;
    });
    let stage = Stage::start(Bounds::default());
    let mut stream = stage.connect().await;
    let head = format!(
        "POST http://open.example:{port}/ HTTP/1.1\r\nHost: open.example:{port}\r\nConnection: close\r\nContent-Length: {SIZE}\r\n\r\n"
    );
    let (mut read, mut write) = stream.split();
    let sending = async {
        write.write_all(head.as_bytes()).await.unwrap();
        write.write_all(&vec![b'x'; SIZE]).await.unwrap();
    };
    let mut got = Vec::new();
    let ((), read) = timeout(PATIENCE, async {
        tokio::join!(sending, tokio::io::AsyncReadExt::read_to_end(&mut read, &mut got))
    })
    .await
    .unwrap();
    read.unwrap();
    assert!(got.ends_with(&vec![b'x'; SIZE]));
    let attempts = stage.stop().await;
    for counted in [attempts[0].up, attempts[0].down] {
        assert!(
            (SIZE..SIZE + 200).contains(&usize::try_from(counted).unwrap()),
            "{counted}"
        );
    }
    assert!(attempts[0].duration > Duration::ZERO);
}
