//! A strict parser of a client's first message.

use super::error::HelloError;
use super::record::{HANDSHAKE, PLAIN, RECORD};
use crate::policy::{Host, HostName};
use crate::proxy::attempt::TunnelContent;
use crate::proxy::bounds::BUFFER;

/// The longest name in an error.
const SHOWN: usize = 100;

/// The relevant part of a `ClientHello`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::proxy) struct Hello {
    /// The bytes of the server name.
    named: Option<Vec<u8>>,
}

/// Parses a `ClientHello` while its records arrive. It scans each record once.
#[derive(Debug, Default)]
pub(in crate::proxy) struct HelloReader {
    at: usize,
    version: Option<[u8; 2]>,
    message: Vec<u8>,
}

impl HelloReader {
    /// The hello at the start of these bytes, and the length of its records; `None` while more bytes are needed. Each call
    /// gets all bytes so far.
    ///
    /// # Errors
    /// The bytes cannot become a `ClientHello`.
    pub(in crate::proxy) fn read(&mut self, bytes: &[u8]) -> Result<Option<(Hello, usize)>, HelloError> {
        while let Some(head) = bytes.get(self.at..).and_then(<[u8]>::first_chunk::<RECORD>) {
            let [kind, major, minor, high, low] = *head;
            let length = usize::from(u16::from_be_bytes([high, low]));
            let is_known = kind == HANDSHAKE && major == 3 && minor <= 3;
            let is_same = *self.version.get_or_insert([major, minor]) == [major, minor];
            if !is_known || !is_same || length == 0 || length > PLAIN {
                return Err(HelloError::Unreadable);
            }
            let Some(fragment) = bytes.get(self.at + RECORD..self.at + RECORD + length) else {
                break;
            };
            self.message.extend_from_slice(fragment);
            self.at += RECORD + length;
            if let Some(hello) = self.complete()? {
                return Ok(Some((hello, self.at)));
            }
        }
        // The buffer is full, so the hello is too long.
        if bytes.len() >= BUFFER {
            return Err(HelloError::TooLong);
        }
        Ok(None)
    }

    /// The message, once it is complete. Its last record must end with it.
    fn complete(&self) -> Result<Option<Hello>, HelloError> {
        if *self.message.first().ok_or(HelloError::Unreadable)? != 1 {
            return Err(HelloError::Unreadable);
        }
        let Some([_, long, middle, short]) = self.message.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = usize::from(*long) << 16 | usize::from(*middle) << 8 | usize::from(*short);
        if length > BUFFER {
            return Err(HelloError::TooLong);
        }
        let body = self.message.get(4..).unwrap_or_default();
        match body.len().cmp(&length) {
            std::cmp::Ordering::Less => Ok(None),
            std::cmp::Ordering::Equal => Hello::of(body).map(Some).ok_or(HelloError::Unreadable),
            std::cmp::Ordering::Greater => Err(HelloError::Unreadable),
        }
    }
}

impl Hello {
    /// Parses the body of a `ClientHello`; `None` where bytes are missing or left over, or an extension is there twice.
    fn of(body: &[u8]) -> Option<Self> {
        let mut rest = Fields(body);
        let [major, minor] = rest.take(2)?.first_chunk().copied()?;
        rest.take(32)?;
        let session = rest.short()?;
        let ciphers = rest.long()?;
        let compressions = rest.short()?;
        let is_plain = major == 3
            && minor <= 3
            && session.len() <= 32
            && !ciphers.is_empty()
            && ciphers.len() % 2 == 0
            && !compressions.is_empty();
        if !is_plain {
            return None;
        }
        if rest.is_empty() {
            return Some(Self { named: None });
        }
        let mut extensions = Fields(rest.long()?);
        if !rest.is_empty() {
            return None;
        }
        let (mut kinds, mut named) = (std::collections::BTreeSet::new(), None);
        while !extensions.is_empty() {
            let kind = extensions.number()?;
            let data = extensions.long()?;
            if !kinds.insert(kind) {
                return None;
            }
            if kind == 0 {
                named = Some(server_name(data)?.to_vec());
            }
        }
        Some(Self { named })
    }

    /// The content of the tunnel: TLS that names the requested host, or TLS that names none.
    ///
    /// # Errors
    /// It names another host.
    pub(in crate::proxy) fn check_host(&self, host: &Host) -> Result<TunnelContent, HelloError> {
        let Some(named) = &self.named else {
            return Ok(TunnelContent::NamelessTls);
        };
        let shown = || {
            let start = named.get(..SHOWN.min(named.len())).unwrap_or_default();
            start.escape_ascii().to_string()
        };
        match host {
            Host::Address(_) => Err(HelloError::Named(shown())),
            Host::Name(name) => {
                let text = str::from_utf8(named).ok().filter(|text| text.is_ascii());
                match text.map(HostName::parse) {
                    Some(Ok(other)) if other == *name => Ok(TunnelContent::NamedTls),
                    Some(Ok(_) | Err(_)) | None => Err(HelloError::Differs(shown())),
                }
            }
        }
    }
}

/// The one host name in a server name extension (RFC 6066, section 3).
fn server_name(data: &[u8]) -> Option<&[u8]> {
    let mut rest = Fields(data);
    let mut list = Fields(rest.long()?);
    let is_host = list.take(1)? == [0];
    let name = list.long()?;
    (is_host && !name.is_empty() && list.is_empty() && rest.is_empty()).then_some(name)
}

/// A parser of fields. A field without a fixed length is preceded by its length.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// With a length of one byte.
    fn short(&mut self) -> Option<&'a [u8]> {
        let length = *self.take(1)?.first()?;
        self.take(usize::from(length))
    }

    /// With a length of two bytes.
    fn long(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::from(length))
    }
}
