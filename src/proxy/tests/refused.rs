//! What is not let through: what the client is told, what is recorded, and that no server hears of it.

use super::stage::{Origin, Stage};
use crate::proxy::{AttemptResult, Bounds, Protocol};

const PORT: &str = "PORT";

/// What is sent; the status of the answer; what was wanted; a part of the reason.
type Row = (&'static str, u16, &'static str, &'static str);

const ROWS: &[Row] = &[
    // Not named.
    (
        "GET http://other.example:PORT/ HTTP/1.1\r\nHost: other.example:PORT\r\n\r\n",
        403,
        "other.example:PORT",
        "not in the list",
    ),
    (
        "CONNECT other.example:PORT HTTP/1.1\r\nHost: other.example:PORT\r\n\r\n",
        403,
        "other.example:PORT",
        "not in the list",
    ),
    (
        "CONNECT denied.example:PORT HTTP/1.1\r\nHost: denied.example:PORT\r\n\r\n",
        403,
        "denied.example:PORT",
        "denied by a person",
    ),
    (
        "CONNECT unanswered.example:PORT HTTP/1.1\r\nHost: unanswered.example\r\n\r\n",
        403,
        "unanswered.example:PORT",
        "nobody answered",
    ),
    (
        "CONNECT odd.example:PORT HTTP/1.1\r\nHost: odd.example\r\n\r\n",
        403,
        "odd.example:PORT",
        "X-Evil: odd",
    ),
    (
        "CONNECT open.example.other.example:PORT HTTP/1.0\r\n\r\n",
        403,
        "open.example.other.example:PORT",
        "not in the list",
    ),
    (
        "GET http://open.example.other.example:PORT/ HTTP/1.0\r\n\r\n",
        403,
        "open.example.other.example:PORT",
        "not in the list",
    ),
    // Leads where it must not.
    (
        "CONNECT a.private.example:PORT HTTP/1.0\r\n\r\n",
        403,
        "a.private.example:PORT",
        "10.1.2.3, which is private",
    ),
    (
        "GET http://a.private.example:PORT/ HTTP/1.0\r\n\r\n",
        403,
        "a.private.example:PORT",
        "10.1.2.3, which is private",
    ),
    (
        "CONNECT 10.1.2.3:PORT HTTP/1.0\r\n\r\n",
        403,
        "10.1.2.3:PORT",
        "which is private",
    ),
    (
        "CONNECT [::ffff:10.1.2.3]:PORT HTTP/1.0\r\n\r\n",
        403,
        "10.1.2.3:PORT",
        "which is private",
    ),
    (
        "CONNECT [::1]:PORT HTTP/1.0\r\n\r\n",
        403,
        "[::1]:PORT",
        "which is loopback",
    ),
    (
        "CONNECT 127.0.0.9:PORT HTTP/1.0\r\n\r\n",
        403,
        "127.0.0.9:PORT",
        "which is loopback",
    ),
    (
        "CONNECT 0.0.0.0:PORT HTTP/1.0\r\n\r\n",
        403,
        "0.0.0.0:PORT",
        "unspecified",
    ),
    (
        "CONNECT 169.254.169.254:80 HTTP/1.0\r\n\r\n",
        403,
        "169.254.169.254:80",
        "not in the list",
    ),
    (
        "CONNECT [fd00:ec2::254]:80 HTTP/1.0\r\n\r\n",
        403,
        "[fd00:ec2::254]:80",
        "not in the list",
    ),
    (
        "GET http://169.254.169.254/latest/ HTTP/1.0\r\n\r\n",
        403,
        "169.254.169.254:80",
        "not in the list",
    ),
    // Leads nowhere.
    (
        "CONNECT nowhere.open.example:PORT HTTP/1.0\r\n\r\n",
        502,
        "nowhere.open.example:PORT",
        "has no address",
    ),
    (
        "GET http://late.open.example:PORT/ HTTP/1.0\r\n\r\n",
        504,
        "late.open.example:PORT",
        "not resolved in time",
    ),
    (
        "CONNECT open.example:1 HTTP/1.0\r\n\r\n",
        502,
        "open.example:1",
        "refused the connection",
    ),
    (
        "GET http://open.example:1/ HTTP/1.0\r\n\r\n",
        502,
        "open.example:1",
        "refused the connection",
    ),
    // Not readable. Nobody is asked.
    (
        "CONNECT 0x7f.0.0.1:PORT HTTP/1.0\r\n\r\n",
        400,
        "",
        "neither a name nor an address",
    ),
    (
        "CONNECT 0177.0.0.1:PORT HTTP/1.0\r\n\r\n",
        400,
        "",
        "neither a name nor an address",
    ),
    (
        "CONNECT 2130706433:PORT HTTP/1.0\r\n\r\n",
        400,
        "",
        "neither a name nor an address",
    ),
    ("CONNECT open.example HTTP/1.0\r\n\r\n", 400, "", "no readable port"),
    (
        "CONNECT open.example\0.other.example:PORT HTTP/1.0\r\n\r\n",
        400,
        "",
        "a byte that stands in no request",
    ),
    (
        "CONNECT open.example%00:PORT HTTP/1.0\r\n\r\n",
        400,
        "",
        "a character that no host name has",
    ),
    (
        "CONNECT secret:word@open.example:PORT HTTP/1.0\r\n\r\n",
        400,
        "",
        "has a user",
    ),
    (
        "GET http://open.example:PORT@other.example/ HTTP/1.0\r\n\r\n",
        400,
        "",
        "has a user",
    ),
    (
        "GET http://open.example:PORT/ HTTP/1.1\r\nHost: other.example\r\n\r\n",
        400,
        "",
        "names another host",
    ),
    (
        "GET http://open.example:PORT/ HTTP/1.1\r\nHost: open.example:PORT\r\nHost: open.example:PORT\r\n\r\n",
        400,
        "",
        "two Host headers",
    ),
    (
        "GET http://open.example:PORT/ HTTP/1.1\r\n\r\n",
        400,
        "",
        "no Host header",
    ),
    (
        "GET / HTTP/1.1\r\nHost: open.example:PORT\r\n\r\n",
        400,
        "",
        "this is a proxy",
    ),
    (
        "GET https://open.example:PORT/ HTTP/1.1\r\nHost: open.example:PORT\r\n\r\n",
        400,
        "",
        "another scheme",
    ),
    ("GET http://open.example:PORT/\r\n", 400, "", "no readable request line"),
    (
        "GET http://open.example:PORT/ HTTP/1.1\nHost: open.example:PORT\n\n",
        400,
        "",
        "CR LF",
    ),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "", "neither HTTP/1.1 nor"),
    (
        "POST http://open.example:PORT/ HTTP/1.1\r\nHost: open.example:PORT\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "",
        "in two ways how long",
    ),
    (
        "POST http://open.example:PORT/ HTTP/1.1\r\nHost: open.example:PORT\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
        501,
        "",
        "encoding other than chunked",
    ),
    (
        "POST http://open.example:PORT/ HTTP/1.1\r\nHost: open.example:PORT\r\nExpect: everything\r\n\r\n",
        417,
        "",
        "expects something else",
    ),
    (
        "GET http://open.example:PORT/ HTTP/1.1\r\nHost: open.example:PORT\r\n X: y\r\n\r\n",
        400,
        "",
        "header that can be read in two ways",
    ),
];

#[tokio::test]
async fn whatever_is_not_let_through_is_answered_recorded_and_kept_from_the_server() {
    let origin = Origin::start(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let port = origin.port.to_string();
    for (sent, status, subject, why) in ROWS {
        let stage = Stage::start(Bounds::default());
        let mut stream = stage.connect().await;
        let sent = sent.replace(PORT, &port);
        tokio::io::AsyncWriteExt::write_all(&mut stream, sent.as_bytes())
            .await
            .unwrap();
        // What may be sent on the same connection afterwards is another test's.
        let head = super::stage::until(&mut stream, b"\r\n\r\n").await;
        drop(stream);
        let (line, _) = head.split_once("\r\n").unwrap();
        assert!(
            line.starts_with(&format!("HTTP/1.1 {status} stockade: ")),
            "{sent:?}: {line}"
        );
        assert!(line.contains(why), "{sent:?}: {line}");
        assert!(!head.contains("\r\nX-Evil"), "{head}");
        let attempts = stage.stop().await;
        let [attempt] = &*attempts else {
            panic!("{sent:?}: {attempts:#?}");
        };
        assert!(
            attempt.outcome.to_string().replace('\r', "").contains(why),
            "{sent:?}: {attempt:?}"
        );
        assert!(
            matches!(attempt.outcome, AttemptResult::Refused(_) | AttemptResult::Failed(_)),
            "{attempt:?}"
        );
        assert!(
            matches!(attempt.protocol, Some(Protocol::Connect | Protocol::Http)),
            "{attempt:?}"
        );
        assert_eq!((attempt.up, attempt.down, attempt.address), (0, 0, None));
        if subject.is_empty() {
            assert!(attempt.subject.to_string().starts_with('`'), "{sent:?}: {attempt:?}");
        } else {
            assert_eq!(attempt.subject.to_string(), subject.replace(PORT, &port));
        }
        assert!(!format!("{attempt:?}").contains("secret"), "{attempt:?}");
    }
    assert_eq!(origin.heard(), [""; 0]);
}

#[tokio::test]
async fn nobody_is_asked_about_what_cannot_be_read() {
    let stage = Stage::start(Bounds::default());
    for sent in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT 127.1:80 HTTP/1.0\r\n\r\n",
        "\x16\x03\x01\x02",
        "\x04\x01",
    ] {
        stage.say(sent.as_bytes()).await;
    }
    assert_eq!(stage.attempts(4).await.len(), 4);
    assert!(stage.gate.asked.lock().unwrap().is_empty());
    assert!(stage.resolver.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_neither_http_nor_socks5_is_told_so() {
    let stage = Stage::start(Bounds::default());
    assert_eq!(
        stage.say(&[4, 1, 0, 80, 127, 0, 0, 1, 0]).await,
        [0, 91, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(stage.say(&[0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]).await, b"");
    assert_eq!(stage.say(&[0x80, 0x2e, 1, 0, 2]).await, b"");
    let outcomes: Vec<_> = stage
        .attempts(3)
        .await
        .iter()
        .map(|it| it.outcome.to_string())
        .collect();
    assert!(outcomes[0].contains("SOCKS4"), "{outcomes:?}");
    assert!(outcomes[1].contains("TLS to the proxy"), "{outcomes:?}");
    assert!(outcomes[2].contains("TLS to the proxy"), "{outcomes:?}");
}

#[tokio::test]
async fn a_refusal_says_the_host_and_the_setting() {
    let stage = Stage::start(Bounds::default());
    let answer = stage
        .say(b"CONNECT Other.Example.:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n")
        .await;
    let answer = String::from_utf8(answer).unwrap();
    let line = "stockade: other.example:443 is not in the list of hosts (shell.network.allow)";
    assert!(answer.contains(&format!("\r\nX-Proxy-Error: {line}\r\n")), "{answer}");
    assert!(answer.contains("\r\nContent-Type: text/plain"), "{answer}");
    assert!(answer.ends_with(&format!("\r\n\r\n{line}\n")), "{answer}");
    assert!(!answer.contains("407"), "{answer}");
}
