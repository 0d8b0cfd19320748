//! SOCKS5, byte by byte.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Duration, sleep};

use super::stage::{Stage, echo, place};
use crate::proxy::socks::{Read, greeting, request};
use crate::proxy::{AttemptResult, Bounds, End, Protocol, Unreadable};

fn named(name: &[u8], port: u16) -> Vec<u8> {
    let mut bytes = vec![5, 1, 0, 3, u8::try_from(name.len()).unwrap()];
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(&port.to_be_bytes());
    bytes
}

#[test]
fn a_greeting_is_read_whole_or_not_at_all() {
    for (bytes, read) in [
        (&[5][..], Ok(Read::More)),
        (&[5, 1], Ok(Read::More)),
        (&[5, 3, 2, 1], Ok(Read::More)),
        (&[5, 1, 0], Ok(Read::Complete((), 3))),
        (&[5, 3, 2, 1, 0, 5, 1], Ok(Read::Complete((), 5))),
        (&[5, 0], Err(Unreadable::SocksMethod)),
        (&[5, 1, 2], Err(Unreadable::SocksMethod)),
        (&[5, 2, 1, 255], Err(Unreadable::SocksMethod)),
        (&[4, 1, 0], Err(Unreadable::Socks)),
    ] {
        assert_eq!(greeting(bytes), read, "{bytes:?}");
    }
}

#[test]
fn a_request_names_one_place_or_none() {
    use crate::policy::hosts::HostError;
    let long = [b'a'; 255];
    let rows: Vec<(Vec<u8>, Result<&str, Unreadable>)> = vec![
        (named(b"A.Example.", 443), Ok("a.example:443")),
        (named(b"10.0.0.1", 443), Ok("10.0.0.1:443")),
        (named(b"[::ffff:10.0.0.1]", 443), Ok("10.0.0.1:443")),
        (vec![5, 1, 0, 1, 10, 0, 0, 1, 1, 187], Ok("10.0.0.1:443")),
        ([&[5, 1, 0, 4][..], &[0; 15], &[1, 0, 80]].concat(), Ok("[::1]:80")),
        (
            [&[5, 1, 0, 4][..], &[0; 10], &[255, 255, 10, 0, 0, 1, 0, 80]].concat(),
            Ok("10.0.0.1:80"),
        ),
        (named(b"", 443), Err(Unreadable::Host(HostError::Empty))),
        (named(b"a\0.example", 443), Err(Unreadable::Host(HostError::Character))),
        (
            named(b"a.example\r\n", 443),
            Err(Unreadable::Host(HostError::Character)),
        ),
        (named(b"a.example:80", 443), Err(Unreadable::Host(HostError::Brackets))),
        (named(b"u@a.example", 443), Err(Unreadable::Host(HostError::Character))),
        (
            named("b\u{fc}cher.example".as_bytes(), 443),
            Err(Unreadable::Host(HostError::Character)),
        ),
        (named(b"\xff\xfe", 443), Err(Unreadable::Host(HostError::Character))),
        (named(b"127.1", 443), Err(Unreadable::Host(HostError::Number))),
        (named(b"0x7f000001", 443), Err(Unreadable::Host(HostError::Number))),
        (named(b"0177.0.0.1", 443), Err(Unreadable::Host(HostError::Number))),
        (named(b"fe80::1%eth0", 443), Err(Unreadable::Host(HostError::Brackets))),
        (named(&long, 443), Err(Unreadable::Host(HostError::TooLong))),
        (named(b"a.example", 0), Err(Unreadable::Port)),
        (vec![5, 2, 0, 1, 10, 0, 0, 1, 1, 187], Err(Unreadable::SocksCommand)),
        (vec![5, 3, 0, 1, 10, 0, 0, 1, 1, 187], Err(Unreadable::SocksCommand)),
        (vec![5, 0, 0, 1], Err(Unreadable::SocksCommand)),
        (vec![5, 1, 0, 2, 1], Err(Unreadable::SocksAddress)),
        (vec![5, 1, 1, 1], Err(Unreadable::Socks)),
        (vec![4, 1, 0, 1], Err(Unreadable::Socks)),
    ];
    for (bytes, read) in rows {
        let got = request(&bytes).map(|got| match got {
            Read::Complete((host, port), length) => {
                assert_eq!(length, bytes.len());
                format!("{host}:{port}")
            }
            Read::More => "more".to_owned(),
        });
        assert_eq!(got.as_deref().map_err(|why| *why), read, "{bytes:?}");
        if read.is_ok() {
            for end in 0..bytes.len() {
                assert_eq!(request(&bytes[..end]), Ok(Read::More), "{bytes:?} to {end}");
            }
        }
    }
}

#[tokio::test]
async fn a_tunnel_opens_however_its_bytes_come() {
    let port = echo().await;
    let stage = Stage::start(Bounds::default());
    for (request, host) in [
        (named(b"open.example", port), "open.example"),
        (
            [&[5, 1, 0, 1, 127, 0, 0, 1][..], &port.to_be_bytes()].concat(),
            "127.0.0.1",
        ),
    ] {
        let mut stream = stage.connect().await;
        let all = [&[5, 1, 0][..], &request, b"early "].concat();
        for byte in all {
            stream.write_all(&[byte]).await.unwrap();
            sleep(Duration::from_millis(1)).await;
        }
        stream.write_all(b"and late").await.unwrap();
        let mut got = [0; 2 + 10 + 14];
        stream.read_exact(&mut got).await.unwrap();
        assert_eq!(got[..12], [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(&got[12..], b"early and late");
        stream.shutdown().await.unwrap();
        assert_eq!(stream.read(&mut got).await.unwrap(), 0);
        let attempt = stage.attempts(1).await.pop().unwrap();
        stage.gate.attempts.lock().unwrap().clear();
        assert_eq!(attempt.subject.to_string(), place(host, port));
        assert_eq!(attempt.protocol, Some(Protocol::Socks));
        assert_eq!(attempt.outcome, AttemptResult::Passed(End::Closed));
        assert_eq!((attempt.up, attempt.down), (14, 14));
    }
}

#[tokio::test]
async fn what_gets_no_tunnel_is_told_so_in_the_codes_of_socks() {
    let rows: Vec<(Vec<u8>, Vec<u8>, &str)> = vec![
        (named(b"other.example", 80), vec![2], "not in the list"),
        (named(b"denied.example", 80), vec![2], "denied"),
        (named(b"a.private.example", 80), vec![2], "private"),
        (vec![5, 1, 0, 1, 10, 1, 2, 3, 0, 80], vec![2], "private"),
        (vec![5, 1, 0, 1, 0, 0, 0, 0, 0, 80], vec![2], "unspecified"),
        ([&[5, 1, 0, 4][..], &[0; 15], &[1, 0, 80]].concat(), vec![2], "loopback"),
        (named(b"127.1", 80), vec![2], "neither a name nor an address"),
        (named(b"nowhere.open.example", 80), vec![4], "has no address"),
        (named(b"late.open.example", 80), vec![4], "in time"),
        (named(b"open.example", 1), vec![5], "refused the connection"),
        (
            vec![5, 2, 0, 1, 127, 0, 0, 1, 0, 80],
            vec![7],
            "something else than CONNECT",
        ),
        (
            vec![5, 3, 0, 1, 0, 0, 0, 0, 0, 0],
            vec![7],
            "something else than CONNECT",
        ),
        (vec![5, 1, 0, 9, 0, 0], vec![8], "unknown type"),
        (vec![4, 1, 0, 9, 0, 0], vec![1], "no SOCKS5"),
    ];
    for (request, code, why) in rows {
        let stage = Stage::start(Bounds::default());
        let got = stage.say(&[&[5, 1, 0][..], &request].concat()).await;
        assert_eq!(
            got,
            [&[5, 0, 5][..], &code, &[0, 1, 0, 0, 0, 0, 0, 0]].concat(),
            "{request:?}"
        );
        let attempts = stage.stop().await;
        assert_eq!(attempts.len(), 1);
        assert!(attempts[0].outcome.to_string().contains(why), "{attempts:?}");
        assert_eq!(attempts[0].protocol, Some(Protocol::Socks));
    }
    let stage = Stage::start(Bounds::default());
    assert_eq!(stage.say(&[5, 1, 2]).await, [5, 255]);
    let attempts = stage.stop().await;
    assert!(attempts[0].outcome.to_string().contains("without a password"));
}
