//! Rebuilds one request for the server, and its response for the client.
//!
//! Each request has a connection of its own, so bytes after a response are never parsed as the next one. Both
//! directions are streamed concurrently.

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

use super::body::{Body, Piece};
use super::head::{Framing, Head, Version, connection_tokens, names_too_many};
use super::response::KeepAlive;
use crate::policy::Host;
use crate::proxy::attempt::{AttemptResult, End, Failure};
use crate::proxy::bounds::{BUFFER, Bounds, HEADERS};
use crate::proxy::client::{Client, PIECE};
use crate::proxy::meter::{Meter, Metered};

/// Hop-by-hop headers. They are removed, as are `Proxy-…` and the headers that `Connection` names (RFC 9110, section 7.6.1).
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

/// A permitted request.
#[derive(Clone, Copy)]
pub(super) struct Exchange<'a> {
    pub(super) head: &'a Head,
    pub(super) path: &'a PathAndQuery,
    pub(super) host: &'a Host,
    pub(super) port: u16,
    /// Whether the client's connection stays open afterwards.
    pub(super) keep_alive: KeepAlive,
}

/// The end of an exchange.
pub(super) struct Forwarded {
    pub(super) outcome: AttemptResult,
    /// Whether nothing of the response was sent.
    pub(super) unanswered: bool,
    /// Whether the client's connection can serve another request.
    pub(super) keep_alive: KeepAlive,
}

/// The progress of each direction.
#[derive(Default)]
struct Progress {
    uploaded: AtomicBool,
    /// The head of the response was received.
    got_head: AtomicBool,
    /// A part of the response was sent to the client.
    answered: AtomicBool,
}

/// Sends the request to the server, and the response to the client.
pub(super) async fn forward(
    client: &mut Client,
    exchange: Exchange<'_>,
    server: TcpStream,
    bounds: &Bounds,
    meter: &Meter,
) -> Forwarded {
    let progress = Progress::default();
    let outcome = run(client, exchange, server, bounds, meter, &progress).await;
    let (outcome, keep_alive) = match outcome {
        Ok(keep_alive) => (AttemptResult::Passed(End::Closed), keep_alive),
        Err(outcome) => (outcome, KeepAlive::No),
    };
    Forwarded {
        outcome,
        unanswered: !progress.answered.load(Ordering::Relaxed),
        keep_alive: match (keep_alive, progress.uploaded.load(Ordering::Relaxed)) {
            (KeepAlive::Yes, true) => KeepAlive::Yes,
            (KeepAlive::Yes, false) | (KeepAlive::No, _) => KeepAlive::No,
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
) -> Result<KeepAlive, AttemptResult> {
    let bad_answer = |_| AttemptResult::Failed(Failure::BadAnswer);
    let (feed, request) = build(exchange).ok_or(AttemptResult::Failed(Failure::BadAnswer))?;
    let mut builder = http1::Builder::new();
    builder.max_buf_size(BUFFER).max_headers(HEADERS);
    let (mut sender, connection) = builder
        .handshake(TokioIo::new(Metered::new(server, meter, &progress.got_head)))
        .await
        .map_err(bad_answer)?;
    let Client { stream, buffer, .. } = client;
    let (read, write) = stream.split();
    let mut connection = pin!(connection);
    let mut idle = pin!(meter.idle(bounds.idle));
    let mut upload = pin!(upload(read, buffer, Body::new(exchange.head.framing), feed, progress));
    let mut download = pin!(async {
        let answer = sender.send_request(request).await.map_err(bad_answer)?;
        progress.got_head.store(true, Ordering::Relaxed);
        let (parts, body) = answer.into_parts();
        download(write, exchange, &parts, body, meter, progress).await
    });
    let mut is_closed = false;
    loop {
        tokio::select! {
            biased;
            done = &mut download => return done,
            _ended = &mut connection, if !is_closed => is_closed = true,
            cut = &mut upload => return Err(cut),
            () = &mut idle => return Err(AttemptResult::Passed(End::Idle)),
        }
    }
}

type Feed = Option<Sender<Bytes, io::Error>>;
type RequestBody = Either<Empty<Bytes>, Channel<Bytes, io::Error>>;

/// The request for the server, and the sink of its body.
fn build(exchange: Exchange<'_>) -> Option<(Feed, http::Request<RequestBody>)> {
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
    for (name, value) in end_to_end(&head.headers) {
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

/// The end-to-end headers.
fn end_to_end(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    headers.iter().filter(|(name, _)| {
        let is_hop = HOP_BY_HOP.contains(&name.as_str()) || name.as_str().starts_with("proxy-");
        !is_hop && !connection_tokens(headers).any(|token| name.as_str().eq_ignore_ascii_case(token))
    })
}

/// Sends the body on as it is received. It returns only when the client closes early or its body is
/// refused; after the last byte it waits forever.
async fn upload(
    mut read: ReadHalf<'_>,
    buffer: &mut BytesMut,
    mut body: Body,
    mut feed: Feed,
    progress: &Progress,
) -> AttemptResult {
    loop {
        match body.next(buffer) {
            Ok(Piece::Data(length)) => {
                let data = buffer.split_to(length).freeze();
                if let Some(open) = &mut feed
                    && open.send_data(data).await.is_err()
                {
                    // The server stopped reading. Its response is still sent to the client.
                    return std::future::pending().await;
                }
            }
            Ok(Piece::Framing(length)) => buffer.advance(length),
            Ok(Piece::More) => {
                if !more(&mut read, buffer).await {
                    abort(feed);
                    return AttemptResult::Passed(End::ClientClosed);
                }
            }
            Ok(Piece::End) => break,
            Err(why) => {
                abort(feed);
                return AttemptResult::Refused(why.into());
            }
        }
    }
    drop(feed);
    progress.uploaded.store(true, Ordering::Relaxed);
    // Buffer the start of the next request, as far as there is room.
    while buffer.len() < BUFFER {
        if !more(&mut read, buffer).await {
            return AttemptResult::Passed(End::ClientClosed);
        }
    }
    std::future::pending().await
}

/// Aborts the body, so that the server does not accept it as complete.
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

/// Sends the response to the client as it is received.
async fn download(
    mut write: WriteHalf<'_>,
    exchange: Exchange<'_>,
    parts: &Parts,
    mut body: Incoming,
    meter: &Meter,
    progress: &Progress,
) -> Result<KeepAlive, AttemptResult> {
    let client_closed = |_| AttemptResult::Passed(End::ClientClosed);
    // A server may neither ask for a proxy's password nor switch the protocol.
    let is_for_proxy = parts.status.is_informational() || parts.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED;
    if is_for_proxy || names_too_many(&parts.headers) {
        return Err(AttemptResult::Failed(Failure::BadAnswer));
    }
    let length = Length::of(exchange, parts, &body);
    let keep_alive = match length {
        Length::UntilClosed => KeepAlive::No,
        Length::Nothing | Length::Known(_) | Length::Chunked => exchange.keep_alive,
    };
    progress.answered.store(true, Ordering::Relaxed);
    write
        .write_all(&head(parts, length, keep_alive))
        .await
        .map_err(client_closed)?;
    meter.moved();
    let mut piece = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(AttemptResult::Passed(End::ServerClosed));
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
            write.write_all(&piece).await.map_err(client_closed)?;
        } else {
            write.write_all(&data).await.map_err(client_closed)?;
        }
        meter.moved();
    }
    if length == Length::Chunked {
        write.write_all(b"0\r\n\r\n").await.map_err(client_closed)?;
    }
    Ok(keep_alive)
}

/// The framing of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    /// A response without a body, because of its status or method.
    Nothing,
    Known(u64),
    Chunked,
    UntilClosed,
}

impl Length {
    fn of(exchange: Exchange<'_>, parts: &Parts, body: &Incoming) -> Self {
        if exchange.head.method == Method::HEAD {
            let declared = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
            return declared
                .and_then(|declared| declared.parse().ok())
                .map_or(Self::Nothing, Self::Known);
        }
        if matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            return Self::Nothing;
        }
        match (body.size_hint().exact(), exchange.head.version) {
            (Some(length), _) => Self::Known(length),
            (None, Version::Http11) => Self::Chunked,
            (None, Version::Http10) => Self::UntilClosed,
        }
    }
}

fn head(parts: &Parts, length: Length, keep_alive: KeepAlive) -> Vec<u8> {
    let reason = parts.status.canonical_reason().unwrap_or("");
    let mut text = format!("HTTP/1.1 {} {reason}\r\n", parts.status.as_u16()).into_bytes();
    for (name, value) in end_to_end(&parts.headers) {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    match length {
        Length::Known(length) => text.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes()),
        Length::Chunked => text.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Length::Nothing | Length::UntilClosed => {}
    }
    text.extend_from_slice(keep_alive.header().as_bytes());
    text.extend_from_slice(b"\r\n");
    text
}
