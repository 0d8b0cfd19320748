//! The settings of the HTTP server, parsed from flags.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::uri::Authority;

use super::bounds::Bounds;
use super::error::HttpError;
use super::origin::Origin;
use super::token::HttpToken;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    pub(super) address: SocketAddr,
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<Origin>,
    pub(super) token: HttpToken,
    pub(super) drain: Duration,
    pub(super) bounds: Bounds,
}

impl HttpSettings {
    /// The default time that calls may take after the first signal.
    pub const DRAIN: Duration = Duration::from_secs(10);

    /// At `address` (a port, or an address and a port), for clients that name this machine as loopback or as one of
    /// `hosts`, and for browsers only on pages from one of `origins`.
    pub fn new(address: &str, hosts: &[String], origins: &[String], token: HttpToken) -> Result<Self, HttpError> {
        let address = parse(address).ok_or_else(|| HttpError::Address(address.to_owned()))?;
        if let Some(wrong) = hosts.iter().find(|host| !is_host(host)) {
            return Err(HttpError::Host(wrong.clone()));
        }
        if !address.ip().to_canonical().is_loopback() && hosts.is_empty() {
            return Err(HttpError::NotLoopback(address));
        }
        let origins = origins
            .iter()
            .map(|text| Origin::parse(text).ok_or_else(|| HttpError::Origin(text.clone())))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            address,
            hosts: hosts.to_vec(),
            origins,
            token,
            drain: Self::DRAIN,
            bounds: Bounds::default(),
        })
    }

    /// Sets how long calls may take after the first signal.
    #[must_use]
    pub const fn with_drain(mut self, time: Duration) -> Self {
        self.drain = time;
        self
    }

    /// Sets the limits.
    #[must_use]
    pub const fn with_bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// The allowed values of the `Host` header.
    pub(super) fn all_hosts(&self) -> Vec<String> {
        let loopback = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        loopback.into_iter().chain(self.hosts.iter().cloned()).collect()
    }

    /// The allowed origins: its own at this port, and the named ones.
    pub(super) fn all_origins(&self, port: u16) -> Vec<String> {
        let own = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:{port}"));
        own.into_iter()
            .chain(self.origins.iter().map(Origin::to_string))
            .collect()
    }

    /// The URL for clients.
    pub(super) fn url(&self, bound: SocketAddr) -> String {
        match self.hosts.first() {
            Some(host) if bound.ip().is_unspecified() => {
                let has_port = host.parse::<Authority>().is_ok_and(|host| host.port().is_some());
                if has_port {
                    format!("http://{host}/mcp")
                } else {
                    format!("http://{host}:{}/mcp", bound.port())
                }
            }
            Some(_) | None => format!("http://{bound}/mcp"),
        }
    }
}

/// Parses an address; a port alone is on loopback.
fn parse(text: &str) -> Option<SocketAddr> {
    let own = |port: &str| {
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = digits.then(|| port.parse().ok()).flatten()?;
        Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    };
    let port = text.strip_prefix(':').or_else(|| text.strip_prefix("localhost:"));
    own(port.unwrap_or(text)).or_else(|| text.parse().ok())
}

/// Whether the text is valid in a `Host` header, without wildcards.
fn is_host(text: &str) -> bool {
    text.parse::<Authority>()
        .is_ok_and(|host| !host.host().is_empty() && !text.contains(['@', '*']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(address: &str, hosts: &[&str], origins: &[&str]) -> Result<HttpSettings, HttpError> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        HttpSettings::new(address, &owned(hosts), &owned(origins), HttpToken::generate().unwrap())
    }

    #[test]
    fn a_port_alone_is_one_of_loopback() {
        for written in ["8080", ":8080", "127.0.0.1:8080", "localhost:8080"] {
            let address = settings(written, &[], &[]).unwrap().address;
            assert_eq!(address.to_string(), "127.0.0.1:8080", "{written}");
        }
        assert_eq!(settings("[::1]:0", &[], &[]).unwrap().address.to_string(), "[::1]:0");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for written in [
            "",
            ":",
            "x",
            "127.0.0.1",
            "::1",
            "65536",
            "+80",
            "8080 ",
            "example.org:80",
            "http://127.0.0.1:80",
            "-1",
        ] {
            let refused = settings(written, &["a"], &[]);
            assert!(matches!(refused, Err(HttpError::Address(_))), "{written}: {refused:?}");
        }
    }

    #[test]
    fn an_address_that_others_reach_needs_a_name() {
        for written in ["0.0.0.0:80", "192.0.2.1:80", "[::]:80", "[::ffff:192.0.2.1]:80"] {
            assert!(
                matches!(settings(written, &[], &[]), Err(HttpError::NotLoopback(_))),
                "{written}"
            );
            settings(written, &["agents.example.org"], &[]).unwrap();
        }
        settings("[::ffff:127.0.0.1]:80", &[], &[]).unwrap();
    }

    #[test]
    fn a_host_is_one_name() {
        for host in ["a.example", "a.example:443", "192.0.2.1", "[::1]:80"] {
            settings("80", &[host], &[]).unwrap();
        }
        for host in ["", "*", "*.example", "https://a.example", "a/b", "a@b", "a b"] {
            assert!(
                matches!(settings("80", &[host], &[]), Err(HttpError::Host(_))),
                "{host}"
            );
        }
    }

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        settings("80", &[], &["https://a.example"]).unwrap();
        for origin in ["", "null", "a.example", "*", "https://*", "https://a.example/x"] {
            assert!(
                matches!(settings("80", &[], &[origin]), Err(HttpError::Origin(_))),
                "{origin}"
            );
        }
    }

    #[test]
    fn the_url_is_what_a_client_can_use() {
        let url = |address: &str, hosts: &[&str]| {
            let settings = settings(address, hosts, &[]).unwrap();
            settings.url(settings.address)
        };
        assert_eq!(url("8080", &[]), "http://127.0.0.1:8080/mcp");
        assert_eq!(url("[::1]:8080", &["a.example"]), "http://[::1]:8080/mcp");
        assert_eq!(url("0.0.0.0:8080", &["a.example"]), "http://a.example:8080/mcp");
        assert_eq!(url("0.0.0.0:8080", &["a.example:9"]), "http://a.example:9/mcp");
    }
}
