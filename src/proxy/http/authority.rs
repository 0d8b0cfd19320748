//! `HOST:PORT`, as HTTP writes it.

use crate::policy::Host;
use crate::policy::hosts::HostError;
use crate::proxy::unreadable::Unreadable;

/// `HOST` or `HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy) struct Authority {
    pub(in crate::proxy) host: Host,
    pub(in crate::proxy) port: Option<u16>,
}

impl Authority {
    /// Parses it. A user is refused; an IPv6 address must be in brackets.
    pub(in crate::proxy) fn parse(text: &str) -> Result<Self, Unreadable> {
        if text.contains('@') {
            return Err(Unreadable::User);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Unreadable::Host(HostError::Character));
        }
        let (host, port) = match text.rfind(']') {
            Some(bracket) => match text.split_at(bracket + 1) {
                (host, "") => (host, None),
                (host, port) => (host, Some(port.strip_prefix(':').ok_or(Unreadable::Port)?)),
            },
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        Ok(Self {
            host: Host::parse(host)?,
            port: port.map(parse_port).transpose()?,
        })
    }

    /// Whether it names this host and port. Without a port it names the default port.
    pub(in crate::proxy) fn is(&self, host: &Host, port: u16, usual: u16) -> bool {
        self.host == *host && self.port.unwrap_or(usual) == port
    }
}

/// A port: a number from 1 to 65535 without leading zeros.
fn parse_port(text: &str) -> Result<u16, Unreadable> {
    let plain = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || text.starts_with('0') {
        return Err(Unreadable::Port);
    }
    text.parse().map_err(|_| Unreadable::Port)
}
