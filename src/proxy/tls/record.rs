//! Records of TLS, distinguished by their headers (RFC 8446, section 5).

use super::error::HelloError;

/// The length of a record's header: type, version and length.
pub(super) const RECORD: usize = 5;
/// The types of records.
const CHANGE_CIPHER_SPEC: u8 = 0x14;
const ALERT: u8 = 0x15;
pub(super) const HANDSHAKE: u8 = 0x16;
const APPLICATION: u8 = 0x17;
/// The most bytes of a plain record, and of an encrypted one.
pub(super) const PLAIN: usize = 1 << 14;
const ENCRYPTED: usize = PLAIN + 256;
/// Whether a client's first bytes count as TLS; `None` while more bytes are needed.
///
/// TLS begins with a handshake record. Some servers accept another record before it, or an unknown version, so these count
/// too.
pub(in crate::proxy) fn begins_tls(bytes: &[u8]) -> Option<bool> {
    match bytes {
        [HANDSHAKE, ..] => Some(true),
        [CHANGE_CIPHER_SPEC..=0x18, 3, ..] | [CHANGE_CIPHER_SPEC, _, _, 0, 1, ..] | [ALERT, _, _, 0, 2, ..] => {
            Some(true)
        }
        [CHANGE_CIPHER_SPEC..=0x18, rest @ ..] if rest.len() + 1 < RECORD => None,
        _ => Some(false),
    }
}

/// Whether a client's first bytes are the greeting of SSL 2; `None` while more bytes are needed.
pub(in crate::proxy) fn begins_ssl2(bytes: &[u8]) -> Option<bool> {
    match bytes {
        [0x80..=0xff, _, 1, 0 | 3, _, ..] => Some(true),
        [0x80..=0xff] | [0x80..=0xff, _] | [0x80..=0xff, _, 1] | [0x80..=0xff, _, 1, 0 | 3] => None,
        _ => Some(false),
    }
}

/// A record between the two hellos of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum NextRecord {
    /// More must come.
    More,
    /// The second hello.
    Hello,
    /// Another record, of this length.
    Record(usize),
}

impl NextRecord {
    /// What these bytes begin with.
    ///
    /// # Errors
    /// No record of TLS.
    pub(in crate::proxy) fn of(bytes: &[u8]) -> Result<Self, HelloError> {
        let Some(head) = bytes.first_chunk::<RECORD>() else {
            return Ok(Self::More);
        };
        let [kind, major, _, high, low] = *head;
        let length = usize::from(u16::from_be_bytes([high, low]));
        match (kind, major) {
            (HANDSHAKE, _) => Ok(Self::Hello),
            (CHANGE_CIPHER_SPEC | ALERT | APPLICATION, 3) if length <= ENCRYPTED => {
                let length = RECORD + length;
                Ok(if bytes.len() < length {
                    Self::More
                } else {
                    Self::Record(length)
                })
            }
            (_, _) => Err(HelloError::Unreadable),
        }
    }
}

/// The first message of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum ServerGreeting {
    /// More must come.
    More,
    /// `HelloRetryRequest`: the client must send a second hello.
    Retry,
    /// Something else.
    Other,
}

impl ServerGreeting {
    /// The message at the start of these bytes, after any warnings.
    pub(in crate::proxy) fn of(bytes: &[u8]) -> Self {
        /// The random value that marks a `ServerHello` as `HelloRetryRequest` (RFC 8446, section 4.1.3).
        const RETRY: [u8; 32] = [
            0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2,
            0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
        ];
        /// The offset of the random value: after type, length and version.
        const RANDOM: std::ops::Range<usize> = 6..38;
        let (mut rest, mut message) = (bytes, Vec::new());
        while let Some((head, fragments)) = rest.split_first_chunk::<RECORD>() {
            let [kind, _, _, high, low] = *head;
            let length = usize::from(u16::from_be_bytes([high, low]));
            match kind {
                ALERT => {}
                HANDSHAKE => message.extend(fragments.iter().take(length)),
                _ => return Self::Other,
            }
            match (message.first(), message.get(RANDOM)) {
                (Some(2), Some(random)) if random == RETRY => return Self::Retry,
                (Some(2), None) | (None, _) => {}
                (Some(_), _) => return Self::Other,
            }
            rest = fragments.get(length..).unwrap_or_default();
        }
        Self::More
    }
}
