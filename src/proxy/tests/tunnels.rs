use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::hellos::{again, fragmented, greeting, hello, nameless};
use super::stage::{PATIENCE, comes_to};
use crate::policy::Host;
use crate::proxy::attempt::{AttemptResult, End, Refusal, TunnelContent};
use crate::proxy::bounds::Bounds;
use crate::proxy::meter::{Meter, Way};
use crate::proxy::tls::HelloError;
use crate::proxy::tunnel::{Tunnel, Tunnelled, tunnel};
use crate::proxy::unreadable::Unreadable;

/// The far ends of a tunnel, and what becomes of it.
struct Ends {
    client: TcpStream,
    server: TcpStream,
    stop: CancellationToken,
    ended: JoinHandle<(Tunnelled, u64, u64)>,
}

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let there = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (there, listener.accept().await.unwrap().0)
}

/// A tunnel to this host at port 8080.
async fn open(host: &str, early: &[u8], idle: Duration) -> Ends {
    let bounds = Bounds {
        idle,
        ..Bounds::default()
    };
    open_within(host, early, bounds).await
}

/// The same, with these bounds.
async fn open_within(host: &str, early: &[u8], bounds: Bounds) -> Ends {
    let ((client, inner_client), (server, inner_server)) = (pair().await, pair().await);
    let (host, early, stop) = (Host::parse(host).unwrap(), early.to_vec(), CancellationToken::new());
    let stopped = stop.clone();
    let ended = tokio::spawn(async move {
        let meter = Meter::default();
        let ends = Tunnel {
            client: inner_client,
            early,
            server: inner_server,
            host: &host,
            port: 8080,
        };
        let bounds = Bounds {
            linger: Duration::from_millis(200),
            ..bounds
        };
        let tunnelled = tunnel(ends, &bounds, &meter, &stopped).await;
        (tunnelled, meter.sent(Way::Up), meter.sent(Way::Down))
    });
    Ends {
        client,
        server,
        stop,
        ended,
    }
}

impl Ends {
    async fn end(self) -> (Tunnelled, u64, u64) {
        timeout(PATIENCE, self.ended).await.unwrap().unwrap()
    }

    async fn server_gets(&mut self, bytes: &[u8]) {
        let mut got = vec![0; bytes.len()];
        timeout(PATIENCE, self.server.read_exact(&mut got))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(got.escape_ascii().to_string(), bytes.escape_ascii().to_string());
    }

    async fn client_gets(&mut self, bytes: &[u8]) {
        let mut got = vec![0; bytes.len()];
        timeout(PATIENCE, self.client.read_exact(&mut got))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(got.escape_ascii().to_string(), bytes.escape_ascii().to_string());
    }

    /// Nothing comes there for a while.
    async fn server_waits(&mut self) {
        let mut byte = [0];
        let read = timeout(Duration::from_millis(60), self.server.read(&mut byte)).await;
        assert!(read.is_err(), "got {byte:?}");
    }
}

/// All that comes until the end, or a reset.
async fn all(stream: &mut TcpStream) -> Vec<u8> {
    let mut got = Vec::new();
    let _reset = timeout(PATIENCE, stream.read_to_end(&mut got)).await.unwrap();
    got
}

/// What the server, the client and the record get of a client that sends this and ends; early, at once, or in pieces.
async fn sent(host: &str, bytes: &[u8], pieces: usize) -> (Vec<u8>, Vec<u8>, Tunnelled) {
    answered(host, b"", bytes, pieces).await
}

/// The same, where the server has said this before.
async fn answered(host: &str, answer: &[u8], bytes: &[u8], pieces: usize) -> (Vec<u8>, Vec<u8>, Tunnelled) {
    let early = if pieces == 0 { bytes } else { b"" };
    let mut ends = open(host, early, PATIENCE).await;
    ends.server.write_all(answer).await.unwrap();
    if pieces > 0 {
        for piece in bytes.chunks(pieces) {
            // What is refused early need not be taken to its end.
            let _refused = ends.client.write_all(piece).await;
            tokio::task::yield_now().await;
        }
    }
    let _refused = ends.client.shutdown().await;
    let server = all(&mut ends.server).await;
    let _gone = ends.server.shutdown().await;
    let client = all(&mut ends.client).await;
    (server, client, ends.end().await.0)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn get(host: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
}

#[test]
fn what_agrees_with_the_name_passes_unchanged() {
    let behind = |start: Vec<u8>| [start, vec![0x14, 3, 3, 0, 1, 1, 0x17, 3, 3, 0, 2, 9, 9]].concat();
    let rows: Vec<(Vec<u8>, TunnelContent)> = vec![
        (Vec::new(), TunnelContent::Nothing),
        (hello(HOST), TunnelContent::NamedTls),
        (hello("A.EXAMPLE.ORG."), TunnelContent::NamedTls),
        (nameless(), TunnelContent::NamelessTls),
        (behind(hello(HOST)), TunnelContent::NamedTls),
        (behind(nameless()), TunnelContent::NamelessTls),
        (behind(fragmented(HOST, 7)), TunnelContent::NamedTls),
        (get(HOST), TunnelContent::Http),
        ([get(HOST), get("A.example.org:8080")].concat(), TunnelContent::Http),
        (
            [post("Content-Length: 3", "abc"), get(HOST)].concat(),
            TunnelContent::Http,
        ),
        (
            [post("Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\n"), get(HOST)].concat(),
            TunnelContent::Http,
        ),
        (
            post("Content-Length: 28", "GET / HTTP/1.1\r\nHost: evil\r\n"),
            TunnelContent::Http,
        ),
        (b"GET / HTTP/1.0\r\n\r\n".to_vec(), TunnelContent::Http),
        (
            b"SSH-2.0-OpenSSH\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_vec(),
            TunnelContent::Other,
        ),
        (b"\0\0\0\x08\x04\xd2\x16\x2f".to_vec(), TunnelContent::Other),
        (b"no line".to_vec(), TunnelContent::Other),
        (vec![0xab; 300_000], TunnelContent::Other),
    ];
    let greeting = greeting(2, [7; 32]);
    runtime().block_on(async {
        for (bytes, content) in rows {
            for pieces in [0, 1 << 20, 11, 1] {
                if (pieces == 0 && bytes.len() > 1 << 16) || (pieces == 1 && bytes.len() > 1000) {
                    continue;
                }
                let says: &[u8] = if content == TunnelContent::Http { b"" } else { &greeting };
                let (server, client, tunnelled) = answered(HOST, says, &bytes, pieces).await;
                let what = format!("{} by {pieces}", bytes[..bytes.len().min(80)].escape_ascii());
                assert!(server == bytes, "{what}: got {}", server.escape_ascii());
                assert_eq!(client, says, "{what}");
                let outcome = AttemptResult::Passed(End::Closed);
                assert_eq!(tunnelled, Tunnelled { outcome, content }, "{what}");
            }
        }
    });
}

const HOST: &str = "a.example.org";

/// What the client sends, what of that may go on, and why the rest does not.
type Row = (Vec<u8>, Vec<u8>, Refusal);

fn text(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn post(framing: &str, body: &str) -> Vec<u8> {
    text(&format!("POST / HTTP/1.1\r\nHost: {HOST}\r\n{framing}\r\n\r\n{body}"))
}

fn hellos_that_are_cut() -> Vec<Row> {
    let differs = |name: &str| Refusal::Hello(HelloError::Differs(name.into()));
    vec![
        (hello("evil.example"), vec![], differs("evil.example")),
        (fragmented("evil.example", 9), vec![], differs("evil.example")),
        (
            hello("a.example.org\0.evil.example"),
            vec![],
            differs("a.example.org\\x00.evil.example"),
        ),
        (
            [vec![0x15, 3, 1, 0, 2, 1, 0], hello("evil.example")].concat(),
            vec![0x15],
            HelloError::Unreadable.into(),
        ),
        (
            [vec![0x14, 3, 1, 0, 1, 1], hello("evil.example")].concat(),
            vec![0x14],
            HelloError::Unreadable.into(),
        ),
        (
            [hello(HOST)[..9].to_vec(), hello("evil.example")].concat(),
            vec![],
            HelloError::Unreadable.into(),
        ),
        (hello(HOST)[..40].to_vec(), vec![], HelloError::Unreadable.into()),
        (
            vec![0x80, 46, 1, 3, 1, 0, 3, 0, 0, 0, 16],
            vec![0x80, 46, 1, 3],
            HelloError::Ssl2.into(),
        ),
    ]
}

fn requests_that_are_cut() -> Vec<Row> {
    let (http, other) = (Refusal::Tunnelled, || get("evil.example"));
    vec![
        (other(), text("GET / HTTP"), http(Unreadable::HostDiffers)),
        (
            [text("\r\n"), other()].concat(),
            text("\r\nGET / HTTP"),
            http(Unreadable::RequestLine),
        ),
        (
            [text("\n"), other()].concat(),
            text("\nGET / HTTP"),
            http(Unreadable::LineEnd),
        ),
        (
            [text("\x0c"), other()].concat(),
            text("\x0cGET / HTTP"),
            http(Unreadable::Byte),
        ),
        (
            [text(" "), other()].concat(),
            text(" GET / HTTP"),
            http(Unreadable::RequestLine),
        ),
        (
            text("GET http://evil.example/ HTTP/1.1\r\nHost: a.example.org\r\n\r\n"),
            text("GET http://evil.example/ HTTP"),
            http(Unreadable::HostDiffers),
        ),
        (
            text("GET / HTTP/1.1\nHost: evil.example\n\n"),
            text("GET / HTTP"),
            http(Unreadable::LineEnd),
        ),
        (
            text("GET / HTTP/1.1\rHost: evil.example\r\r"),
            text("GET / HTTP"),
            http(Unreadable::LineEnd),
        ),
        (text("GET /\n"), text("GET /"), http(Unreadable::LineEnd)),
        (text("GET /"), text("GET /"), http(Unreadable::Short)),
        (
            text("GET / HTTP/1.1\r\nHost: a.exam"),
            text("GET / HTTP"),
            http(Unreadable::Short),
        ),
        (
            text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            text("PRI * HTTP"),
            http(Unreadable::Version),
        ),
        (
            text("CONNECT evil.example:443 HTTP/1.1\r\nHost: a.example.org\r\n\r\n"),
            text("CONNECT evil.example:443 HTTP"),
            http(Unreadable::Nested),
        ),
        ([get(HOST), other()].concat(), get(HOST), http(Unreadable::HostDiffers)),
        (
            [get(HOST), text("\r\n"), other()].concat(),
            get(HOST),
            http(Unreadable::RequestLine),
        ),
        (
            [get(HOST), vec![0x16, 3, 1]].concat(),
            get(HOST),
            http(Unreadable::Byte),
        ),
        (vec![b'a'; 70_000], vec![b'a'; 1 << 16], http(Unreadable::TooLong)),
    ]
}

fn bodies_that_are_cut() -> Vec<Row> {
    let (http, other) = (Refusal::Tunnelled, || get("evil.example"));
    vec![
        (
            [post("Content-Length: 3", "abc"), other()].concat(),
            post("Content-Length: 3", "abc"),
            http(Unreadable::HostDiffers),
        ),
        (
            [post("Content-Length: 0", ""), other()].concat(),
            post("Content-Length: 0", ""),
            http(Unreadable::HostDiffers),
        ),
        (
            [post("Transfer-Encoding: chunked", "0\r\n\r\n"), other()].concat(),
            post("Transfer-Encoding: chunked", "0\r\n\r\n"),
            http(Unreadable::HostDiffers),
        ),
        (
            [post("Transfer-Encoding: chunked", "0\n\n"), other()].concat(),
            post("Transfer-Encoding: chunked", "0"),
            http(Unreadable::Chunk),
        ),
        (
            [post("Transfer-Encoding: chunked", "1;\n"), other()].concat(),
            post("Transfer-Encoding: chunked", "1"),
            http(Unreadable::Chunk),
        ),
        (
            [
                post("Transfer-Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n"),
                other(),
            ]
            .concat(),
            text("POST / HTTP"),
            http(Unreadable::Length),
        ),
        (
            [post("Transfer-Encoding: identity, chunked", "0\r\n\r\n"), other()].concat(),
            text("POST / HTTP"),
            http(Unreadable::Encoding),
        ),
        (
            [post("Content-Length: 3\r\nContent-Length: 0", "abc"), other()].concat(),
            text("POST / HTTP"),
            http(Unreadable::Length),
        ),
    ]
}

#[test]
fn what_names_another_host_is_cut_before_it_is_sent() {
    let rows = [hellos_that_are_cut(), requests_that_are_cut(), bodies_that_are_cut()].concat();
    runtime().block_on(async {
        for (bytes, may_pass, why) in rows {
            for pieces in [0, 1 << 20, 11, 1] {
                if bytes.len() > 1000 && pieces < 1000 {
                    continue;
                }
                let (server, client, tunnelled) = sent(HOST, &bytes, pieces).await;
                let what = format!("{} by {pieces}", bytes[..bytes.len().min(200)].escape_ascii());
                assert!(may_pass.starts_with(&server), "{what}: got {}", server.escape_ascii());
                assert_eq!(tunnelled.outcome, AttemptResult::Refused(why.clone()), "{what}");
                match &why {
                    Refusal::Hello(HelloError::Differs(_)) => assert_eq!(client, [0x15, 3, 3, 0, 2, 2, 112], "{what}"),
                    Refusal::Hello(HelloError::Unreadable) => assert_eq!(client, [0x15, 3, 3, 0, 2, 2, 50], "{what}"),
                    Refusal::Tunnelled(_) => {
                        let text = String::from_utf8(client).unwrap();
                        assert!(
                            text.starts_with("HTTP/1.1 403 stockade: a.example.org:8080 HTTP in the tunnel: "),
                            "{text}"
                        );
                    }
                    _ => assert_eq!(client, b"", "{what}"),
                }
            }
        }
    });
}

#[test]
fn an_address_that_was_asked_for_is_not_named_in_its_tunnel() {
    runtime().block_on(async {
        let (server, _, tunnelled) = sent("192.0.2.1", &hello("a.example.org"), 20).await;
        assert_eq!(server, b"");
        assert_eq!(
            tunnelled.outcome,
            AttemptResult::Refused(HelloError::Named("a.example.org".into()).into())
        );
        let (_, _, tunnelled) = sent("192.0.2.1", &nameless(), 20).await;
        assert_eq!(tunnelled.content, TunnelContent::NamelessTls);
        let (_, _, tunnelled) = sent("192.0.2.1", &get("192.0.2.1:8080"), 20).await;
        assert_eq!(tunnelled.outcome, AttemptResult::Passed(End::Closed));
        let (_, _, tunnelled) = sent("192.0.2.1", &get("a.example.org"), 20).await;
        assert_eq!(
            tunnelled.outcome,
            AttemptResult::Refused(Refusal::Tunnelled(Unreadable::HostDiffers))
        );
    });
}

#[test]
fn a_second_hello_is_looked_at_too() {
    let first = hello("a.example.org");
    let cipher = [0x14, 3, 3, 0, 1, 1];
    let early_data = [0x17, 3, 3, 0, 3, 1, 2, 3];
    runtime().block_on(async {
        for second in [
            hello("evil.example"),
            fragmented("evil.example", 3),
            [cipher.to_vec(), hello("evil.example")].concat(),
            [early_data.to_vec(), cipher.to_vec(), fragmented("evil.example", 40)].concat(),
        ] {
            let mut ends = open("a.example.org", b"", PATIENCE).await;
            // All at once: it waits for the server's word.
            ends.client.write_all(&[first.clone(), second].concat()).await.unwrap();
            ends.server_gets(&first).await;
            ends.server_waits().await;
            ends.server.write_all(&greeting(2, again())).await.unwrap();
            let got = all(&mut ends.server).await;
            assert!(!got.windows(4).any(|part| part == b"evil"), "{}", got.escape_ascii());
            let refused = ends.end().await.0;
            assert_eq!(
                refused.outcome,
                AttemptResult::Refused(HelloError::Differs("evil.example".into()).into())
            );
        }
        let mut ends = open("a.example.org", b"", PATIENCE).await;
        ends.client.write_all(&first).await.unwrap();
        ends.server_gets(&first).await;
        ends.server.write_all(&greeting(2, again())).await.unwrap();
        let rest = [
            cipher.to_vec(),
            first.clone(),
            vec![0x17, 3, 3, 0, 1, 9],
            b"whatever".to_vec(),
        ]
        .concat();
        ends.client.write_all(&rest).await.unwrap();
        ends.server_gets(&rest).await;
        // Where the server goes on, what follows is encrypted, whatever it looks like.
        let mut ends = open("a.example.org", b"", PATIENCE).await;
        ends.client.write_all(&first).await.unwrap();
        ends.server.write_all(&greeting(2, [7; 32])).await.unwrap();
        ends.client.write_all(&hello("evil.example")).await.unwrap();
        ends.server_gets(&[first.clone(), hello("evil.example")].concat()).await;
    });
}

#[test]
fn a_connection_that_is_upgraded_is_looked_at_no_more() {
    let ask = b"GET / HTTP/1.1\r\nHost: a.example.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    runtime().block_on(async {
        let mut ends = open("a.example.org", ask, PATIENCE).await;
        ends.server_gets(ask).await;
        ends.client.write_all(b"\x81\x85GET / HTTP/1.1").await.unwrap();
        ends.server_waits().await;
        let answer = b"HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
        ends.server.write_all(answer).await.unwrap();
        ends.client_gets(answer).await;
        ends.server_gets(b"\x81\x85GET / HTTP/1.1").await;
        ends.client.shutdown().await.unwrap();
        assert_eq!(all(&mut ends.server).await, b"");
        ends.server.shutdown().await.unwrap();
        assert_eq!(all(&mut ends.client).await, b"");
        assert_eq!(ends.end().await.0.content, TunnelContent::Upgraded);
        // A server that does not want to is asked in HTTP again.
        let mut ends = open("a.example.org", ask, PATIENCE).await;
        ends.server_gets(ask).await;
        ends.client.write_all(&get("evil.example")).await.unwrap();
        ends.server_waits().await;
        ends.server
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .await
            .unwrap();
        assert_eq!(all(&mut ends.server).await, b"");
        let refused = ends.end().await.0;
        assert_eq!(
            refused.outcome,
            AttemptResult::Refused(Refusal::Tunnelled(Unreadable::HostDiffers))
        );
    });
}

#[test]
fn a_server_may_speak_first_and_a_client_wait_within_a_line() {
    runtime().block_on(async {
        let mut ends = open("a.example.org", b"", PATIENCE).await;
        ends.server.write_all(b"220 mail.example.org\r\n").await.unwrap();
        ends.client_gets(b"220 mail.example.org\r\n").await;
        ends.client.write_all(b"EH").await.unwrap();
        ends.server_gets(b"EH").await;
        ends.client.write_all(b"LO me\r\nMAIL").await.unwrap();
        ends.server_gets(b"LO me\r\nMAIL").await;
        drop(ends.client);
        assert_eq!(all(&mut ends.server).await, b"");
        drop(ends.server);
        let (tunnelled, up, down) = ends.ended.await.unwrap();
        assert_eq!((tunnelled.content, up, down), (TunnelContent::Other, 13, 22));
    });
}

#[test]
fn either_side_may_end_before_the_other() {
    runtime().block_on(async {
        let mut ends = open("a.example.org", b"\0ask", PATIENCE).await;
        ends.client.shutdown().await.unwrap();
        assert_eq!(all(&mut ends.server).await, b"\0ask");
        ends.server.write_all(b"answer").await.unwrap();
        ends.server.shutdown().await.unwrap();
        assert_eq!(all(&mut ends.client).await, b"answer");
        assert_eq!(ends.end().await.0.outcome, AttemptResult::Passed(End::Closed));
        let mut ends = open("a.example.org", b"", PATIENCE).await;
        ends.server.write_all(b"bye").await.unwrap();
        ends.server.shutdown().await.unwrap();
        assert_eq!(all(&mut ends.client).await, b"bye");
        ends.client.write_all(b"\0more").await.unwrap();
        ends.client.shutdown().await.unwrap();
        assert_eq!(all(&mut ends.server).await, b"\0more");
        assert_eq!(
            ends.end().await,
            (
                Tunnelled {
                    outcome: AttemptResult::Passed(End::Closed),
                    content: TunnelContent::Other
                },
                5,
                3,
            )
        );
    });
}

#[test]
fn whoever_breaks_off_is_told_of() {
    runtime().block_on(async {
        let ends = open("a.example.org", b"\0", PATIENCE).await;
        ends.client.set_zero_linger().unwrap();
        let Ends {
            client,
            mut server,
            ended,
            ..
        } = ends;
        drop(client);
        all(&mut server).await;
        assert_eq!(ended.await.unwrap().0.outcome, AttemptResult::Passed(End::ClientClosed));
        let ends = open("a.example.org", b"\0", PATIENCE).await;
        ends.server.set_zero_linger().unwrap();
        let Ends {
            mut client,
            server,
            ended,
            ..
        } = ends;
        drop(server);
        all(&mut client).await;
        assert_eq!(ended.await.unwrap().0.outcome, AttemptResult::Passed(End::ServerClosed));
    });
}

#[test]
fn a_client_that_ends_while_the_server_thinks_is_noticed() {
    runtime().block_on(async {
        let mut ends = open("a.example.org", &hello("a.example.org"), PATIENCE).await;
        ends.client.shutdown().await.unwrap();
        assert_eq!(all(&mut ends.server).await, hello("a.example.org"));
        drop(ends.server);
        assert_eq!(ends.ended.await.unwrap().0.outcome, AttemptResult::Passed(End::Closed));
    });
}

#[test]
fn a_tunnel_in_which_nothing_moves_is_closed() {
    runtime().block_on(async {
        for early in [b"".as_slice(), b"\x16\x03", b"GET / HTTP/1.1\r\n", b"\0\0"] {
            let mut ends = open("a.example.org", early, Duration::from_millis(150)).await;
            assert_eq!(all(&mut ends.client).await, b"");
            assert_eq!(ends.end().await.0.outcome, AttemptResult::Passed(End::Idle));
        }
        // Something moves before the time is over.
        comes_to(&"........".to_owned(), async |time| {
            let mut ends = open("a.example.org", b"", time).await;
            for _ in 0..8 {
                sleep(time / 3).await;
                // It is closed on a machine that is too busy for that.
                let _closed = ends.server.write_all(b".").await;
            }
            drop(ends.server);
            String::from_utf8(all(&mut ends.client).await).unwrap()
        })
        .await;
    });
}

#[test]
fn a_hello_and_a_head_have_their_time_from_their_first_byte_on() {
    const SHORT: Duration = Duration::from_millis(150);
    let bounds = Bounds {
        head_time: SHORT,
        idle: PATIENCE,
        ..Bounds::default()
    };
    let late = AttemptResult::Refused(HelloError::Slow.into());
    let slow = AttemptResult::Refused(Refusal::Tunnelled(Unreadable::Slow));
    let (first, whole) = (hello("a.example.org"), get("a.example.org"));
    runtime().block_on(async {
        for (early, said, rest, drip, outcome) in [
            (first[..9].to_vec(), vec![], vec![], 1, &late),
            (b"GET / HTTP/1.1\r\nHo".to_vec(), vec![], vec![], b's', &slow),
            (first.clone(), greeting(2, again()), first[..9].to_vec(), 1, &late),
            (whole.clone(), vec![], b"GET / HTTP/1.1\r\nHo".to_vec(), b's', &slow),
        ] {
            let mut ends = open_within("a.example.org", &early, bounds).await;
            ends.server.write_all(&said).await.unwrap();
            ends.client_gets(&said).await;
            // A byte now and then makes no more time.
            ends.client.write_all(&rest).await.unwrap();
            while !ends.ended.is_finished() {
                sleep(SHORT / 5).await;
                let _cut = ends.client.write_all(&[drip]).await;
            }
            assert_eq!(&ends.end().await.0.outcome, outcome, "{}", early.escape_ascii());
        }
        // What turns out to be a head has begun with its first byte.
        let mut ends = open_within("a.example.org", b"GET ", bounds).await;
        sleep(2 * SHORT).await;
        ends.client.write_all(b"/ HTTP/1.1\r\n").await.unwrap();
        assert_eq!(ends.end().await.0.outcome, slow);
    });
}

#[test]
fn a_tunnel_that_waits_for_no_hello_and_no_head_has_the_time_of_others() {
    const SHORT: Duration = Duration::from_millis(60);
    let bounds = Bounds {
        head_time: SHORT,
        idle: PATIENCE,
        ..Bounds::default()
    };
    let upgrade = b"GET / HTTP/1.1\r\nHost: a.example.org\r\nUpgrade: websocket\r\n\r\n";
    let posted = post("Content-Length: 9", "abc");
    runtime().block_on(async {
        for early in [
            b"".as_slice(),
            b"a word without an end",
            b"\0",
            &hello("a.example.org"),
            &get("a.example.org"),
            &posted,
            upgrade,
        ] {
            let mut ends = open_within("a.example.org", early, bounds).await;
            sleep(3 * SHORT).await;
            ends.server.write_all(b"the server speaks").await.unwrap();
            ends.client_gets(b"the server speaks").await;
            ends.stop.cancel();
            let outcome = ends.end().await.0.outcome;
            assert_eq!(outcome, AttemptResult::Passed(End::Stopped), "{}", early.escape_ascii());
        }
        // How long a server takes is not the client's time.
        let first = hello("a.example.org");
        let mut ends = open_within("a.example.org", &[&first[..], &first[..9]].concat(), bounds).await;
        ends.server_gets(&first).await;
        sleep(3 * SHORT).await;
        ends.client.write_all(&first[9..]).await.unwrap();
        ends.server.write_all(&greeting(2, again())).await.unwrap();
        ends.server_gets(&first).await;
    });
}

#[test]
fn a_tunnel_that_is_stopped_says_what_it_moved() {
    runtime().block_on(async {
        let mut ends = open("a.example.org", b"\0\0\0", PATIENCE).await;
        ends.server_gets(b"\0\0\0").await;
        ends.server.write_all(b"hello").await.unwrap();
        ends.client_gets(b"hello").await;
        ends.stop.cancel();
        let outcome = AttemptResult::Passed(End::Stopped);
        assert_eq!(
            ends.end().await,
            (
                Tunnelled {
                    outcome,
                    content: TunnelContent::Other
                },
                3,
                5
            )
        );
    });
}

#[test]
fn no_more_is_taken_than_the_other_side_takes() {
    const ALL: usize = 64 << 20;
    runtime().block_on(async {
        let mut ends = open("a.example.org", b"", PATIENCE).await;
        let piece = vec![0xff; 1 << 20];
        // Nobody reads there: what fits into the sockets and the buffer is taken, and then no more.
        let mut taken = 0;
        while let Ok(written) = timeout(Duration::from_millis(300), ends.client.write(&piece)).await {
            taken += written.unwrap();
            assert!(taken < ALL);
        }
        ends.client.shutdown().await.unwrap();
        assert_eq!(all(&mut ends.server).await.len(), taken);
        drop(ends.server);
        let (_, up, _) = ends.ended.await.unwrap();
        assert_eq!(up, taken as u64);
    });
}
