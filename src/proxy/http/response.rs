//! The proxy's own answers.

use std::fmt::Write as _;

use http::StatusCode;

use crate::proxy::attempt::{AttemptResult, Failure, Refusal};
use crate::proxy::unreadable::Unreadable;

/// The response that opens a tunnel.
pub(super) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
/// The response to a client that waits before it sends its body (`Expect: 100-continue`).
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Whether the connection stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum KeepAlive {
    Yes,
    No,
}

impl KeepAlive {
    pub(super) fn header(self) -> &'static str {
        match self {
            Self::Yes => "Connection: keep-alive\r\n",
            Self::No => "Connection: close\r\n",
        }
    }
}

/// The response to a refused or failed request; `None` for other results. `subject` is `HOST:PORT` or `this request`.
pub(in crate::proxy) fn rejection(subject: &str, outcome: &AttemptResult, keep_alive: KeepAlive) -> Option<Vec<u8>> {
    let (status, why) = match outcome {
        AttemptResult::Refused(why) => (refused(why), why.to_string()),
        AttemptResult::Failed(why) => (failed(why), why.to_string()),
        AttemptResult::Passed(_) | AttemptResult::Abandoned(_) => return None,
    };
    // Many programs show only the status line, so the reason is there as well.
    let line: String = format!("stockade: {subject} {why}")
        .chars()
        .map(|letter| if matches!(letter, ' '..='~') { letter } else { '?' })
        .collect();
    let mut text = format!("HTTP/1.1 {} {line}\r\n", status.as_u16());
    text.push_str("Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n");
    // Writing to a `String` cannot fail.
    let _written = write!(
        text,
        "X-Proxy-Error: {line}\r\nContent-Length: {}\r\n{}\r\n{line}\n",
        line.len() + 1,
        keep_alive.header()
    );
    Some(text.into_bytes())
}

fn refused(why: &Refusal) -> StatusCode {
    match why {
        Refusal::NotListed(_)
        | Refusal::Denied
        | Refusal::Unanswered
        | Refusal::Other(_)
        | Refusal::Address { .. }
        | Refusal::OwnAddress(_)
        | Refusal::Hello(_)
        | Refusal::Tunnelled(_) => StatusCode::FORBIDDEN,
        Refusal::Unreadable(Unreadable::Slow) => StatusCode::REQUEST_TIMEOUT,
        Refusal::Unreadable(Unreadable::TooLong | Unreadable::TooMany | Unreadable::TooManyNamed) => {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        }
        Refusal::Unreadable(Unreadable::Version) => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        Refusal::Unreadable(Unreadable::Encoding) => StatusCode::NOT_IMPLEMENTED,
        Refusal::Unreadable(Unreadable::Expect) => StatusCode::EXPECTATION_FAILED,
        Refusal::Unreadable(_) => StatusCode::BAD_REQUEST,
    }
}

fn failed(why: &Failure) -> StatusCode {
    match why {
        Failure::ResolveTime | Failure::ConnectTime(_) => StatusCode::GATEWAY_TIMEOUT,
        Failure::NoAddress | Failure::ConnectionRefused(_) | Failure::Unreachable(_) | Failure::BadAnswer => {
            StatusCode::BAD_GATEWAY
        }
    }
}
