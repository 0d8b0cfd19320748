//! Serves the requests of one connection, one after the other.

use bytes::Buf as _;
use tokio::time::{Instant, timeout};

use super::forward::{Exchange, Forwarded, forward};
use super::head::{Expects, Finder, Framing, Head, Version, connection_tokens};
use super::response::{CONTINUE, ESTABLISHED, KeepAlive, rejection};
use super::target::{Request, RequestKind};
use crate::proxy::attempt::{AttemptResult, Protocol};
use crate::proxy::client::Client;
use crate::proxy::gate::ConnectRequest;
use crate::proxy::open::{Opened, open};
use crate::proxy::record::Record;
use crate::proxy::state::ProxyState;
use crate::proxy::unreadable::Unreadable;

/// Serves requests until one opens a tunnel, or the connection ends. The first request began at `started`.
pub(in crate::proxy) async fn serve<'a>(
    state: &'a ProxyState,
    client: &mut Client,
    mut started: Instant,
) -> Option<Opened<'a>> {
    loop {
        let (head, request) = match next(state, client).await {
            Ok(next) => next,
            Err(why) => {
                refuse(state, client, started, why).await;
                return None;
            }
        };
        match request.kind {
            RequestKind::Tunnel => return tunnel(state, client, started, request).await,
            RequestKind::Forward(_) => match answer(state, client, started, &head, request).await {
                KeepAlive::No => return None,
                KeepAlive::Yes => {}
            },
        }
        started = next_start(state, client).await?;
    }
}

/// The next request. On an error its bytes are left in the buffer.
async fn next(state: &ProxyState, client: &mut Client) -> Result<(Head, Request), Unreadable> {
    let mut finder = Finder::default();
    let reading = async {
        loop {
            if let Some(end) = finder.find(&client.buffer)? {
                return Ok(end);
            }
            match client.more().await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Err(Unreadable::Short),
            }
        }
    };
    let end = timeout(state.bounds.head_time, reading)
        .await
        .unwrap_or(Err(Unreadable::Slow))?;
    let head = Head::read(client.buffer.get(..end).unwrap_or_default())?;
    let request = Request::of(&head)?;
    client.buffer.advance(end);
    Ok((head, request))
}

/// The time when the next request began; `None` where the client sends none. An idle connection is closed when others wait.
async fn next_start(state: &ProxyState, client: &mut Client) -> Option<Instant> {
    if client.buffer.is_empty() {
        if state.is_full() {
            return None;
        }
        tokio::select! {
            more = timeout(state.bounds.keep_alive, client.more()) => match more {
                Ok(Ok(1..)) => {}
                Ok(Ok(0) | Err(_)) | Err(_) => return None,
            },
            () = state.crowded() => return None,
        }
    }
    Some(Instant::now())
}

async fn refuse(state: &ProxyState, client: &mut Client, started: Instant, why: Unreadable) {
    let connects = client.buffer.starts_with(b"CONNECT ");
    let protocol = if connects { Protocol::Connect } else { Protocol::Http };
    Record::unreadable(
        &*state.gate,
        started,
        &client.buffer,
        Some(protocol),
        client.address,
        why,
    );
    let answer = rejection("this request", &AttemptResult::Refused(why.into()), KeepAlive::No);
    respond(state, client, &answer.unwrap_or_default(), KeepAlive::No).await;
}

/// Opens a tunnel, or sends a rejection.
async fn tunnel<'a>(
    state: &'a ProxyState,
    client: &mut Client,
    started: Instant,
    Request { host, port, .. }: Request,
) -> Option<Opened<'a>> {
    let connect_request = connect_request(client, host, port, Protocol::Connect);
    let mut record = Record::of(&*state.gate, started, &connect_request);
    let connected = match open(state, client, &connect_request).await {
        Ok(connected) => connected,
        Err(outcome) => {
            let answer = rejection(&authority(&connect_request), &outcome, KeepAlive::No);
            record.end(outcome);
            respond(state, client, &answer.unwrap_or_default(), KeepAlive::No).await;
            return None;
        }
    };
    record.connected(connected.address);
    if let Err(end) = client.send(ESTABLISHED, state.bounds.idle).await {
        record.end(AttemptResult::Passed(end));
        return None;
    }
    let ConnectRequest { host, port, .. } = connect_request;
    Some(Opened {
        record,
        server: connected.stream,
        host,
        port,
    })
}

/// Forwards one request, or sends a rejection.
async fn answer(state: &ProxyState, client: &mut Client, started: Instant, head: &Head, request: Request) -> KeepAlive {
    let RequestKind::Forward(path) = &request.kind else {
        return KeepAlive::No;
    };
    let connect_request = connect_request(client, request.host.clone(), request.port, Protocol::Http);
    let mut record = Record::of(&*state.gate, started, &connect_request);
    let keep_alive_requested = requested_keep_alive(head);
    let connected = match open(state, client, &connect_request).await {
        Ok(connected) => connected,
        Err(outcome) => {
            let keep_alive = match head.framing {
                Framing::None | Framing::Length(0) if !state.is_full() => keep_alive_requested,
                Framing::None | Framing::Length(_) | Framing::Chunked => KeepAlive::No,
            };
            let answer = rejection(&authority(&connect_request), &outcome, keep_alive);
            record.end(outcome);
            return respond(state, client, &answer.unwrap_or_default(), keep_alive).await;
        }
    };
    record.connected(connected.address);
    if head.expects == Expects::Continue
        && client.buffer.is_empty()
        && let Err(end) = client.send(CONTINUE, state.bounds.idle).await
    {
        record.end(AttemptResult::Passed(end));
        return KeepAlive::No;
    }
    let exchange = Exchange {
        head,
        path,
        host: &connect_request.host,
        port: connect_request.port,
        keep_alive: if state.is_full() {
            KeepAlive::No
        } else {
            keep_alive_requested
        },
    };
    let Forwarded {
        outcome,
        unanswered,
        keep_alive,
    } = forward(client, exchange, connected.stream, &state.bounds, &record.meter).await;
    let answer = rejection(&authority(&connect_request), &outcome, KeepAlive::No).filter(|_| unanswered);
    record.end(outcome);
    match (answer, keep_alive) {
        (Some(answer), _) => respond(state, client, &answer, KeepAlive::No).await,
        (None, KeepAlive::Yes) => KeepAlive::Yes,
        (None, KeepAlive::No) => respond(state, client, &[], KeepAlive::No).await,
    }
}

async fn respond(state: &ProxyState, client: &mut Client, answer: &[u8], keep_alive: KeepAlive) -> KeepAlive {
    match keep_alive {
        KeepAlive::Yes if client.send(answer, state.bounds.idle).await.is_ok() => KeepAlive::Yes,
        KeepAlive::Yes => KeepAlive::No,
        KeepAlive::No => {
            client.send_final(answer, state.bounds.linger).await;
            KeepAlive::No
        }
    }
}

fn connect_request(client: &Client, host: crate::policy::Host, port: u16, protocol: Protocol) -> ConnectRequest {
    ConnectRequest {
        host,
        port,
        protocol,
        client: client.address,
    }
}

fn authority(connect_request: &ConnectRequest) -> String {
    format!("{}:{}", connect_request.host, connect_request.port)
}

/// Whether the client would send another request on the same connection.
fn requested_keep_alive(head: &Head) -> KeepAlive {
    let closes = connection_tokens(&head.headers).any(|token| token.eq_ignore_ascii_case("close"));
    match head.version {
        Version::Http11 if !closes => KeepAlive::Yes,
        Version::Http11 | Version::Http10 => KeepAlive::No,
    }
}
