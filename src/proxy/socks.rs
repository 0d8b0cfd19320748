//! SOCKS5 (RFC 1928): CONNECT without authentication, to names and to addresses of both families.

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::Buf as _;
use tokio::time::{Instant, timeout};

use super::attempt::{AttemptResult, Failure, Protocol, Refusal};
use super::client::Client;
use super::gate::ConnectRequest;
use super::open::{Opened, open};
use super::record::Record;
use super::state::ProxyState;
use super::unreadable::Unreadable;
use crate::policy::Host;
use crate::policy::hosts::HostError;

const VERSION: u8 = 5;
const NO_PASSWORD: u8 = 0;

/// The result of parsing one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Read<T> {
    /// More bytes are needed.
    More,
    /// The message, and its length in bytes.
    Complete(T, usize),
}

/// Reads the greeting: the methods that the client offers.
///
/// # Errors
/// No greeting of SOCKS5, or no method without a password.
pub(super) fn greeting(bytes: &[u8]) -> Result<Read<()>, Unreadable> {
    match bytes {
        [] | [VERSION] => Ok(Read::More),
        [VERSION, count, methods @ ..] => match methods.get(..usize::from(*count)) {
            None => Ok(Read::More),
            Some(offered) if offered.contains(&NO_PASSWORD) => Ok(Read::Complete((), 2 + offered.len())),
            Some(_) => Err(Unreadable::SocksMethod),
        },
        _ => Err(Unreadable::Socks),
    }
}

/// Reads the request: the host and port that the client wants.
///
/// # Errors
/// No request of SOCKS5, another than CONNECT, or no host.
pub(super) fn request(bytes: &[u8]) -> Result<Read<(Host, u16)>, Unreadable> {
    let (command, kind, rest) = match bytes {
        [] | [VERSION] | [VERSION, _] | [VERSION, _, 0] => return Ok(Read::More),
        [VERSION, command, 0, kind, rest @ ..] => (*command, *kind, rest),
        _ => return Err(Unreadable::Socks),
    };
    if command != 1 {
        return Err(Unreadable::SocksCommand);
    }
    // The start of the address, and its length.
    let (start, length) = match (kind, rest) {
        (1, _) => (0, 4),
        (4, _) => (0, 16),
        (3, [length, ..]) => (1, usize::from(*length)),
        (3, []) => return Ok(Read::More),
        (_, _) => return Err(Unreadable::SocksAddress),
    };
    let Some((address, [high, low])) = rest.get(start..start + length + 2).and_then(<[u8]>::split_last_chunk) else {
        return Ok(Read::More);
    };
    let host = if let Ok(four) = <[u8; 4]>::try_from(address).map(Ipv4Addr::from)
        && kind == 1
    {
        Host::address(four.into())
    } else if let Ok(six) = <[u8; 16]>::try_from(address).map(Ipv6Addr::from)
        && kind == 4
    {
        Host::address(six.into())
    } else {
        let name = str::from_utf8(address).ok().filter(|name| name.is_ascii());
        Host::parse(name.ok_or(HostError::Character)?)?
    };
    match u16::from_be_bytes([*high, *low]) {
        0 => Err(Unreadable::Port),
        port => Ok(Read::Complete((host, port), 4 + start + length + 2)),
    }
}

/// Parses a client's request, and opens its tunnel or sends a rejection.
pub(super) async fn serve<'a>(state: &'a ProxyState, client: &mut Client, started: Instant) -> Option<Opened<'a>> {
    let (gate, bounds) = (&*state.gate, &state.bounds);
    let reading = async {
        read(client, greeting).await?;
        client
            .send(&[VERSION, NO_PASSWORD], bounds.head_time)
            .await
            .map_err(|_| Unreadable::Short)?;
        read(client, request).await
    };
    let read_request = timeout(bounds.head_time, reading).await;
    let (host, port) = match read_request.unwrap_or(Err(Unreadable::Slow)) {
        Ok(destination) => destination,
        Err(why) => {
            let protocol = Some(Protocol::Socks);
            Record::unreadable(gate, started, &client.buffer, protocol, client.address, why);
            client.send_final(&refusal(why), bounds.linger).await;
            return None;
        }
    };
    let connect_request = ConnectRequest {
        host,
        port,
        protocol: Protocol::Socks,
        client: client.address,
    };
    let mut record = Record::of(gate, started, &connect_request);
    let connected = match open(state, client, &connect_request).await {
        Ok(connected) => connected,
        Err(outcome) => {
            let code = reply_code(&outcome);
            record.end(outcome);
            client.send_final(&reply(code), bounds.linger).await;
            return None;
        }
    };
    record.connected(connected.address);
    if let Err(end) = client.send(&reply(0), bounds.idle).await {
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

async fn read<T>(client: &mut Client, reader: impl Fn(&[u8]) -> Result<Read<T>, Unreadable>) -> Result<T, Unreadable> {
    loop {
        match reader(&client.buffer)? {
            Read::Complete(read, length) => {
                client.buffer.advance(length);
                return Ok(read);
            }
            Read::More => match client.more().await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Err(Unreadable::Short),
            },
        }
    }
}

/// A reply with the address 0.0.0.0:0: the proxy's own address is not disclosed.
fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

/// The reply to bytes that are no request.
fn refusal(why: Unreadable) -> Vec<u8> {
    match why {
        Unreadable::SocksMethod => vec![VERSION, 0xff],
        Unreadable::SocksCommand => reply(7).to_vec(),
        Unreadable::SocksAddress => reply(8).to_vec(),
        Unreadable::Host(_) | Unreadable::Port => reply(2).to_vec(),
        _ => reply(1).to_vec(),
    }
}

/// The reply code for a client that gets no tunnel (RFC 1928, section 6).
fn reply_code(outcome: &AttemptResult) -> u8 {
    const BY_RULE: u8 = 2;
    match outcome {
        AttemptResult::Refused(
            Refusal::NotListed(_)
            | Refusal::Denied
            | Refusal::Unanswered
            | Refusal::Other(_)
            | Refusal::Unreadable(_)
            | Refusal::Address { .. }
            | Refusal::OwnAddress(_)
            | Refusal::Hello(_)
            | Refusal::Tunnelled(_),
        ) => BY_RULE,
        AttemptResult::Failed(Failure::Unreachable(_)) => 3,
        AttemptResult::Failed(Failure::NoAddress | Failure::ResolveTime | Failure::ConnectTime(_)) => 4,
        AttemptResult::Failed(Failure::ConnectionRefused(_)) => 5,
        AttemptResult::Failed(Failure::BadAnswer) | AttemptResult::Passed(_) | AttemptResult::Abandoned(_) => 1,
    }
}
