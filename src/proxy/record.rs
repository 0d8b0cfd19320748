//! An attempt in progress, recorded when it ends, however it ends.

use std::net::SocketAddr;

use tokio::time::{Duration, Instant};

use super::attempt::{Attempt, AttemptResult, End, Protocol, Subject, TunnelContent};
use super::gate::{ConnectRequest, Gate};
use super::meter::{Meter, Way};
use super::unreadable::Unreadable;

/// The longest excerpt of an unreadable request.
const SHOWN: usize = 120;

/// An attempt in progress. If it is dropped, it was stopped.
pub(super) struct Record<'a> {
    gate: &'a dyn Gate,
    started: Instant,
    attempt: Option<Attempt>,
    pub(super) meter: Meter,
}

impl<'a> Record<'a> {
    /// An attempt to reach a destination.
    pub(super) fn of(gate: &'a dyn Gate, started: Instant, wanted: &ConnectRequest) -> Self {
        let subject = Subject::Destination {
            host: wanted.host.clone(),
            port: wanted.port,
        };
        Self::new(gate, started, subject, Some(wanted.protocol), wanted.client)
    }

    /// Records an unreadable request.
    pub(super) fn unreadable(
        gate: &'a dyn Gate,
        started: Instant,
        bytes: &[u8],
        protocol: Option<Protocol>,
        client: SocketAddr,
        why: Unreadable,
    ) {
        let subject = Subject::Unreadable(excerpt(bytes));
        Self::new(gate, started, subject, protocol, client).end(AttemptResult::Refused(why.into()));
    }

    fn new(
        gate: &'a dyn Gate,
        started: Instant,
        subject: Subject,
        protocol: Option<Protocol>,
        client: SocketAddr,
    ) -> Self {
        let attempt = Attempt {
            subject,
            protocol,
            client,
            outcome: AttemptResult::Abandoned(End::Stopped),
            address: None,
            content: TunnelContent::Nothing,
            up: 0,
            down: 0,
            duration: Duration::ZERO,
        };
        Self {
            gate,
            started,
            attempt: Some(attempt),
            meter: Meter::default(),
        }
    }

    /// Marks the attempt as connected.
    pub(super) fn connected(&mut self, address: SocketAddr) {
        if let Some(attempt) = &mut self.attempt {
            attempt.address = Some(address);
            attempt.outcome = AttemptResult::Passed(End::Stopped);
        }
    }

    /// Sets the detected content of its tunnel.
    pub(super) fn set_content(&mut self, content: TunnelContent) {
        if let Some(attempt) = &mut self.attempt {
            attempt.content = content;
        }
    }

    /// Ends the attempt.
    pub(super) fn end(mut self, outcome: AttemptResult) {
        if let Some(attempt) = &mut self.attempt {
            attempt.outcome = outcome;
        }
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            self.gate.attempted(Attempt {
                up: self.meter.sent(Way::Up),
                down: self.meter.sent(Way::Down),
                duration: self.started.elapsed(),
                ..attempt
            });
        }
    }
}

/// The first line of an unreadable request, without parts that may be secret.
fn excerpt(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next();
    let line = line.unwrap_or_default();
    let line = match line.iter().rposition(|byte| *byte == b'@') {
        // A user and password may stand before it.
        Some(at) => line.get(at..).unwrap_or_default(),
        None => line,
    };
    let line = line.split(|byte| *byte == b'?').next().unwrap_or_default();
    let mut text = line
        .get(..SHOWN.min(line.len()))
        .unwrap_or_default()
        .escape_ascii()
        .to_string();
    if line.len() > SHOWN {
        text.push('…');
    }
    text
}
