//! What a command tried to reach, for its outcome.

use std::collections::BTreeSet;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use super::bounds::{UNLISTED, is_bounded};
use crate::proxy::{Attempt, AttemptResult, Subject, TunnelContent};

/// The most lines that a person is told.
const MOST_LINES: usize = 200;
const MOST_ADDRESSES: usize = 16;
/// What stands for the ends of attempts that are told of as one and ended differently.
const DIFFERENTLY: &str = "ended in different ways";

/// What a command did with the hosts it may reach, and with others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct NetworkUse {
    /// What was tried; like attempts are one entry.
    pub attempts: Vec<Tried>,
    /// Attempts that reached their host and are in no entry, because there are too many different ones.
    pub more_reached: u64,
    /// Attempts that reached nothing and are in no entry, because there are too many different ones.
    pub more_unreached: u64,
    /// Bytes that were sent, in attempts of all entries and of none.
    pub up: u64,
    /// Bytes that were received.
    pub down: u64,
}

/// Attempts with the same end to reach the same place; where there are very many that reached something, all of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tried {
    /// `HOST:PORT`; what could not be read as such, escaped and in backticks.
    pub place: String,
    /// The host, if it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The port, if it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// How it was asked for: `CONNECT`, `HTTP`, `SOCKS5`; absent where it could not be told, or was not always the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// What became of it.
    pub result: Result,
    /// The same in words.
    pub why: String,
    /// The addresses that were connected, in the order of the first time; after sixteen different ones, no more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// What its tunnels were seen to carry.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub carried: BTreeSet<Carried>,
    /// How often.
    pub times: u64,
    /// Bytes that were sent.
    pub up: u64,
    /// Bytes that were received.
    pub down: u64,
}

/// What became of an attempt. Ordered: what says more of what was reached comes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Result {
    /// It ended before it was decided.
    Abandoned,
    /// It was not let through.
    Refused,
    /// It was let through, and did not come about.
    Failed,
    /// It was let through.
    Passed,
}

/// What the first bytes of a tunnel were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Carried {
    /// TLS that names the host.
    NamedTls,
    /// TLS that names no host.
    NamelessTls,
    /// HTTP whose requests name the host.
    Http,
    /// HTTP that became a WebSocket.
    Upgraded,
    /// Something else, of which nothing is known.
    Other,
}

impl Carried {
    const fn of(seen: TunnelContent) -> Option<Self> {
        match seen {
            TunnelContent::Nothing => None,
            TunnelContent::NamedTls => Some(Self::NamedTls),
            TunnelContent::NamelessTls => Some(Self::NamelessTls),
            TunnelContent::Http => Some(Self::Http),
            TunnelContent::Upgraded => Some(Self::Upgraded),
            TunnelContent::Other => Some(Self::Other),
        }
    }
}

/// Whether a host is the machine itself by its loopback.
fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    let address: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
    name == "localhost" || name.ends_with(".localhost") || address.is_some_and(|address| address.is_loopback())
}

/// A loopback as a rule names it: only by number.
fn by_number(host: &str, port: Option<u16>) -> String {
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let host = match address {
        Some(IpAddr::V6(address)) => format!("[{address}]"),
        Some(IpAddr::V4(address)) => address.to_string(),
        None => "127.0.0.1".to_owned(),
    };
    port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"))
}

impl Tried {
    pub(super) fn of(attempt: &Attempt) -> Self {
        let (host, port) = match &attempt.subject {
            Subject::Destination { host, port } => (Some(host.to_string()), Some(*port)),
            Subject::Unreadable(_) => (None, None),
        };
        Self {
            place: attempt.subject.to_string(),
            host,
            port,
            protocol: attempt.protocol.map(|protocol| protocol.to_string()),
            result: match &attempt.outcome {
                AttemptResult::Abandoned(_) => Result::Abandoned,
                AttemptResult::Refused(_) => Result::Refused,
                AttemptResult::Failed(_) => Result::Failed,
                AttemptResult::Passed(_) => Result::Passed,
            },
            why: match &attempt.outcome {
                AttemptResult::Abandoned(end) | AttemptResult::Passed(end) => end.to_string(),
                AttemptResult::Refused(why) => why.to_string(),
                AttemptResult::Failed(why) => why.to_string(),
            },
            addresses: attempt.address.iter().map(ToString::to_string).collect(),
            carried: Carried::of(attempt.content).into_iter().collect(),
            times: 1,
            up: attempt.up,
            down: attempt.down,
        }
    }

    /// Adds attempts to reach the same host and port.
    pub(super) fn join(&mut self, other: Self) {
        if (self.result, &self.why) != (other.result, &other.why) {
            DIFFERENTLY.clone_into(&mut self.why);
        }
        if self.protocol != other.protocol {
            self.protocol = None;
        }
        self.result = self.result.max(other.result);
        for address in other.addresses {
            if self.addresses.len() < MOST_ADDRESSES && !self.addresses.contains(&address) {
                self.addresses.push(address);
            }
        }
        self.carried.extend(other.carried);
        self.times = self.times.saturating_add(other.times);
        self.up = self.up.saturating_add(other.up);
        self.down = self.down.saturating_add(other.down);
    }

    /// The line for a person, where there is something to say: what was refused or failed, and what would allow it.
    pub(crate) fn message(&self) -> Option<String> {
        let what = match self.result {
            Result::Passed => return None,
            Result::Abandoned => format!("{} was given up before it was decided: {}", self.place, self.why),
            Result::Refused | Result::Failed => format!("{} {}", self.place, self.why),
        };
        let times = self.repeated();
        let remedy = match (self.result, &self.host) {
            (Result::Refused, Some(_)) if is_bounded(&self.why) => {
                "; no change to the config alone would allow it".to_owned()
            }
            (Result::Refused, Some(host)) if self.unlisted().is_some() && is_loopback(host) => {
                format!(
                    "; a rule for `{0}` would let it reach what listens there on this machine; a server of the command's own is \
                     reached as `localhost`, without the proxy",
                    by_number(host, self.port)
                )
            }
            (Result::Refused, Some(_)) if self.unlisted().is_some() => {
                format!(
                    "; `allow: [\"{0}\"]` in the `network` that holds for this command, or, without a config, `--net {0}` would \
                     allow it",
                    self.place
                )
            }
            _ => String::new(),
        };
        Some(format!("{what}{times}{remedy}"))
    }

    /// What a list would have to name for it to be let through; none where a list alone would not do.
    pub(crate) fn unlisted(&self) -> Option<&str> {
        let refused = self.result == Result::Refused && self.host.is_some();
        let would_do = refused && self.why.starts_with(UNLISTED) && !is_bounded(&self.why);
        would_do.then_some(self.place.as_str())
    }

    fn listed(&self) -> String {
        self.message().unwrap_or_else(|| {
            let (place, times) = (&self.place, self.repeated());
            format!(
                "{place} was let through{times}: {} bytes were sent, {} received",
                self.up, self.down
            )
        })
    }

    fn repeated(&self) -> String {
        if self.times > 1 {
            format!(" ({} times)", self.times)
        } else {
            String::new()
        }
    }
}

impl NetworkUse {
    /// What a person should know of it, a line each.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.lines(self.attempts.iter().filter_map(Tried::message))
    }

    /// What was let through, a line each.
    pub(crate) fn reached(&self) -> Vec<String> {
        let passed = self.attempts.iter().filter(|tried| tried.result == Result::Passed);
        self.lines(passed.map(Tried::listed))
    }

    /// All of it, a line each, for who is given nothing else.
    pub(crate) fn listed(&self) -> Vec<String> {
        self.lines(self.attempts.iter().map(Tried::listed))
    }

    fn lines(&self, mut of_attempts: impl Iterator<Item = String>) -> Vec<String> {
        let mut lines: Vec<String> = of_attempts.by_ref().take(MOST_LINES).collect();
        for (more, what) in [
            (
                of_attempts.count() as u64,
                "more kinds of attempts, which `--json` lists",
            ),
            (self.more_reached, "more attempts that reached other hosts or ports"),
            (self.more_unreached, "more attempts of other kinds that reached nothing"),
        ] {
            if more > 0 {
                lines.push(format!("{more} {what}"));
            }
        }
        lines
    }
}
