//! One host, in canonical form.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::borrow::Cow;
use std::fmt;

/// A host name to resolve: lower case ASCII, no trailing dot, and nothing that a resolver parses as an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(Box<str>);

/// Why a text is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// It is empty.
    #[error("is empty")]
    Empty,
    /// Longer than a name can be: 253 bytes, 63 a label.
    #[error("is too long for a host name")]
    TooLong,
    /// A character that is not valid in a name.
    #[error("holds a character that no host name has")]
    Character,
    /// Some resolver parses it as an address: octal, hexadecimal, fewer than four parts.
    #[error("is neither a name nor an address in its plain form")]
    Number,
    /// An IPv6 address with a zone (`%eth0`), or with brackets that do not match.
    #[error("is no plain IPv6 address")]
    Brackets,
    /// Not a name by the rules of IDNA (UTS 46).
    #[error("is no valid internationalized name")]
    Idna,
}

impl HostName {
    /// The canonical form of a name. Text beyond ASCII is mapped by UTS 46.
    ///
    /// # Errors
    /// It is no name, or some resolver could parse it as an address.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if text.len() > 1024 {
            return Err(HostError::TooLong);
        }
        let name: Cow<'_, str> = if text.is_ascii() {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            idna::domain_to_ascii_cow(text.as_bytes(), idna::AsciiDenyList::URL).map_err(|_| HostError::Idna)?
        };
        if !name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'))
        {
            return Err(HostError::Character);
        }
        if name.len() > 253 || name.split('.').any(|label| label.len() > 63) {
            return Err(HostError::TooLong);
        }
        if name.split('.').any(str::is_empty) {
            return Err(HostError::Empty);
        }
        // Punycode that is not canonical would be a second name of a host.
        if name.split('.').any(|label| label.starts_with("xn--")) {
            let (shown, valid) = idna::domain_to_unicode(&name);
            let again = idna::domain_to_ascii_cow(shown.as_bytes(), idna::AsciiDenyList::URL);
            if valid.is_err() || again.ok().as_deref() != Some(&*name) {
                return Err(HostError::Idna);
            }
        }
        let last = name.rsplit('.').next().unwrap_or_default();
        let hexadecimal = last
            .strip_prefix("0x")
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if last.bytes().all(|byte| byte.is_ascii_digit()) || hexadecimal {
            return Err(HostError::Number);
        }
        Ok(Self(name.into()))
    }

    /// The name, without a trailing dot.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its parent domains, nearest first: of `a.b.c`, `b.c` and `c`.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('.').filter_map(|(dot, _)| self.0.get(dot + 1..))
    }

    /// Its parent domains as names, nearest first.
    pub(super) fn above(&self) -> impl Iterator<Item = Self> {
        self.parents().map(|parent| Self(parent.into()))
    }

    /// Whether it lies below this name.
    pub fn is_below(&self, other: &Self) -> bool {
        self.0.strip_suffix(&*other.0).is_some_and(|rest| rest.ends_with('.'))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One host: a name or an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name to resolve.
    Name(HostName),
    /// An address; never a mapped IPv4 address.
    Address(IpAddr),
}

impl Host {
    /// The host that a text means: a name, an IPv4 address of four decimal numbers, an IPv6 address with or without brackets.
    ///
    /// # Errors
    /// It is neither, or another program might parse it otherwise.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(HostError::Brackets)?;
            return inner
                .parse::<Ipv6Addr>()
                .map(|address| Self::address(address.into()))
                .map_err(|_| HostError::Brackets);
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::address(address.into()));
        }
        if text.contains(':') {
            return text
                .parse::<Ipv6Addr>()
                .map(|address| Self::address(address.into()))
                .map_err(|_| HostError::Brackets);
        }
        HostName::parse(text).map(Self::Name)
    }

    /// The host of an address.
    pub const fn address(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

/// As it stands before a port: an IPv6 address in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}
