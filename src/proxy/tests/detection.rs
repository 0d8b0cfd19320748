use crate::policy::Host;
use crate::proxy::attempt::Refusal;
use crate::proxy::detect::{ProtocolDetector, TunnelProtocol, is_old_request};
use crate::proxy::first_reply::{FirstReply, FirstReplyReader};
use crate::proxy::http::head::Head;
use crate::proxy::tls::HelloError;
use crate::proxy::tunnelled_request::{AfterHead, Order, judge};
use crate::proxy::unreadable::Unreadable;

#[test]
fn a_tunnel_is_told_by_its_first_bytes() {
    use TunnelProtocol::{Http, Other, Tls};
    let rows: [(&[u8], Option<TunnelProtocol>); 67] = [
        (b"", None),
        (b"GET / HTTP/1.1\r\n", Some(Http)),
        (b"GET / HTTP/", Some(Http)),
        (b"GET / HTTP", None),
        (b"GET /", None),
        (b"get / http/1.1\r\n", Some(Http)),
        (b"anything * HtTp/9.9\r\n", Some(Http)),
        (b"X HTTP/", Some(Http)),
        (b"X hthttp/", Some(Http)),
        (b"\r\n\r\nGET / HTTP/1.1\r\n", Some(Http)),
        (b"\n \t GET / HTTP/1.1\r\n", Some(Http)),
        (b"\x0bGET / HTTP/1.1\r\n", Some(Http)),
        (b"\x1cGET / HTTP/1.1\r\n", Some(Http)),
        (b"\xa0GET / HTTP/1.1\r\n", Some(Http)),
        (b"GET\x0c/\x0cHTTP/1.1\r\n", Some(Http)),
        (b"GET\t/\tHTTP/1.1\r\n", Some(Http)),
        (b"GET /\rHTTP/1.1\r\n", Some(Http)),
        (b"GET /\0HTTP/1.1\r\n", Some(Http)),
        (b"GET /\xff\xfe HTTP/1.1\r\n", Some(Http)),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Some(Http)),
        (b"HTTP/1.1 200 OK\r\n", Some(Http)),
        (b"GET /\r\n", Some(Http)),
        (b"GET /\n", Some(Http)),
        (b"GET http://evil.example/\r\n", Some(Http)),
        (b"POST /x\r\n", Some(Http)),
        (b"\r\nGET /\r\n", Some(Http)),
        (b"OPTIONS rtsp://camera.example/ RTSP/1.0\r\n", Some(Http)),
        (b"\x16\x03\x01", Some(Tls)),
        (b"\x15\x03\x03\x00\x02", Some(Tls)),
        (b"\x14\x03\x03\x00\x01", Some(Tls)),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Some(Other)),
        (b"SSH-2.0-Open", None),
        (b"EHLO mail.example.org\r\n", Some(Other)),
        (b"EHLO mail.example.org", None),
        (b"get key\r\n", Some(Other)),
        (b"GET key\r\n", Some(Http)),
        (b"GET * RTSP/1.1\r\n", Some(Http)),
        (b"DESCRIBE /x rtsp/1.0\r\n", Some(Http)),
        (b"SOURCE /x ICE/1.1\r\n", Some(Http)),
        (b"GET SECRET\r\n", Some(Http)),
        (b"GET  ?x  \r\n", Some(Http)),
        (b"GET\r\n", Some(Other)),
        (b"OPTIONS\n", Some(Other)),
        (b"INVITE sip:a@b SIP/2.0\r\n", Some(Other)),
        (b"NICK somebody\r\n", Some(Other)),
        (b"*1\r\n$4\r\nPING\r\n", Some(Other)),
        (b"PING\r\n", Some(Other)),
        (b"0032git-upload-pack /project.git\0host=example.org\0", None),
        (b"{\"id\":1}", None),
        (b"{\"id\":1}\n", Some(Other)),
        (b"\0\0\0\x08\x04\xd2\x16\x2f", None),
        (b"\x05\x01\x00", None),
        (b"\x7fELF\x02\n", Some(Other)),
        (b"AMQP\0\0\x09\x01", None),
        (b"PK\x03\x04", None),
        (b"\x80\x05abc", None),
        (b"\x80\x05\x01", None),
        (b"\x01GET / HTTP/1.1\r\n", Some(Http)),
        (b"\0\nGET / HTTP/1.1\r\n", Some(Http)),
        (b"\x1bGET /\n", Some(Http)),
        (b"\x80GET\x85/\n", Some(Http)),
        (b"GET\0/\n", Some(Http)),
        (b"(GET) / HTTP/1.1\r\n", Some(Http)),
        (b"\xef\xbb\xbfGET / HTTP/1.1\r\n", Some(Http)),
        (b"{\"a\": \"b\"} x HTTP/1.1\r\n", Some(Http)),
        (b"PROXYING\r\n", Some(Other)),
        (b"\r\n\r\n\0\r\nQUIT\r\n", Some(Other)),
    ];
    for (bytes, expected) in rows {
        assert_eq!(
            ProtocolDetector::default().detect(bytes),
            Ok(expected),
            "{}",
            bytes.escape_ascii()
        );
        let mut look = ProtocolDetector::default();
        let slowly = (1..=bytes.len()).find_map(|end| look.detect(&bytes[..end]).unwrap());
        assert_eq!(slowly, expected, "{} byte by byte", bytes.escape_ascii());
    }
}

#[test]
fn a_tunnel_may_not_begin_with_ssl2() {
    assert_eq!(
        ProtocolDetector::default().detect(&[0x80, 46, 1, 3, 1, 0, 21]),
        Err(HelloError::Ssl2.into())
    );
}

#[test]
fn a_tunnel_may_not_begin_as_a_proxy_does() {
    let prefaces: [&[u8]; 6] = [
        b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\n",
        b"PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n\x16\x03\x01",
        b"PROXY UNKNOWN\r\n",
        b" PROXY\tUNKNOWN\n",
        b"PROXY x HTTP/1.1\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c",
    ];
    for preface in prefaces {
        let refused = Err(Refusal::Tunnelled(Unreadable::Preface));
        assert_eq!(
            ProtocolDetector::default().detect(preface),
            refused,
            "{}",
            preface.escape_ascii()
        );
        let mut look = ProtocolDetector::default();
        let slowly = (1..=preface.len()).map(|end| look.detect(&preface[..end]));
        let slowly = slowly.into_iter().find(|protocol| *protocol != Ok(None));
        assert_eq!(slowly, Some(refused), "{} byte by byte", preface.escape_ascii());
    }
}

#[test]
fn a_first_line_without_end_is_bounded() {
    let refused = Err(Refusal::Tunnelled(Unreadable::TooLong));
    for piece in [b"aaaa".as_slice(), b"GET ", b"a\x0b\x1c ", b" \r\n\0"] {
        let long = piece.repeat(1 << 14);
        assert_eq!(ProtocolDetector::default().detect(&long[..(1 << 16) - 1]), Ok(None));
        assert_eq!(
            ProtocolDetector::default().detect(&long),
            refused,
            "{}",
            piece.escape_ascii()
        );
    }
    for piece in [b"\x7fELF".as_slice(), b"AMQP\0\0\x09\x01", b"{\"a\"", b"a \x04b"] {
        let long = piece.repeat(1 << 14);
        assert_eq!(
            ProtocolDetector::default().detect(&long),
            Ok(Some(TunnelProtocol::Other)),
            "{}",
            piece.escape_ascii()
        );
    }
}

#[test]
fn a_line_that_ends_with_its_connection_can_be_a_request_too() {
    assert!(is_old_request(b"GET /"));
    assert!(is_old_request(b"GET http://evil.example/"));
    assert!(!is_old_request(b"EHLO mail.example.org"));
    assert!(!is_old_request(b""));
}

/// Heads of requests in a tunnel to port 8080 of `web.example.org`, without their last line.
const REQUESTS: [(&str, Result<AfterHead, Unreadable>); 40] = [
    ("GET / HTTP/1.1\r\nHost: web.example.org\r\n", Ok(AfterHead::Body)),
    ("GET / HTTP/1.1\r\nHost: web.example.org:8080\r\n", Ok(AfterHead::Body)),
    ("GET / HTTP/1.1\r\nHost: WEB.Example.org.\r\n", Ok(AfterHead::Body)),
    (
        "GET /?a=http://evil.example/ HTTP/1.1\r\nHost: web.example.org\r\n",
        Ok(AfterHead::Body),
    ),
    ("OPTIONS * HTTP/1.1\r\nHost: web.example.org\r\n", Ok(AfterHead::Body)),
    (
        "POST / HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: 3\r\n",
        Ok(AfterHead::Body),
    ),
    (
        "GET http://web.example.org/ HTTP/1.1\r\nHost: web.example.org\r\n",
        Ok(AfterHead::Body),
    ),
    (
        "GET http://web.example.org:8080/ HTTP/1.1\r\nHost: web.example.org\r\n",
        Ok(AfterHead::Body),
    ),
    ("GET / HTTP/1.0\r\n", Ok(AfterHead::Body)),
    ("GET / HTTP/1.0\r\nHost: web.example.org\r\n", Ok(AfterHead::Body)),
    ("GET / HTTP/1.1\r\nHost: evil.example\r\n", Err(Unreadable::HostDiffers)),
    ("GET / HTTP/1.1\r\nHost: example.org\r\n", Err(Unreadable::HostDiffers)),
    (
        "GET / HTTP/1.1\r\nHost: a.web.example.org\r\n",
        Err(Unreadable::HostDiffers),
    ),
    (
        "GET / HTTP/1.1\r\nHost: web.example.org:80\r\n",
        Err(Unreadable::HostDiffers),
    ),
    ("GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n", Err(Unreadable::HostDiffers)),
    ("GET / HTTP/1.0\r\nHost: evil.example\r\n", Err(Unreadable::HostDiffers)),
    ("GET / HTTP/1.1\r\n", Err(Unreadable::HostMissing)),
    (
        "GET / HTTP/1.1\r\nHost: web.example.org\r\nHost: evil.example\r\n",
        Err(Unreadable::HostTwice),
    ),
    (
        "GET / HTTP/1.1\r\nHost: web.example.org\r\nhost: web.example.org\r\n",
        Err(Unreadable::HostTwice),
    ),
    (
        "GET / HTTP/1.1\r\nHost : evil.example\r\nHost: web.example.org\r\n",
        Err(Unreadable::Header),
    ),
    (
        "GET / HTTP/1.1\r\n Host: evil.example\r\nHost: web.example.org\r\n",
        Err(Unreadable::Header),
    ),
    ("GET / HTTP/1.1\r\nHost: me@web.example.org\r\n", Err(Unreadable::User)),
    (
        "GET http://evil.example/ HTTP/1.1\r\nHost: web.example.org\r\n",
        Err(Unreadable::HostDiffers),
    ),
    (
        "GET HTTP://evil.example/ HTTP/1.1\r\nHost: web.example.org\r\n",
        Err(Unreadable::HostDiffers),
    ),
    (
        "GET http://web.example.org/ HTTP/1.1\r\nHost: evil.example\r\n",
        Err(Unreadable::HostDiffers),
    ),
    (
        "GET http://web.example.org@evil.example/ HTTP/1.1\r\nHost: web.example.org\r\n",
        Err(Unreadable::User),
    ),
    (
        "GET https://web.example.org/ HTTP/1.1\r\nHost: web.example.org\r\n",
        Err(Unreadable::Scheme),
    ),
    (
        "GET //evil.example/ HTTP/1.1\r\nHost: web.example.org\r\n",
        Err(Unreadable::Target),
    ),
    (
        "GET evil.example HTTP/1.1\r\nHost: web.example.org\r\n",
        Err(Unreadable::Target),
    ),
    (
        "GET \\\\evil.example HTTP/1.1\r\nHost: web.example.org\r\n",
        Err(Unreadable::Target),
    ),
    (
        "CONNECT evil.example:443 HTTP/1.1\r\nHost: web.example.org\r\n",
        Err(Unreadable::Nested),
    ),
    (
        "CONNECT web.example.org:8080 HTTP/1.1\r\nHost: web.example.org:8080\r\n",
        Err(Unreadable::Nested),
    ),
    ("GET / HTTP/2.0\r\nHost: web.example.org\r\n", Err(Unreadable::Version)),
    ("GET / HTTP/1.2\r\nHost: web.example.org\r\n", Err(Unreadable::Version)),
    (
        "GET / HTTP/1.1\r\nHost: web.example.org\r\nUpgrade: websocket\r\n",
        Ok(AfterHead::Upgrade),
    ),
    (
        "GET / HTTP/1.1\r\nHost: web.example.org\r\nUpgrade: WebSocket\r\n",
        Ok(AfterHead::Upgrade),
    ),
    (
        "GET / HTTP/1.1\r\nHost: web.example.org\r\nUpgrade: h2c\r\n",
        Err(Unreadable::Upgrade),
    ),
    (
        "GET / HTTP/1.1\r\nHost: web.example.org\r\nUpgrade: websocket, h2c\r\n",
        Err(Unreadable::Upgrade),
    ),
    (
        "GET / HTTP/1.1\r\nHost: web.example.org\r\nUpgrade: websocket\r\nUpgrade: TLS/1.0\r\n",
        Err(Unreadable::Upgrade),
    ),
    (
        "POST / HTTP/1.1\r\nHost: web.example.org\r\nUpgrade: websocket\r\nContent-Length: 9\r\n",
        Err(Unreadable::Upgrade),
    ),
];

#[test]
fn requests_in_tunnels_name_the_host_that_was_asked_for() {
    let host = Host::parse("web.example.org").unwrap();
    for (head, expected) in REQUESTS {
        let judged =
            |order| Head::read(format!("{head}\r\n").as_bytes()).and_then(|head| judge(&head, order, &host, 8080));
        assert_eq!(judged(Order::First), expected, "{head}");
        let later = match expected {
            Ok(AfterHead::Upgrade) => Err(Unreadable::LateUpgrade),
            other => other,
        };
        assert_eq!(judged(Order::Later), later, "{head}");
    }
}

#[test]
fn an_address_that_was_asked_for_is_what_requests_name() {
    let judged = |named: &str, host: &str| {
        let head = Head::read(format!("GET / HTTP/1.1\r\nHost: {named}\r\n\r\n").as_bytes())?;
        judge(&head, Order::First, &Host::parse(host).unwrap(), 80)
    };
    assert_eq!(judged("192.0.2.1", "192.0.2.1"), Ok(AfterHead::Body));
    assert_eq!(judged("[2001:db8::1]:80", "2001:db8::1"), Ok(AfterHead::Body));
    assert_eq!(judged("[::ffff:192.0.2.1]", "192.0.2.1"), Ok(AfterHead::Body));
    assert_eq!(judged("web.example.org", "192.0.2.1"), Err(Unreadable::HostDiffers));
    assert_eq!(judged("192.0.2.2", "192.0.2.1"), Err(Unreadable::HostDiffers));
    assert!(judged("0300.0.2.1", "192.0.2.1").is_err());
}

#[test]
fn what_a_server_says_first_is_understood() {
    let again = super::hellos::greeting(2, super::hellos::again());
    let rows: [(&[u8], Option<FirstReply>); 16] = [
        (b"HTTP/1.1 101 Switching Protocols\r\n", Some(FirstReply::Switched)),
        (b"HTTP/1.1 200 OK\r\n", Some(FirstReply::Other)),
        (b"HTTP/1.1 403 No\r\n", Some(FirstReply::Other)),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 Switching\r\n",
            Some(FirstReply::Switched),
        ),
        (
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n",
            Some(FirstReply::Other),
        ),
        (b"HTTP/1.1 103 Early Hints\r\nX: HTTP/1.1 101\r\n", None),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n", None),
        (b"HTTP/1.1 10", None),
        (b"HTT", None),
        (b"HTTPS/1.1 101", Some(FirstReply::Other)),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Some(FirstReply::Other)),
        (b"220 mail.example.org\r\n", Some(FirstReply::Other)),
        (b"\0", Some(FirstReply::Other)),
        (b"\x15\x03\x03\x00\x02\x02\x28", None),
        (&again, Some(FirstReply::Retry)),
        (b"\x16\x03\x03\x00\x7a\x0b", Some(FirstReply::Other)),
    ];
    for (bytes, expected) in rows {
        let mut answering = FirstReplyReader::default();
        let slowly = bytes.iter().find_map(|byte| answering.feed(&[*byte]));
        assert_eq!(slowly, expected, "{} byte by byte", bytes.escape_ascii());
        assert_eq!(
            FirstReplyReader::default().feed(bytes),
            expected,
            "{}",
            bytes.escape_ascii()
        );
    }
    let hints = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(4000);
    assert_eq!(FirstReplyReader::default().feed(&hints), Some(FirstReply::Other));
}
