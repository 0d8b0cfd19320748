//! One connection's requests, one after the other.

use bytes::Buf as _;
use tokio::time::{Instant, timeout};

use super::answer::{CONTINUE, OPEN, Then, no};
use super::forward::{Ended, Exchange, forward};
use super::head::{Expects, Finder, Framing, Head, Version, words};
use super::target::{Request, What};
use crate::proxy::attempt::{Outcome, Protocol};
use crate::proxy::client::Client;
use crate::proxy::gate::Wanted;
use crate::proxy::open::{Opened, open};
use crate::proxy::record::Record;
use crate::proxy::served::Served;
use crate::proxy::unreadable::Unreadable;

/// Serves requests until one opens a tunnel, or no more come. The first has begun.
pub(in crate::proxy) async fn serve<'a>(
    served: &'a Served,
    client: &mut Client,
    mut begun: Instant,
) -> Option<Opened<'a>> {
    loop {
        let (head, request) = match next(served, client).await {
            Ok(next) => next,
            Err(why) => {
                refuse(served, client, begun, why).await;
                return None;
            }
        };
        match request.what {
            What::Tunnel => return tunnel(served, client, begun, request).await,
            What::Answer(_) => match answer(served, client, begun, &head, request).await {
                Then::Closes => return None,
                Then::Stays => {}
            },
        }
        begun = another(served, client).await?;
    }
}

/// The next request. What it is made of is still in the buffer when it cannot be read.
async fn next(served: &Served, client: &mut Client) -> Result<(Head, Request), Unreadable> {
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
    let end = timeout(served.bounds.head_time, reading)
        .await
        .unwrap_or(Err(Unreadable::Slow))?;
    let head = Head::read(client.buffer.get(..end).unwrap_or_default())?;
    let request = Request::of(&head)?;
    client.buffer.advance(end);
    Ok((head, request))
}

/// When the next request began, if one did. Whoever asks for nothing makes room for others.
async fn another(served: &Served, client: &mut Client) -> Option<Instant> {
    if client.buffer.is_empty() {
        if served.is_full() {
            return None;
        }
        tokio::select! {
            more = timeout(served.bounds.keep_alive, client.more()) => match more {
                Ok(Ok(1..)) => {}
                Ok(Ok(0) | Err(_)) | Err(_) => return None,
            },
            () = served.crowded() => return None,
        }
    }
    Some(Instant::now())
}

async fn refuse(served: &Served, client: &mut Client, begun: Instant, why: Unreadable) {
    let connects = client.buffer.starts_with(b"CONNECT ");
    let protocol = if connects { Protocol::Connect } else { Protocol::Http };
    Record::unreadable(
        &*served.gate,
        begun,
        &client.buffer,
        Some(protocol),
        client.address,
        why,
    );
    let answer = no("this request", &Outcome::Refused(why.into()), Then::Closes);
    client
        .last_word(&answer.unwrap_or_default(), served.bounds.linger)
        .await;
}

/// Opens a tunnel, or says no.
async fn tunnel<'a>(
    served: &'a Served,
    client: &mut Client,
    begun: Instant,
    Request { host, port, .. }: Request,
) -> Option<Opened<'a>> {
    let wanted = wanted(client, host, port, Protocol::Connect);
    let mut record = Record::of(&*served.gate, begun, &wanted);
    let connected = match open(served, client, &wanted).await {
        Ok(connected) => connected,
        Err(outcome) => {
            let answer = no(&place(&wanted), &outcome, Then::Closes);
            record.end(outcome);
            client
                .last_word(&answer.unwrap_or_default(), served.bounds.linger)
                .await;
            return None;
        }
    };
    record.connected(connected.address);
    if let Err(end) = client.send(OPEN, served.bounds.idle).await {
        record.end(Outcome::Passed(end));
        return None;
    }
    let Wanted { host, port, .. } = wanted;
    Some(Opened {
        record,
        server: connected.stream,
        host,
        port,
    })
}

/// Brings the answer to one request, or says no.
async fn answer(served: &Served, client: &mut Client, begun: Instant, head: &Head, request: Request) -> Then {
    let What::Answer(path) = &request.what else {
        return Then::Closes;
    };
    let wanted = wanted(client, request.host.clone(), request.port, Protocol::Http);
    let mut record = Record::of(&*served.gate, begun, &wanted);
    let asks_to_stay = stays(head);
    let connected = match open(served, client, &wanted).await {
        Ok(connected) => connected,
        Err(outcome) => {
            let then = match head.framing {
                Framing::None | Framing::Length(0) if !served.is_full() => asks_to_stay,
                Framing::None | Framing::Length(_) | Framing::Chunked => Then::Closes,
            };
            let answer = no(&place(&wanted), &outcome, then);
            record.end(outcome);
            return say(served, client, &answer.unwrap_or_default(), then).await;
        }
    };
    record.connected(connected.address);
    if head.expects == Expects::Continue
        && client.buffer.is_empty()
        && let Err(end) = client.send(CONTINUE, served.bounds.idle).await
    {
        record.end(Outcome::Passed(end));
        return Then::Closes;
    }
    let exchange = Exchange {
        head,
        path,
        host: &wanted.host,
        port: wanted.port,
        then: if served.is_full() { Then::Closes } else { asks_to_stay },
    };
    let Ended {
        outcome,
        unanswered,
        then,
    } = forward(client, exchange, connected.stream, &served.bounds, &record.meter).await;
    let answer = no(&place(&wanted), &outcome, Then::Closes).filter(|_| unanswered);
    record.end(outcome);
    match (answer, then) {
        (Some(answer), _) => say(served, client, &answer, Then::Closes).await,
        (None, Then::Stays) => Then::Stays,
        (None, Then::Closes) => say(served, client, &[], Then::Closes).await,
    }
}

async fn say(served: &Served, client: &mut Client, answer: &[u8], then: Then) -> Then {
    match then {
        Then::Stays if client.send(answer, served.bounds.idle).await.is_ok() => Then::Stays,
        Then::Stays => Then::Closes,
        Then::Closes => {
            client.last_word(answer, served.bounds.linger).await;
            Then::Closes
        }
    }
}

fn wanted(client: &Client, host: crate::policy::Host, port: u16, protocol: Protocol) -> Wanted {
    Wanted {
        host,
        port,
        protocol,
        client: client.address,
    }
}

fn place(wanted: &Wanted) -> String {
    format!("{}:{}", wanted.host, wanted.port)
}

/// Whether the client would send another request on the same connection.
fn stays(head: &Head) -> Then {
    let closes = words(&head.headers).any(|word| word.eq_ignore_ascii_case("close"));
    match head.version {
        Version::Http11 if !closes => Then::Stays,
        Version::Http11 | Version::Http10 => Then::Closes,
    }
}
