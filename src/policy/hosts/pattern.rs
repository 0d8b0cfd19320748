//! The pattern of one entry of a list.

use core::net::IpAddr;
use std::fmt;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::address::{AddressKind, kind, kinds};
use super::host::{Host, HostError, HostName};
use super::ports::{Ports, PortsError};

/// The hosts that an entry names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// `*`: every name, and every public address.
    Every,
    /// `*.example.org`: every name below that one, and not itself.
    Below(HostName),
    /// `example.org`: that very name.
    Name(HostName),
    /// The public addresses of a network that has others too: what is left of [`Net`](Self::Net) under `*`.
    PublicNet(IpNet),
    /// `10.0.0.0/8`, `192.0.2.1`: the addresses of a network, of whatever kind; of one address for `/32` and `/128`.
    Net(IpNet),
}

/// Why a text is not a valid entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The host is none.
    #[error("`{text}` {why}")]
    Host {
        /// What was written.
        text: String,
        /// What is wrong with it.
        why: HostError,
    },
    /// A `*` elsewhere than in front.
    #[error("a `*` stands alone, or in front of a name: `*.example.org`")]
    Star,
    /// Bits are set behind the prefix.
    #[error("`{0}` has bits behind its prefix; the network is `{1}`")]
    Bits(String, IpNet),
    /// Not a number of bits that the family has.
    #[error("`/{0}` is no prefix of such an address")]
    Prefix(String),
    /// The ports are none.
    #[error(transparent)]
    Ports(#[from] PortsError),
    /// It has a part of a URL other than the host and port.
    #[error("write HOST:PORTS, without a scheme, a user or a path")]
    Url,
    /// An IPv6 address without brackets whose end may be a port.
    #[error("`{0}` may be one address or an address and a port: write `[{0}]`, or `[{1}]:{2}`")]
    Bare(String, String, String),
    /// Multicast, broadcast or the unspecified address.
    #[error("`{0}` is {1}: no host is reached there")]
    Unusable(IpAddr, AddressKind),
}

/// The hosts and ports of an entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    /// Which hosts.
    pub hosts: HostPattern,
    /// Which ports of theirs.
    pub ports: Ports,
}

impl Destination {
    /// Reads `HOST`, `HOST:PORTS`, `[IPV6]:PORTS`, `NET/PREFIX:PORTS`, `*.NAME:PORTS`, `*:PORTS`. Without ports, 80 and 443.
    ///
    /// # Errors
    /// What is none of these.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text.contains("://") || text.contains('@') {
            return Err(PatternError::Url);
        }
        if let Some((address, port)) = address_and_port(text) {
            return Err(PatternError::Bare(text.to_owned(), address.to_owned(), port.to_owned()));
        }
        let (host, ports) = split(text);
        let ports = ports.map_or_else(|| Ok(Ports::web()), Ports::parse)?;
        Ok(Self {
            hosts: HostPattern::parse(host)?,
            ports,
        })
    }

    /// Whether it names this host and port.
    pub fn holds(&self, host: &Host, port: u16) -> bool {
        self.hosts.holds(host) && self.ports.holds(port)
    }

    /// The intersection.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        Some(Self {
            hosts: self.hosts.and(&other.hosts)?,
            ports: self.ports.and(&other.ports)?,
        })
    }

    /// Whether the other includes this one.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.ports.are_within(&other.ports) && self.hosts.and(&other.hosts).as_ref() == Some(&self.hosts)
    }
}

/// Splits host and ports; colons in brackets, or more than one, belong to the address.
fn split(text: &str) -> (&str, Option<&str>) {
    let host_ends = text.rfind(']').map_or(0, |bracket| bracket + 1);
    let tail = text.get(host_ends..).unwrap_or_default();
    if host_ends == 0 && text.matches(':').count() > 1 {
        return (text, None);
    }
    match tail.find(':') {
        Some(colon) => (text.get(..host_ends + colon).unwrap_or_default(), tail.get(colon + 1..)),
        None => (text, None),
    }
}

/// The address and port in an IPv6 address without brackets that is ambiguous: `2001:db8::1:443`.
fn address_and_port(text: &str) -> Option<(&str, &str)> {
    let (address, port) = text.rsplit_once(':')?;
    let is_address = |text: &str| text.parse::<core::net::Ipv6Addr>().is_ok();
    (is_address(text) && is_address(address) && Ports::parse(port).is_ok()).then_some((address, port))
}

impl HostPattern {
    fn parse(text: &str) -> Result<Self, PatternError> {
        let wrong = |why| PatternError::Host {
            text: text.to_owned(),
            why,
        };
        if text == "*" {
            return Ok(Self::Every);
        }
        if let Some(suffix) = text.strip_prefix("*.") {
            return HostName::parse(suffix).map(Self::Below).map_err(wrong);
        }
        if text.contains('*') {
            return Err(PatternError::Star);
        }
        let bare = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        let Some((address, prefix)) = bare.unwrap_or(text).split_once('/') else {
            return match Host::parse(text).map_err(wrong)? {
                Host::Name(name) => Ok(Self::Name(name)),
                Host::Address(address) => match kind(address) {
                    found @ AddressKind::Unusable(_) => Err(PatternError::Unusable(address, found)),
                    AddressKind::Public | AddressKind::Special(_) => Ok(Self::Net(address.into())),
                },
            };
        };
        let Host::Address(_) = Host::parse(address).map_err(wrong)? else {
            return Err(PatternError::Url);
        };
        // Not the canonical form: the prefix counts bits of the family as written.
        let address: IpAddr = address.parse().map_err(|_| wrong(HostError::Number))?;
        let plain = prefix.len() <= 3 && (prefix == "0" || !prefix.starts_with('0'));
        let bits = prefix.parse::<u8>().ok().filter(|_| plain && !prefix.starts_with('+'));
        let net = bits
            .and_then(|bits| IpNet::new(address, bits).ok())
            .ok_or_else(|| PatternError::Prefix(prefix.to_owned()))?;
        if net.trunc() != net {
            return Err(PatternError::Bits(net.to_string(), net.trunc()));
        }
        let net = unmapped(net).ok_or(wrong(HostError::Number))?;
        match kinds(net).first() {
            // They sort last.
            Some(found @ AddressKind::Unusable(_)) => Err(PatternError::Unusable(net.network(), *found)),
            Some(AddressKind::Public | AddressKind::Special(_)) | None => Ok(Self::Net(net)),
        }
    }

    /// Whether it matches this host. Unusable addresses never match.
    pub fn holds(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Every, Host::Name(_)) => true,
            (Self::Every, Host::Address(address)) => kind(*address) == AddressKind::Public,
            (Self::Below(suffix), Host::Name(name)) => name.is_below(suffix),
            (Self::Name(own), Host::Name(name)) => own == name,
            (Self::PublicNet(net), Host::Address(address)) => {
                net.contains(address) && kind(*address) == AddressKind::Public
            }
            (Self::Net(net), Host::Address(address)) => {
                net.contains(address) && !matches!(kind(*address), AddressKind::Unusable(_))
            }
            (Self::Below(_) | Self::Name(_), Host::Address(_)) | (Self::PublicNet(_) | Self::Net(_), Host::Name(_)) => {
                false
            }
        }
    }

    /// The public addresses of a network; `None` if it has none.
    pub fn public(net: IpNet) -> Option<Self> {
        let kinds = kinds(net);
        let special = kinds.iter().any(|kind| matches!(kind, AddressKind::Special(_)));
        kinds
            .contains(&AddressKind::Public)
            .then_some(if special { Self::PublicNet(net) } else { Self::Net(net) })
    }

    /// The intersection of hosts.
    fn and(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Every, Self::Net(net)) | (Self::Net(net), Self::Every) => Self::public(*net),
            (Self::Every, one) | (one, Self::Every) => Some(one.clone()),
            (Self::Name(a), Self::Name(b)) => (a == b).then(|| self.clone()),
            (Self::Name(name), Self::Below(suffix)) | (Self::Below(suffix), Self::Name(name)) => {
                name.is_below(suffix).then(|| Self::Name(name.clone()))
            }
            (Self::Below(a), Self::Below(b)) if a == b || a.is_below(b) => Some(self.clone()),
            (Self::Below(a), Self::Below(b)) => b.is_below(a).then(|| other.clone()),
            (Self::Net(a), Self::Net(b)) => smaller(*a, *b).map(Self::Net),
            (Self::PublicNet(a), Self::Net(b) | Self::PublicNet(b)) | (Self::Net(a), Self::PublicNet(b)) => {
                smaller(*a, *b).and_then(Self::public)
            }
            (Self::Name(_) | Self::Below(_), Self::Net(_) | Self::PublicNet(_))
            | (Self::Net(_) | Self::PublicNet(_), Self::Name(_) | Self::Below(_)) => None,
        }
    }
}

/// The smaller of two nested networks; `None` if they are disjoint.
fn smaller(a: IpNet, b: IpNet) -> Option<IpNet> {
    if a.contains(&b) {
        Some(b)
    } else {
        b.contains(&a).then_some(a)
    }
}

/// Converts a network of mapped IPv4 addresses to IPv4.
fn unmapped(net: IpNet) -> Option<IpNet> {
    const MAPPED: Ipv6Net = Ipv6Net::new_assert(core::net::Ipv4Addr::UNSPECIFIED.to_ipv6_mapped(), 96);
    match net {
        IpNet::V6(six) if MAPPED.contains(&six) => {
            let IpAddr::V4(address) = IpAddr::V6(six.network()).to_canonical() else {
                return None;
            };
            Ipv4Net::new(address, six.prefix_len() - 96).ok().map(IpNet::V4)
        }
        // A larger IPv6 network includes no IPv4 address.
        IpNet::V4(_) | IpNet::V6(_) => Some(net),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let net = |net: &IpNet, f: &mut fmt::Formatter<'_>| {
            if net.prefix_len() == net.max_prefix_len() {
                return Host::Address(net.addr()).fmt(f);
            }
            match net {
                IpNet::V4(net) => net.fmt(f),
                IpNet::V6(net) => write!(f, "[{net}]"),
            }
        };
        match self {
            Self::Every => f.write_str("*"),
            Self::Below(suffix) => write!(f, "*.{suffix}"),
            Self::Name(name) => name.fmt(f),
            Self::Net(own) => net(own, f),
            Self::PublicNet(own) => {
                f.write_str("the public part of ")?;
                net(own, f)
            }
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.hosts, self.ports)
    }
}
