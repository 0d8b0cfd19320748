//! One request, built anew for the server, and its answer, built anew for the client.
//!
//! Each has a connection of its own, so nothing that a server sends behind its answer is taken for the next one. Both
//! directions run at once, a piece at a time.

use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::response::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt as _, Either, Empty};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::answer::Then;
use super::body::{Body, Piece};
use super::head::{Framing, Head, Version, names_too_many, words};
use crate::policy::Host;
use crate::proxy::attempt::{End, Failure, Outcome};
use crate::proxy::bounds::{BUFFER, Bounds, HEADERS};
use crate::proxy::client::{Client, PIECE};
use crate::proxy::meter::{Meter, Metered};

/// What is between two ends only, and not sent on. `Proxy-…` are too, and whatever `Connection` names.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "transfer-encoding",
    "content-length",
    "expect",
];

/// A request that was let through.
#[derive(Clone, Copy)]
pub(super) struct Exchange<'a> {
    pub(super) head: &'a Head,
    pub(super) path: &'a PathAndQuery,
    pub(super) host: &'a Host,
    pub(super) port: u16,
    /// What the client is told of its connection.
    pub(super) then: Then,
}

/// How it ended.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    /// Nothing of an answer was sent.
    pub(super) unanswered: bool,
    /// Whether the client's connection can go on.
    pub(super) then: Then,
}

/// What became of each direction.
#[derive(Default)]
struct Progress {
    uploaded: AtomicBool,
    /// The head of an answer has come.
    heard: AtomicBool,
    /// Something of it was sent.
    answered: AtomicBool,
}

/// Sends the request to the server, and its answer to the client.
pub(super) async fn forward(
    client: &mut Client,
    exchange: Exchange<'_>,
    server: TcpStream,
    bounds: &Bounds,
    meter: &Meter,
) -> Ended {
    let progress = Progress::default();
    let outcome = run(client, exchange, server, bounds, meter, &progress).await;
    let (outcome, kept) = match outcome {
        Ok(kept) => (Outcome::Passed(End::Closed), kept),
        Err(outcome) => (outcome, Then::Closes),
    };
    Ended {
        outcome,
        unanswered: !progress.answered.load(Ordering::Relaxed),
        then: match (kept, progress.uploaded.load(Ordering::Relaxed)) {
            (Then::Stays, true) => Then::Stays,
            (Then::Stays, false) | (Then::Closes, _) => Then::Closes,
        },
    }
}

async fn run(
    client: &mut Client,
    exchange: Exchange<'_>,
    server: TcpStream,
    bounds: &Bounds,
    meter: &Meter,
    progress: &Progress,
) -> Result<Then, Outcome> {
    let bad = |_| Outcome::Failed(Failure::BadAnswer);
    let (feed, request) = build(exchange).ok_or(Outcome::Failed(Failure::BadAnswer))?;
    let mut speaker = http1::Builder::new();
    speaker.max_buf_size(BUFFER).max_headers(HEADERS);
    let (mut asker, connection) = speaker
        .handshake(TokioIo::new(Metered::new(server, meter, &progress.heard)))
        .await
        .map_err(bad)?;
    let Client { stream, buffer, .. } = client;
    let (read, write) = stream.split();
    let mut connection = pin!(connection);
    let mut idle = pin!(meter.idle(bounds.idle));
    let mut upload = pin!(upload(read, buffer, Body::new(exchange.head.framing), feed, progress));
    let mut download = pin!(async {
        let answer = asker.send_request(request).await.map_err(bad)?;
        progress.heard.store(true, Ordering::Relaxed);
        let (parts, body) = answer.into_parts();
        download(write, exchange, &parts, body, meter, progress).await
    });
    let mut over = false;
    loop {
        tokio::select! {
            biased;
            done = &mut download => return done,
            _ended = &mut connection, if !over => over = true,
            cut = &mut upload => return Err(cut),
            () = &mut idle => return Err(Outcome::Passed(End::Idle)),
        }
    }
}

type Feed = Option<Sender<Bytes, io::Error>>;
type Sent = Either<Empty<Bytes>, Channel<Bytes, io::Error>>;

/// The request as the server sees it, and where its body goes in.
fn build(exchange: Exchange<'_>) -> Option<(Feed, http::Request<Sent>)> {
    let Exchange {
        head, path, host, port, ..
    } = exchange;
    let (feed, body) = match head.framing {
        Framing::None | Framing::Length(0) => (None, Either::Left(Empty::new())),
        Framing::Length(_) | Framing::Chunked => {
            let (feed, body) = Channel::new(1);
            (Some(feed), Either::Right(body))
        }
    };
    let mut request = http::Request::new(body);
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = Uri::from(path.clone());
    let named = match port {
        80 => host.to_string(),
        port => format!("{host}:{port}"),
    };
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::try_from(named).ok()?);
    for (name, value) in ends_only(&head.headers) {
        if name != HOST {
            headers.append(name.clone(), value.clone());
        }
    }
    match head.framing {
        Framing::None => {}
        Framing::Length(length) => {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        Framing::Chunked => {
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
    Some((feed, request))
}

/// The headers that are for the other end.
fn ends_only(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    headers.iter().filter(|(name, _)| {
        let is_hop = HOP_BY_HOP.contains(&name.as_str()) || name.as_str().starts_with("proxy-");
        !is_hop && !words(headers).any(|word| name.as_str().eq_ignore_ascii_case(word))
    })
}

/// Sends the body on as it comes in. Returns only when that, or waiting for the answer, was cut short.
async fn upload(
    mut read: ReadHalf<'_>,
    buffer: &mut BytesMut,
    mut body: Body,
    mut feed: Feed,
    progress: &Progress,
) -> Outcome {
    loop {
        match body.next(buffer) {
            Ok(Piece::Data(length)) => {
                let data = buffer.split_to(length).freeze();
                if let Some(open) = &mut feed
                    && open.send_data(data).await.is_err()
                {
                    // The server wants no more of it; its answer says why.
                    return std::future::pending().await;
                }
            }
            Ok(Piece::Framing(length)) => buffer.advance(length),
            Ok(Piece::More) => {
                if !more(&mut read, buffer).await {
                    abort(feed);
                    return Outcome::Passed(End::ClientLeft);
                }
            }
            Ok(Piece::End) => break,
            Err(why) => {
                abort(feed);
                return Outcome::Refused(why.into());
            }
        }
    }
    drop(feed);
    progress.uploaded.store(true, Ordering::Relaxed);
    // What comes now is the next request. There may be room for it, or not.
    while buffer.len() < BUFFER {
        if !more(&mut read, buffer).await {
            return Outcome::Passed(End::ClientLeft);
        }
    }
    std::future::pending().await
}

/// Lets the server see that the body is not whole.
fn abort(feed: Feed) {
    if let Some(feed) = feed {
        feed.abort(io::ErrorKind::ConnectionAborted.into());
    }
}

async fn more(read: &mut ReadHalf<'_>, buffer: &mut BytesMut) -> bool {
    buffer.reserve(PIECE);
    let mut room = buffer.limit(PIECE);
    matches!(read.read_buf(&mut room).await, Ok(1..))
}

/// Writes the answer as it comes in.
async fn download(
    mut write: WriteHalf<'_>,
    exchange: Exchange<'_>,
    parts: &Parts,
    mut body: Incoming,
    meter: &Meter,
    progress: &Progress,
) -> Result<Then, Outcome> {
    let left = |_| Outcome::Passed(End::ClientLeft);
    // To ask for a password, or to speak something else from here on, is not for a server to do through a proxy.
    if parts.status.is_informational() || parts.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
        return Err(Outcome::Failed(Failure::BadAnswer));
    }
    if names_too_many(&parts.headers) {
        return Err(Outcome::Failed(Failure::BadAnswer));
    }
    let length = Length::of(exchange, parts, &body);
    let then = match length {
        Length::UntilClosed => Then::Closes,
        Length::Nothing | Length::Said(_) | Length::Chunked => exchange.then,
    };
    progress.answered.store(true, Ordering::Relaxed);
    write.write_all(&head(parts, length, then)).await.map_err(left)?;
    meter.moved();
    let mut piece = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(Outcome::Passed(End::ServerLeft));
        };
        // Trailers are not sent on.
        let Ok(data) = frame.into_data() else { continue };
        if data.is_empty() {
            continue;
        }
        if length == Length::Chunked {
            piece.clear();
            piece.put_slice(format!("{:x}\r\n", data.len()).as_bytes());
            piece.put_slice(&data);
            piece.put_slice(b"\r\n");
            write.write_all(&piece).await.map_err(left)?;
        } else {
            write.write_all(&data).await.map_err(left)?;
        }
        meter.moved();
    }
    if length == Length::Chunked {
        write.write_all(b"0\r\n\r\n").await.map_err(left)?;
    }
    Ok(then)
}

/// How a client knows where an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    /// An answer without a body, by its status.
    Nothing,
    Said(u64),
    Chunked,
    UntilClosed,
}

impl Length {
    fn of(exchange: Exchange<'_>, parts: &Parts, body: &Incoming) -> Self {
        if exchange.head.method == Method::HEAD {
            let said = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
            return said
                .and_then(|said| said.parse().ok())
                .map_or(Self::Nothing, Self::Said);
        }
        if matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            return Self::Nothing;
        }
        match (body.size_hint().exact(), exchange.head.version) {
            (Some(length), _) => Self::Said(length),
            (None, Version::Http11) => Self::Chunked,
            (None, Version::Http10) => Self::UntilClosed,
        }
    }
}

fn head(parts: &Parts, length: Length, then: Then) -> Vec<u8> {
    let reason = parts.status.canonical_reason().unwrap_or("");
    let mut text = format!("HTTP/1.1 {} {reason}\r\n", parts.status.as_u16()).into_bytes();
    for (name, value) in ends_only(&parts.headers) {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    match length {
        Length::Said(length) => text.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes()),
        Length::Chunked => text.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Length::Nothing | Length::UntilClosed => {}
    }
    text.extend_from_slice(then.header().as_bytes());
    text.extend_from_slice(b"\r\n");
    text
}
