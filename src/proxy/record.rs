//! One attempt while it is under way: told of when it ends, however it ends.

use std::net::SocketAddr;

use tokio::time::{Duration, Instant};

use super::attempt::{Attempt, End, Outcome, Protocol, Seen, Subject};
use super::gate::{Gate, Wanted};
use super::meter::{Meter, Way};
use super::unreadable::Unreadable;

/// The most of what cannot be read that is kept.
const SHOWN: usize = 120;

/// An attempt that is under way. Dropped in the middle, it was stopped.
pub(super) struct Record<'a> {
    gate: &'a dyn Gate,
    begun: Instant,
    attempt: Option<Attempt>,
    pub(super) meter: Meter,
}

impl<'a> Record<'a> {
    /// An attempt to reach a place.
    pub(super) fn of(gate: &'a dyn Gate, begun: Instant, wanted: &Wanted) -> Self {
        let subject = Subject::Place {
            host: wanted.host.clone(),
            port: wanted.port,
        };
        Self::new(gate, begun, subject, Some(wanted.protocol), wanted.client)
    }

    /// Tells of what could not be read. Nothing more comes of that.
    pub(super) fn unreadable(
        gate: &'a dyn Gate,
        begun: Instant,
        bytes: &[u8],
        protocol: Option<Protocol>,
        client: SocketAddr,
        why: Unreadable,
    ) {
        let subject = Subject::Unreadable(shown(bytes));
        Self::new(gate, begun, subject, protocol, client).end(Outcome::Refused(why.into()));
    }

    fn new(
        gate: &'a dyn Gate,
        begun: Instant,
        subject: Subject,
        protocol: Option<Protocol>,
        client: SocketAddr,
    ) -> Self {
        let attempt = Attempt {
            subject,
            protocol,
            client,
            outcome: Outcome::Abandoned(End::Stopped),
            address: None,
            seen: Seen::Nothing,
            up: 0,
            down: 0,
            duration: Duration::ZERO,
        };
        Self {
            gate,
            begun,
            attempt: Some(attempt),
            meter: Meter::default(),
        }
    }

    /// It is connected. From now on it was let through, whatever becomes of it.
    pub(super) fn connected(&mut self, address: SocketAddr) {
        if let Some(attempt) = &mut self.attempt {
            attempt.address = Some(address);
            attempt.outcome = Outcome::Passed(End::Stopped);
        }
    }

    /// What its tunnel was seen to carry.
    pub(super) fn saw(&mut self, seen: Seen) {
        if let Some(attempt) = &mut self.attempt {
            attempt.seen = seen;
        }
    }

    /// It has ended.
    pub(super) fn end(mut self, outcome: Outcome) {
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
                duration: self.begun.elapsed(),
                ..attempt
            });
        }
    }
}

/// The beginning of what could not be read: its first line, without what may be secret in it.
fn shown(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next();
    let line = line.unwrap_or_default();
    let line = match line.iter().rposition(|byte| *byte == b'@') {
        // Who somebody is, and their password, stand before that.
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
