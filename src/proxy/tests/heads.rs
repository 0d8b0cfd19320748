//! The readers of heads, targets and bodies, alone.

use crate::policy::hosts::HostError;
use crate::proxy::Unreadable::{self, *};
use crate::proxy::http::body::{Body, Piece};
use crate::proxy::http::head::{Finder, Framing, Head};
use crate::proxy::http::target::{Request, RequestKind};
use crate::proxy::parser_laws::Reader;

fn read(bytes: &[u8]) -> Result<(Head, Request), Unreadable> {
    let end = Finder::default().find(bytes)?.ok_or(Short)?;
    let head = Head::read(&bytes[..end])?;
    let request = Request::of(&head)?;
    Ok((head, request))
}

const UNREADABLE: &[(&str, Unreadable)] = &[
    // Lines.
    ("GET http://a.example/ HTTP/1.1\nHost: a.example\r\n\r\n", LineEnd),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\n\r\n", LineEnd),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\r\n\r\n", LineEnd),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\rX: y\r\n\r\n",
        LineEnd,
    ),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\n", LineEnd),
    (
        "\r\nGET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        RequestLine,
    ),
    ("\nGET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", LineEnd),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a\0.example\r\n\r\n", Byte),
    ("GET http://a.example/\x01 HTTP/1.1\r\nHost: a.example\r\n\r\n", Byte),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: \x7f\r\n\r\n",
        Byte,
    ),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: \x0b\r\n\r\n",
        Byte,
    ),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n", Short),
    // The first one.
    ("GET /\r\n", RequestLine),
    ("GET  http://a.example/ HTTP/1.1\r\n\r\n", RequestLine),
    ("GET http://a.example/  HTTP/1.1\r\n\r\n", RequestLine),
    ("GET\thttp://a.example/\tHTTP/1.1\r\n\r\n", RequestLine),
    (" GET http://a.example/ HTTP/1.1\r\n\r\n", RequestLine),
    ("GET http://a.example/ b HTTP/1.1\r\n\r\n", RequestLine),
    ("GET http://a.example/ HTTP/1.1 \r\n\r\n", RequestLine),
    ("G(T http://a.example/ HTTP/1.1\r\n\r\n", RequestLine),
    ("GET http://a.example/ http/1.1\r\n\r\n", RequestLine),
    ("GET http://a.example/\u{e9} HTTP/1.1\r\n\r\n", RequestLine),
    ("GET http://a.example/ HTTP/1.2\r\n\r\n", Version),
    ("GET http://a.example/ HTTP/2\r\n\r\n", Version),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Version),
    // Headers.
    ("GET http://a.example/ HTTP/1.1\r\nHost : a.example\r\n\r\n", Header),
    ("GET http://a.example/ HTTP/1.1\r\n Host: a.example\r\n\r\n", Header),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: y\r\n z\r\n\r\n",
        Header,
    ),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: y\r\n\tz\r\n\r\n",
        Header,
    ),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n: y\r\n\r\n",
        Header,
    ),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX\r\n\r\n", Header),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX\u{e9}: y\r\n\r\n",
        Header,
    ),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: ,,,,,,,,,,,,,,,,\r\nProxy-Connection: ,,,,,,,,,,,,,,,\r\n\r\n",
        TooManyNamed,
    ),
    ("GET http://a.example/ HTTP/1.1\r\n\r\n", HostMissing),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nhost: a.example\r\n\r\n",
        HostTwice,
    ),
    ("GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", HostDiffers),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n",
        HostDiffers,
    ),
    (
        "GET http://a.example:81/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        HostDiffers,
    ),
    ("GET http://a.example/ HTTP/1.0\r\nHost: b.example\r\n\r\n", HostDiffers),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example, b.example\r\n\r\n",
        Host(HostError::Character),
    ),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost:\r\n\r\n",
        Host(HostError::Empty),
    ),
    ("GET http://a.example/ HTTP/1.1\r\nHost: u@a.example\r\n\r\n", User),
    (
        "CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n",
        HostDiffers,
    ),
    (
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:444\r\n\r\n",
        HostDiffers,
    ),
    ("CONNECT a.example:443 HTTP/1.1\r\n\r\n", HostMissing),
    (
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nExpect: 200-ok\r\n\r\n",
        Expect,
    ),
    // Lengths.
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        Length,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        Length,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1, 1\r\n\r\n",
        Length,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: +1\r\n\r\n",
        Length,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: -1\r\n\r\n",
        Length,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0x1\r\n\r\n",
        Length,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1 1\r\n\r\n",
        Length,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length:\r\n\r\n",
        Length,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 18446744073709551617\r\n\r\n",
        Length,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        Encoding,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: xchunked\r\n\r\n",
        Encoding,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked;\r\n\r\n",
        Encoding,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
        Encoding,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding : chunked\r\n\r\n",
        Header,
    ),
    (
        "POST http://a.example/ HTTP/1.0\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n",
        Encoding,
    ),
    (
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nContent-Length: 3\r\n\r\n",
        ConnectBody,
    ),
    (
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nTransfer-Encoding: chunked\r\n\r\n",
        ConnectBody,
    ),
];

#[test]
fn what_can_be_read_in_two_ways_is_not_read() {
    for (text, why) in UNREADABLE {
        assert_eq!(read(text.as_bytes()).map(|_| ()), Err(*why), "{text:?}");
    }
}

const TARGETS: &[(&str, Unreadable)] = &[
    ("GET /", NoHost),
    ("GET //a.example/", NoHost),
    ("OPTIONS *", NoHost),
    ("GET a.example", Target),
    ("GET http:/a.example/", Target),
    ("GET http:a.example/", Target),
    ("GET a.example:80", Target),
    ("GET https://a.example/", Scheme),
    ("GET ftp://a.example/", Scheme),
    ("GET file:///etc/passwd", Scheme),
    ("GET http://", Host(HostError::Empty)),
    ("GET http:///a.example/", Host(HostError::Empty)),
    ("GET http://?a.example/", Host(HostError::Empty)),
    ("GET http://u@a.example/", User),
    ("GET http://u:p@a.example/", User),
    ("GET http://a.example@b.example/", User),
    ("GET http://a.example\\@b.example/", User),
    ("GET http://a.example\\.b.example/", Host(HostError::Character)),
    ("GET http://a.example%2eb.example/", Host(HostError::Character)),
    ("GET http://a.example%00.b.example/", Host(HostError::Character)),
    ("GET http://a.example#b.example/", Target),
    ("GET http://a.example/#b", Target),
    ("GET http://a.example:/", Port),
    ("GET http://a.example:0/", Port),
    ("GET http://a.example:080/", Port),
    ("GET http://a.example:65536/", Port),
    ("GET http://a.example:+80/", Port),
    ("GET http://a.example:80:80/", Port),
    ("GET http://a..example/", Host(HostError::Empty)),
    ("GET http://*/", Host(HostError::Character)),
    // Numbers that some program reads as an address.
    ("GET http://0x7f.0.0.1/", Host(HostError::Number)),
    ("GET http://0x7f000001/", Host(HostError::Number)),
    ("GET http://0177.0.0.1/", Host(HostError::Number)),
    ("GET http://127.1/", Host(HostError::Number)),
    ("GET http://2130706433/", Host(HostError::Number)),
    ("GET http://127.0.0.1./", Host(HostError::Number)),
    ("GET http://[::1/", Host(HostError::Brackets)),
    ("GET http://[::1]x/", Port),
    ("GET http://x[::1]/", Host(HostError::Brackets)),
    ("GET http://[fe80::1%25eth0]/", Host(HostError::Brackets)),
    ("GET http://::1/", Host(HostError::Empty)),
    ("CONNECT a.example", Port),
    ("CONNECT a.example:", Port),
    ("CONNECT http://a.example:443", Target),
    ("CONNECT a.example:443/", Target),
    ("CONNECT /", Target),
    ("CONNECT u@a.example:443", User),
    ("CONNECT a.example:443@b.example:443", User),
    ("CONNECT ::1:443", Host(HostError::Empty)),
    ("CONNECT [::1]", Port),
    ("CONNECT :443", Host(HostError::Empty)),
    ("CONNECT a.example:https", Port),
    ("CONNECT a.example,b.example:443", Host(HostError::Character)),
];

#[test]
fn a_target_names_one_host_in_one_way_or_none() {
    for (start, why) in TARGETS {
        // Without a Host header, which would be another reason.
        let text = format!("{start} HTTP/1.0\r\n\r\n");
        let got = read(text.as_bytes()).map(|(_, request)| request);
        assert_eq!(got, Err(*why), "{start}");
    }
}

#[test]
fn a_readable_request_has_one_canonical_place() {
    for (text, place, path) in [
        (
            "GET http://A.Example/ HTTP/1.1\r\nHost: a.example.\r\n\r\n",
            "a.example:80",
            "/",
        ),
        (
            "GET HTTP://a.example:80 HTTP/1.1\r\nHost:  a.example\t\r\n\r\n",
            "a.example:80",
            "/",
        ),
        (
            "GET http://a.example?x=http://b.example/ HTTP/1.1\r\nhost: a.example:80\r\n\r\n",
            "a.example:80",
            "/?x=http://b.example/",
        ),
        (
            "GET http://a.example/x//b.example/@c HTTP/1.0\r\n\r\n",
            "a.example:80",
            "/x//b.example/@c",
        ),
        (
            "GET http://[::FFFF:10.0.0.1]:81/ HTTP/1.1\r\nHost: 10.0.0.1:81\r\n\r\n",
            "10.0.0.1:81",
            "/",
        ),
        (
            "GET http://[2001:DB8:0::1]/ HTTP/1.1\r\nHost: [2001:db8::1]\r\n\r\n",
            "[2001:db8::1]:80",
            "/",
        ),
        (
            "CONNECT a.example.:443 HTTP/1.1\r\nHost: A.EXAMPLE\r\n\r\n",
            "a.example:443",
            "",
        ),
        ("CONNECT a.example:443 HTTP/1.0\r\n\r\n", "a.example:443", ""),
        (
            "CONNECT [::1]:22 HTTP/1.1\r\nHost: [::1]:22\r\nContent-Length: 0\r\n\r\n",
            "[::1]:22",
            "",
        ),
    ] {
        let (_, request) = read(text.as_bytes()).unwrap_or_else(|why| panic!("{text:?} {why}"));
        assert_eq!(format!("{}:{}", request.host, request.port), place);
        match request.kind {
            RequestKind::Tunnel => assert_eq!(path, ""),
            RequestKind::Forward(target) => assert_eq!(target.as_str(), path),
        }
    }
}

#[test]
fn a_head_is_found_however_it_comes_in() {
    let text = b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\nbehind it";
    let mut finder = Finder::default();
    for end in 0..text.len() - 9 {
        assert_eq!(finder.find(&text[..end]), Ok(None), "{end}");
    }
    assert_eq!(finder.find(text), Ok(Some(text.len() - 9)));
}

#[test]
fn heads_are_bounded() {
    let with = |headers: &str| format!("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{headers}\r\n");
    let hundred = "X: y\r\n".repeat(99);
    read(with(&hundred).as_bytes()).unwrap();
    assert_eq!(read(with(&"X: y\r\n".repeat(100)).as_bytes()), Err(TooMany));
    let named = |count| with(&format!("Connection: {}\r\n", vec!["x"; count].join(", ")));
    assert!(read(named(32).as_bytes()).is_ok());
    assert_eq!(read(named(33).as_bytes()), Err(TooManyNamed));
    let long = |bytes: usize| with(&format!("X: {}\r\n", "y".repeat(bytes)));
    read(long(60_000).as_bytes()).unwrap();
    assert_eq!(read(long(64 * 1024).as_bytes()), Err(TooLong));
    assert_eq!(read(&vec![b'a'; 64 * 1024]), Err(TooLong));
}

#[test]
fn a_body_ends_where_its_framing_says_and_nowhere_else() {
    let body = |framing, bytes: &[u8], step: usize| {
        let (mut reader, mut rest, mut data) = (Body::new(framing), bytes, Vec::new());
        loop {
            match reader.next(&rest[..step.min(rest.len())])? {
                Piece::Data(length) => {
                    data.extend_from_slice(&rest[..length]);
                    rest = &rest[length..];
                }
                Piece::Framing(length) => rest = &rest[length..],
                Piece::More => return Err(Short),
                Piece::End => return Ok((String::from_utf8(data).unwrap(), rest.len())),
            }
        }
    };
    for step in [1, 2, 3, 100] {
        assert_eq!(body(Framing::None, b"next", step), Ok((String::new(), 4)));
        assert_eq!(body(Framing::Length(3), b"abcnext", step), Ok(("abc".to_owned(), 4)));
        assert_eq!(body(Framing::Length(3), b"ab", step), Err(Short));
        for (chunks, read) in [
            ("3\r\nabc\r\n0\r\n\r\nnext", Ok(("abc".to_owned(), 4))),
            (
                "00A\r\n0123456789\r\n1\r\nx\r\n00\r\n\r\n",
                Ok(("0123456789x".to_owned(), 0)),
            ),
            ("0\r\n\r\nGET", Ok((String::new(), 3))),
            ("3\nabc\r\n0\r\n\r\n", Err(Chunk)),
            ("3\r\nabc\n0\r\n\r\n", Err(Chunk)),
            ("3\r\nabcd\r\n0\r\n\r\n", Err(Chunk)),
            ("3;x=y\r\nabc\r\n0\r\n\r\n", Err(Chunk)),
            ("3 \r\nabc\r\n0\r\n\r\n", Err(Chunk)),
            (" 3\r\nabc\r\n0\r\n\r\n", Err(Chunk)),
            ("0x3\r\nabc\r\n0\r\n\r\n", Err(Chunk)),
            ("-1\r\n", Err(Chunk)),
            ("\r\n", Err(Chunk)),
            ("0000000000000003\r\nabc\r\n0\r\n\r\n", Err(Chunk)),
            ("ffffffffffffffffff\r\n", Err(Chunk)),
            ("0\r\nX: y\r\n\r\n", Err(Chunk)),
            ("0\r\n\n", Err(Chunk)),
            ("3\r\nabc\r\n0\r\n", Err(Short)),
        ] {
            assert_eq!(
                body(Framing::Chunked, chunks.as_bytes(), step),
                read,
                "{chunks:?} by {step}"
            );
        }
    }
}

#[test]
fn nothing_that_is_read_depends_on_the_pieces_in_which_it_came() {
    let hello = super::hellos::hello("a.example");
    let more: [&[u8]; 6] = [
        b"GET http://A.example:81/x HTTP/1.1\r\nHost: a.Example.:81\r\nX:\t y \r\n\r\n",
        b"3\r\nabc\r\n0\r\n\r\nnext",
        b"\x05\x02\x02\x00",
        b"\x05\x01\x00\x03\x09a.Example\x01\xbb",
        b"SSH-2.0-x\r\n",
        &hello,
    ];
    let rows = UNREADABLE.iter().chain(TARGETS).map(|(text, _)| text.as_bytes());
    for bytes in rows.chain(more) {
        for reader in Reader::ALL {
            if let Err(why) = reader.check(bytes) {
                panic!("{reader:?} of {}: {why}", bytes.escape_ascii());
            }
        }
    }
}
